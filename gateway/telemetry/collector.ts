import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import type { Logger } from '../../platform/logger.ts'
import { assetUrl } from '../../platform/module-url.ts'
import type { TelemetrySettings } from '../config/settings/telemetry.ts'

/** What traces and metrics share: who sends them, where to, and what is said when they cannot be sent. */

/** For one export with its repetitions, in ms. */
const timeoutMillis = 5_000
/** Exports at once, at most: several only when the gateway stops, or when a collector never ends an answer. */
const concurrencyLimit = 8

export const exporterOptions = ({ otlp, headers }: TelemetrySettings, signal: 'traces' | 'metrics') => ({
  url: `${otlp.replace(/\/+$/, '')}/v1/${signal}`,
  headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()])),
  timeoutMillis,
  concurrencyLimit,
})

/** Of this process: several workers are several instances. */
const instance = randomUUID()

export const resourceOf = ({ resource }: TelemetrySettings): Resource =>
  resourceFromAttributes({
    'service.name': 'surrogate-gateway',
    'service.version': versionOf(),
    'service.instance.id': instance,
    ...resource,
  })

const versionOf = (): string =>
  JSON.parse(readFileSync(assetUrl('../../package.json', import.meta.url), 'utf8')).version

/** What OpenTelemetry's exporters have in common; `code` 0 = sent. */
interface Exporter<Items> {
  export(items: Items, done: (result: { code: number; error?: Error }) => void): void
  forceFlush?(): Promise<void>
  shutdown(): Promise<void>
}

/** One line when exports begin to fail and one when they succeed again; `onFailed` for what is lost. */
export const reporting = <Items>(
  exporter: Exporter<Items>,
  options: { signal: string; logger: Logger; onBegin?: (items: Items) => void; onFailed?: (items: Items) => void },
) => {
  const { signal, logger, onBegin, onFailed } = options
  let failing = false
  return {
    export(items: Items, done: (result: { code: number; error?: Error }) => void) {
      onBegin?.(items)
      exporter.export(items, (result) => {
        if (result.code === 0) {
          if (failing) logger.info({ signal }, 'the telemetry collector takes everything again')
          failing = false
        } else {
          // Of the error only what OpenTelemetry's exporter says: it may hold the answer of the collector.
          const told = { signal, reason: result.error?.message }
          if (!failing) logger.warn(told, 'telemetry cannot be sent; until it can, it is lost')
          failing = true
          onFailed?.(items)
        }
        done(result)
      })
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  }
}
