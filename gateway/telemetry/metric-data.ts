import { type Attributes, type HrTime, ValueType } from '@opentelemetry/api'
import { AggregationTemporality, type DataPoint, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics'
import type { MetricsSnapshot } from '../../platform/metrics.ts'

/** As prom-client tells it; of a histogram a row for each bucket, cumulated, with sum and count beside them. */
interface Value {
  value: number
  labels: Record<string, string | number>
  metricName?: string
}

interface Metric {
  name: string
  help: string
  type: unknown
  values: Value[]
}

/** The metrics of `/metrics` as OpenTelemetry's data, under the same names; times are of the counts. */
export const metricData = (snapshot: MetricsSnapshot, since: HrTime, now: HrTime): MetricData[] =>
  (snapshot as unknown as Metric[]).flatMap((metric): MetricData[] => {
    const { name, help, type, values } = metric
    const descriptor = { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE }
    const aggregationTemporality = AggregationTemporality.CUMULATIVE
    const point = <Item>(labels: Value['labels'], value: Item): DataPoint<Item> => ({
      startTime: since,
      endTime: now,
      attributes: attributesOf(labels),
      value,
    })
    const dataPoints = () => values.map(({ labels, value }) => point(labels, value))
    switch (type) {
      case 'counter':
        return [
          {
            ...{ descriptor, aggregationTemporality, isMonotonic: true },
            dataPointType: DataPointType.SUM,
            dataPoints: dataPoints(),
          },
        ]
      case 'gauge':
        return [{ descriptor, aggregationTemporality, dataPointType: DataPointType.GAUGE, dataPoints: dataPoints() }]
      case 'histogram':
        return [
          {
            ...{ descriptor, aggregationTemporality },
            dataPointType: DataPointType.HISTOGRAM,
            dataPoints: histograms(metric).map(({ labels, ...histogram }) => point(labels, histogram)),
          },
        ]
      default:
        return []
    }
  })

/** UCUM, by the ending of the name. */
const unitOf = (name: string): string => {
  if (/_seconds(?:_total)?$/.test(name)) return 's'
  return /_bytes(?:_total)?$/.test(name) ? 'By' : ''
}

const attributesOf = (labels: Value['labels']): Attributes =>
  Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]))

interface Histogram {
  labels: Value['labels']
  sum: number
  count: number
  buckets: { boundaries: number[]; counts: number[] }
}

const histograms = ({ name, values }: Metric): Histogram[] => {
  const series = new Map<string, Histogram & { cumulated: number }>()
  for (const { metricName, value, labels: all } of values) {
    const { le, ...labels } = all
    const key = JSON.stringify(Object.entries(labels).sort())
    const row = series.get(key) ?? { labels, sum: 0, count: 0, buckets: { boundaries: [], counts: [] }, cumulated: 0 }
    series.set(key, row)
    if (metricName === `${name}_sum`) row.sum = value
    else if (metricName === `${name}_count`) row.count = value
    else {
      if (le !== '+Inf') row.buckets.boundaries.push(Number(le))
      row.buckets.counts.push(value - row.cumulated)
      row.cumulated = value
    }
  }
  return [...series.values()].map(({ cumulated: _, ...histogram }) => histogram)
}
