import type { Metrics } from '../../../platform/metrics.ts'
import { createEjection, type Ejection } from './ejection.ts'
import type { Outcome } from './target.ts'

export type HealthState = 'healthy' | 'unhealthy' | 'unknown'

/** What is known of a target; outlives configurations that keep it. */
export interface TargetRecord {
  running: number
  readonly outcomes: Record<Outcome, number>
  readonly ejection: Ejection
  /** As of the last check, whoever made it. */
  health: HealthState
  /** When it came, or was found well again. */
  since: number
}

/** With its series of metrics, until it is closed. */
export const openRecord = (
  labels: { upstream: string; target: string },
  metrics: Metrics,
  now: () => number,
): { record: TargetRecord; close: () => void } => {
  const record: TargetRecord = {
    running: 0,
    outcomes: { answered: 0, failed: 0, neither: 0 },
    ejection: createEjection(),
    health: 'unknown',
    since: now(),
  }
  const { running, requests, ejections, used } = targetMetrics(metrics)
  const shown: Record<Outcome, number> = { ...record.outcomes }
  let shownEjections = 0
  const outcomes = Object.keys(shown) as Outcome[]
  const stop = metrics.onCollect(() => {
    running.set(labels, record.running)
    ejections.inc(labels, record.ejection.count - shownEjections)
    shownEjections = record.ejection.count
    for (const outcome of outcomes) {
      requests.inc({ ...labels, outcome }, record.outcomes[outcome] - shown[outcome])
      shown[outcome] = record.outcomes[outcome]
    }
  })
  return {
    record,
    close() {
      stop()
      for (const metric of [running, ejections, used]) metric.remove(labels)
      for (const outcome of outcomes) requests.remove({ ...labels, outcome })
    },
  }
}

const ofTarget = ['upstream', 'target'] as const

export const targetMetrics = (metrics: Metrics) => ({
  used: metrics.gauge('surrogate_gateway_target_used', '1: gets requests; 0: is left out', ofTarget),
  running: metrics.gauge('surrogate_gateway_target_running', 'Requests with a target now', ofTarget),
  requests: metrics.counter('surrogate_gateway_target_requests_total', 'Requests that a target was asked', [
    ...ofTarget,
    'outcome',
  ]),
  ejections: metrics.counter(
    'surrogate_gateway_target_ejections_total',
    'Times that failures took a target out',
    ofTarget,
  ),
})
