import type { Metrics } from '../platform/metrics.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'
import type { LedgerFigures } from './ledger/figures-store.ts'
import type { HookChange } from './ledger/hook-health-store.ts'
import type { OpenDelivery } from './ledger/lane-store.ts'

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600]

/** Scrapes come from several sides; the figures are read once for all within so many ms. */
const keptMs = 5_000

/** What operators see of the relay; `readFigures` is called at a scrape. */
export const createRelayMetrics = (metrics: Metrics, readFigures: () => Promise<LedgerFigures>) => {
  const attempts = metrics.counter(
    'surrogate_webhook_attempts_total',
    'POSTs to webhook receivers, by what came of them.',
    ['result'],
  )
  const duration = metrics.histogram('surrogate_webhook_attempt_seconds', 'Duration of a POST to a receiver.', seconds)
  const lag = metrics.histogram(
    'surrogate_webhook_delivery_lag_seconds',
    'From recording an event to its successful delivery.',
    seconds,
  )
  const changes = metrics.counter(
    'surrogate_webhook_hook_changes_total',
    'Circuit breakers that this relay opened or closed, and hooks it disabled.',
    ['change'],
  )
  const outboxAge = metrics.gauge(
    'surrogate_outbox_oldest_seconds',
    'Age of the oldest event that no relay has taken in; 0 when there is none.',
  )
  const lanes = metrics.gauge('surrogate_webhook_lanes', 'Pairs of hook and entity with deliveries to be made.')
  const held = metrics.gauge('surrogate_webhook_held', 'Deliveries that wait for their hook to be enabled.')
  const dead = metrics.gauge('surrogate_webhook_dead', 'Deliveries that were given up and are still kept.')
  const breakers = metrics.gauge('surrogate_webhook_open_breakers', 'Hooks to which only probes are sent.')
  const disabled = metrics.gauge('surrogate_webhook_disabled_hooks', 'Hooks that are disabled.')
  const oldest = metrics.gauge(
    'surrogate_webhook_oldest_undelivered_seconds',
    'Age of the oldest undelivered event of an enabled hook: the 20 hooks where it is highest.',
    ['hook', 'breaker'],
  )
  let readAt = Number.NEGATIVE_INFINITY
  metrics.onCollect(async () => {
    if (performance.now() - readAt < keptMs) return
    const figures = await readFigures()
    readAt = performance.now()
    outboxAge.set(figures.outboxAge)
    lanes.set(figures.lanes)
    held.set(figures.held)
    dead.set(figures.dead)
    breakers.set(figures.openBreakers)
    disabled.set(figures.disabledHooks)
    oldest.reset()
    for (const { hookId, seconds: age, isOpen } of figures.oldest)
      oldest.set({ hook: hookId, breaker: isOpen ? 'open' : 'closed' }, age)
  })
  return {
    result(result: AttemptRecord, delivery: OpenDelivery) {
      attempts.inc({ result: result.state })
      duration.observe(result.durationMs / 1_000)
      if (result.state === 'succeeded')
        lag.observe(Math.max((result.at.getTime() - delivery.occurredAt.getTime() + result.durationMs) / 1_000, 0))
    },
    change(change: HookChange['change']) {
      changes.inc({ change: change.replace(' ', '_') })
    },
  }
}

/** Hooks named in metrics, at most: their number must not grow with the customers. */
export const namedHooks = 20
