import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { GatewayConfig } from './config/load.ts'
import { closing, type SharedParts, usedBy } from './shared-parts.ts'
import type { Traces } from './telemetry/traces.ts'

/** What `telemetry` asks for. Without it nothing of OpenTelemetry is loaded. */

interface Parts {
  shared: SharedParts
  logger: Logger
  metrics: Metrics
}

/** The traces of a gateway. The same go on after a reload that did not change the settings. */
export const openTraces = async (
  { telemetry: settings }: GatewayConfig,
  { lifecycle, shared, logger, metrics }: Parts & { lifecycle: Lifecycle },
): Promise<Traces | undefined> => {
  if (!settings) return undefined
  const { createTraces } = await import('./telemetry/traces.ts')
  const use = usedBy(lifecycle, shared)
  return use('traces', settings, () => createTraces({ settings, logger, metrics }), closing)
}

/** The metrics of the whole gateway, sent where the configuration in force says. */
export interface MetricsExports {
  follow(config: GatewayConfig): Promise<void>
  close(): Promise<void>
}

export const createMetricsExports = ({ shared, logger, metrics }: Parts): MetricsExports => {
  let release: (() => Promise<void>) | undefined
  const open = async (settings: NonNullable<GatewayConfig['telemetry']>) => {
    const { createMetricsExport } = await import('./telemetry/metrics-export.ts')
    const make = () => createMetricsExport({ settings, logger, metrics })
    return shared.use('metrics export', settings, make, closing).release
  }
  return {
    async follow({ telemetry }) {
      const before = release
      release = telemetry && (await open(telemetry))
      await before?.()
    },
    close: async () => release?.(),
  }
}
