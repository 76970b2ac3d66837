import { setTimeout as delay } from 'node:timers/promises'
import type { HrTime } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { MeterProvider, type MetricProducer, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { TelemetrySettings } from '../config/settings/telemetry.ts'
import { exporterOptions, reporting, resourceOf } from './collector.ts'
import { metricData } from './metric-data.ts'

const exportIntervalMillis = 30_000
const exportTimeoutMillis = 15_000
const lastChanceMs = 2_000

/**
 * Sends the metrics of `/metrics` to a collector: the registry stays the one place where anything is counted, and
 * OpenTelemetry reads it as a producer.
 */
export const createMetricsExport = (options: {
  settings: TelemetrySettings
  logger: Logger
  metrics: Pick<Metrics, 'total'>
}) => {
  const { settings, logger, metrics } = options
  const since = hrTime(performance.timeOrigin)
  const resource = resourceOf(settings)
  const producer: MetricProducer = {
    async collect() {
      const data = metricData(await metrics.total(), since, hrTime(Date.now()))
      return {
        resourceMetrics: { resource, scopeMetrics: [{ scope: { name: 'surrogate' }, metrics: data }] },
        errors: [],
      }
    },
  }
  const exporter = reporting(new OTLPMetricExporter(exporterOptions(settings, 'metrics')), {
    signal: 'metrics',
    logger,
  })
  const reader = new PeriodicExportingMetricReader({
    ...{ exporter, exportIntervalMillis, exportTimeoutMillis },
    metricProducers: [producer],
  })
  const provider = new MeterProvider({ resource, readers: [reader] })
  return {
    /** Sends the last figures, if that is possible within two seconds. */
    async close(): Promise<void> {
      await Promise.race([provider.shutdown().catch(() => {}), delay(lastChanceMs, undefined, { ref: false })])
    },
  }
}

/** Seconds and nanoseconds. */
const hrTime = (ms: number): HrTime => [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)]
