import type { AttemptRecord, OpenDelivery } from '../events/lane-store.ts'
import type { Metrics } from '../platform/metrics.ts'

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600]

/** What operators see of the relay; `backlog` is asked at each scrape. */
export const createRelayMetrics = (metrics: Metrics, backlog: () => Promise<{ outboxAge: number; lanes: number }>) => {
  const attempts = metrics.counter(
    'surrogate_webhook_attempts_total',
    'POSTs to webhook receivers, by what came of them.',
    ['result'],
  )
  const duration = metrics.histogram('surrogate_webhook_attempt_seconds', 'Duration of a POST to a receiver.', seconds)
  const lag = metrics.histogram(
    'surrogate_webhook_delivery_lag_seconds',
    'From taking an event in to its successful delivery.',
    seconds,
  )
  const outboxAge = metrics.gauge(
    'surrogate_outbox_oldest_seconds',
    'Age of the oldest event that no relay has taken in; 0 when there is none.',
  )
  const lanes = metrics.gauge('surrogate_webhook_lanes', 'Pairs of hook and entity with deliveries to be made.')
  metrics.onCollect(async () => {
    const now = await backlog()
    outboxAge.set(now.outboxAge)
    lanes.set(now.lanes)
  })
  return {
    result(result: AttemptRecord, delivery: OpenDelivery) {
      attempts.inc({ result: result.state })
      duration.observe(result.durationMs / 1_000)
      if (result.state === 'succeeded')
        lag.observe(Math.max((result.at.getTime() - delivery.createdAt.getTime() + result.durationMs) / 1_000, 0))
    },
  }
}
