import { type MetricsSnapshot, mergeSnapshots } from '../../platform/metrics.ts'

/** What workers count, for the metrics of the whole. */
export interface WorkerMetrics {
  /** Remembers what `worker` (its number) has counted so far. */
  add(worker: number, snapshot: MetricsSnapshot): void
  /** It has ended: its counters stay, so that those of the whole never fall. */
  end(worker: number): void
  all(): MetricsSnapshot[]
}

/** These are no sums: most say the same in every process, and of targets the worst counts. All others are added up. */
const aggregators: Record<string, 'max' | 'min'> = {
  surrogate_gateway_certificate_expiry_seconds: 'min',
  surrogate_gateway_certificates_stale: 'max',
  surrogate_gateway_revocations: 'max',
  surrogate_gateway_revocations_silent_seconds: 'max',
  surrogate_gateway_revocations_stale: 'max',
  surrogate_jwks_stale: 'max',
  surrogate_gateway_target_used: 'min',
  surrogate_gateway_upstream_overdrawn: 'max',
}

/** Of a process (`process_*`, `nodejs_*`): not to be added up, so each has the number of its worker. */
const ofProcess = (name: string) => !name.startsWith('surrogate_')

const grows = new Set(['counter', 'histogram'])

type Metric = MetricsSnapshot[number] & { type?: unknown; values?: { labels: object }[] }

export const createWorkerMetrics = (): WorkerMetrics => {
  const latest = new Map<number, MetricsSnapshot>()
  /** Of those that have ended, first what was added up already. */
  const ended: MetricsSnapshot[] = []
  let addingUp = Promise.resolve()

  const addUp = async () => {
    const parts = [...ended]
    const sum = await mergeSnapshots(parts)
    ended.splice(0, parts.length, sum)
  }

  const labelled = (metric: Metric, worker: number): Metric => {
    if (!ofProcess(metric.name)) {
      const aggregator = aggregators[metric.name]
      return aggregator ? ({ ...metric, aggregator } as Metric) : metric
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
    end(worker) {
      const last = latest.get(worker) as Metric[] | undefined
      latest.delete(worker)
      if (!last) return
      const counters = last.filter(({ name, type }) => !ofProcess(name) && grows.has(String(type)))
      ended.push(counters)
      addingUp = addingUp.then(addUp).catch(() => {})
    },
    all: () => [...ended, ...latest.values()],
  }
}
