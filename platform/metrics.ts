import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/**
 * The metrics of one process, in Prometheus' text format at `/metrics` of the admin listener. Names begin with
 * `surrogate_`.
 */
export interface Metrics {
  counter<Label extends string = never>(name: string, help: string, labels?: readonly Label[]): Counter<Label>
  gauge<Label extends string = never>(name: string, help: string, labels?: readonly Label[]): Gauge<Label>
  /** `buckets` in the unit that `name` ends with. */
  histogram<Label extends string = never>(
    name: string,
    help: string,
    buckets: readonly number[],
    labels?: readonly Label[],
  ): Histogram<Label>
  /** Runs before each scrape, to set gauges from the database. Returns what ends that. */
  onCollect(collect: () => Promise<void> | void): () => void
  render(): Promise<{ contentType: string; text: string }>
  /** All values now, to be merged with those of other processes. */
  snapshot(): Promise<MetricsSnapshot>
  /** The same with what other processes count. */
  total(): Promise<MetricsSnapshot>
  /** What other processes count: from now on `render` and `total` have it too. */
  include(others: () => Promise<MetricsSnapshot[]>): void
}

/** Metrics as data. Each says how values of several processes become one (`aggregator`: sum, max, …). */
export type MetricsSnapshot = (Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number] & { values?: unknown })[]

/** One snapshot of several. */
export const mergeSnapshots = (snapshots: readonly MetricsSnapshot[]): Promise<MetricsSnapshot> =>
  AggregatorRegistry.aggregate([...snapshots]).getMetricsAsJSON()

/** `processMetrics: true` adds CPU, memory and event-loop figures of the process; once per process. */
export const createMetrics = ({ processMetrics = false } = {}): Metrics => {
  const registry = new Registry()
  const collectors = new Set<() => Promise<void> | void>()
  if (processMetrics) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  const registers = [registry]
  let included: (() => Promise<MetricsSnapshot[]>) | undefined
  const snapshot = async (): Promise<MetricsSnapshot> => {
    await Promise.all([...collectors].map((collect) => collect()))
    return registry.getMetricsAsJSON()
  }
  const merged = async (others: Promise<MetricsSnapshot[]>) => {
    // Figures of a process are told apart by their labels, and nothing is added up or left out.
    const own = (await snapshot()).map((metric) =>
      metric.name.startsWith('surrogate_') ? metric : { ...metric, aggregator: 'sum' as const },
    )
    return AggregatorRegistry.aggregate([own, ...(await others)])
  }
  // Several parts of one process may share a metric; the first one to ask makes it.
  const once = <Metric>(name: string, make: () => Metric): Metric =>
    (registry.getSingleMetric(name) as Metric | undefined) ?? make()

  return {
    counter: (name, help, labels = []) => once(name, () => new Counter({ name, help, labelNames: labels, registers })),
    gauge: (name, help, labels = []) => once(name, () => new Gauge({ name, help, labelNames: labels, registers })),
    histogram: (name, help, buckets, labels = []) =>
      once(name, () => new Histogram({ name, help, buckets: [...buckets], labelNames: labels, registers })),
    onCollect(collect) {
      collectors.add(collect)
      return () => void collectors.delete(collect)
    },
    async render() {
      const { contentType } = registry
      if (included) return { contentType, text: await (await merged(included())).metrics() }
      await Promise.all([...collectors].map((collect) => collect()))
      return { contentType, text: await registry.metrics() }
    },
    snapshot,
    total: async () => (included ? (await merged(included())).getMetricsAsJSON() : snapshot()),
    include(others) {
      included = others
    },
  }
}
