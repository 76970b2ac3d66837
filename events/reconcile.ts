import { type Database, statement } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { EventBus } from './bus.ts'
import { pause } from './wakeup.ts'

/** Repeats what a broker confirmed but no relay ever took in: a broker may lose everything without an event being lost. */
export interface Reconciler {
  close(): Promise<void>
}

export interface ReconcilerOptions {
  database: Database
  bus: EventBus
  logger: Logger
  /** How long after publishing an event counts as lost, in ms. Default 30 000. */
  patienceMs?: number
}

const batchSize = 1_000

// The publisher finds them again, in order per entity. Marks of later events of the same entity go too, so that none overtakes.
const unmark = statement(
  'reconcile-unmark',
  `WITH lost AS (
     SELECT entity_kind, entity_id, min(version) AS version FROM (
       SELECT entity_kind, entity_id, version FROM outbox
       WHERE ingested_at IS NULL AND published_at < now() - $1 * interval '1 millisecond'
       ORDER BY seq LIMIT $2
     ) AS late GROUP BY entity_kind, entity_id
   )
   UPDATE outbox SET published_at = NULL FROM lost
   WHERE outbox.entity_kind = lost.entity_kind AND outbox.entity_id = lost.entity_id AND outbox.version >= lost.version
     AND outbox.ingested_at IS NULL AND outbox.published_at IS NOT NULL
   RETURNING outbox.id`,
)

export const startReconciler = ({ database, bus, logger, patienceMs = 30_000 }: ReconcilerOptions): Reconciler => {
  if (bus.transport === 'ledger') return { close: async () => {} }
  const stopping = new AbortController()

  const run = async () => {
    while (!stopping.signal.aborted) {
      await pause(Math.max(patienceMs / 3, 10), stopping.signal)
      if (stopping.signal.aborted) return
      try {
        const lost = await database.query(unmark, [patienceMs, batchSize])
        if (lost.length === 0) continue
        logger.warn({ events: lost.length }, 'published events never arrived at a relay; publishing them again')
        bus.wake()
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
