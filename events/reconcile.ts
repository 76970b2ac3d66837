import { type Database, statement } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { pause } from '../platform/wake-up.ts'
import type { EventBus } from './bus.ts'
import { createEventMetrics } from './event-metrics.ts'

/**
 * Repeats what a broker confirmed but no relay ever ingested: a broker may lose everything without an event being lost.
 */
export interface Reconciler {
  close(): Promise<void>
}

export interface ReconcilerOptions {
  database: Database
  bus: EventBus
  logger: Logger
  metrics?: Metrics
  /** How long after publishing an event may count as lost, in ms. Default 30 000. */
  patienceMs?: number | undefined
}

const batchSize = 1_000
/** After so many times the patience an event is published again whatever the bus says. */
const lastResort = 20

// The publisher finds them again. `skip locked`: a relay is ingesting it, or another reconciler is at it.
const unmark = statement(
  'reconcile-unmark',
  `WITH lost AS (
     SELECT seq FROM outbox_pending
     WHERE published_at < least(now() - $1 * interval '1 millisecond', $2::timestamptz)
       OR published_at < now() - $1 * ${lastResort} * interval '1 millisecond'
     ORDER BY seq LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
   )
   UPDATE outbox_pending SET published_at = NULL WHERE seq = ANY(ARRAY(SELECT seq FROM lost)) RETURNING seq`,
)

/** Runs in every relay. What the bus may still bring is not repeated, so a long backlog does not grow by itself. */
export const startReconciler = (options: ReconcilerOptions): Reconciler => {
  const { database, bus, logger, metrics, patienceMs = 30_000 } = options
  if (bus.transport === 'ledger') return { close: async () => {} }
  const eventMetrics = createEventMetrics(metrics)
  const stopping = new AbortController()
  const { signal } = stopping

  /** Returns how many. */
  const repeatLost = async (): Promise<number> => {
    const lostBefore = await bus.lostBefore()
    if (lostBefore === undefined) return 0
    const lost = await database.query(unmark, [patienceMs, lostBefore])
    if (lost.length === 0) return 0
    eventMetrics.republished(lost.length)
    logger.warn({ events: lost.length }, 'published events never arrived at a relay; publishing them again')
    bus.wake()
    return lost.length
  }

  const run = async () => {
    while (!signal.aborted) {
      await pause(Math.max(patienceMs / 3, 10), signal)
      try {
        while (!signal.aborted && (await repeatLost()) === batchSize);
      } catch (error) {
        logger.error({ err: error }, 'reconciling failed; trying again')
      }
    }
  }
  const ended = run()
  return {
    async close() {
      stopping.abort()
      await ended
    },
  }
}
