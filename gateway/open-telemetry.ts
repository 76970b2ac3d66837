import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { GatewayConfig } from './config/load.ts'
import type { SharedParts } from './shared-parts.ts'
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
  const open = () => createTraces({ settings, logger, metrics })
  const { part, release } = shared.use('traces', settings, open, (traces) => traces.close())
  lifecycle.onStop('traces', release)
  return part
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
    return shared.use('metrics export', settings, make, (running) => running.close()).release
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
