import { type MetricsSnapshot, mergeSnapshots } from '../../platform/metrics.ts'

/** What workers count, for the metrics of the whole. */
export interface WorkerMetrics {
  /** Remembers what `worker` (its number) has counted so far. */
  add(worker: number, snapshot: MetricsSnapshot): void
  /** It has ended: its counters stay, so that those of the whole never fall. */
  end(worker: number): Promise<void>
  all(): MetricsSnapshot[]
}

/** These say the same in every process; all others are added up. */
const sameEverywhere = new Set([
  'surrogate_gateway_revocations',
  'surrogate_gateway_revocations_silent_seconds',
  'surrogate_gateway_revocations_stale',
  'surrogate_jwks_stale',
])

/** Of a process (`process_*`, `nodejs_*`): not to be added up, so each has the number of its worker. */
const ofProcess = (name: string) => !name.startsWith('surrogate_')

const grows = new Set(['counter', 'histogram'])

type Metric = MetricsSnapshot[number] & { type?: unknown; values?: { labels: object }[] }

export const createWorkerMetrics = (): WorkerMetrics => {
  const latest = new Map<number, MetricsSnapshot>()
  let ended: MetricsSnapshot = []

  const labelled = (metric: Metric, worker: number): Metric => {
    if (!ofProcess(metric.name)) {
      return sameEverywhere.has(metric.name) ? ({ ...metric, aggregator: 'max' } as Metric) : metric
    }
    const values = (metric.values ?? []).map((value) => ({ ...value, labels: { ...value.labels, worker } }))
    return { ...metric, aggregator: 'sum', values } as Metric
  }

  return {
    add: (worker, snapshot) =>
      void latest.set(
        worker,
        (snapshot as Metric[]).map((metric) => labelled(metric, worker)),
      ),
    async end(worker) {
      const last = latest.get(worker) as Metric[] | undefined
      latest.delete(worker)
      if (!last) return
      const counters = last.filter(({ name, type }) => !ofProcess(name) && grows.has(String(type)))
      ended = await mergeSnapshots([ended, counters])
    },
    all: () => [ended, ...latest.values()],
  }
}
