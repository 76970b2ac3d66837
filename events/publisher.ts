import { type Database, statement } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { EventBus } from './bus.ts'
import { createBackoff, createWakeup, pause } from './wakeup.ts'

/** Carries the outbox to the bus; runs in every issuer. */
export interface Publisher {
  /** Call it after the commit of something that recorded events. Costs nothing: wake-ups are coalesced. */
  wake(): void
  close(): Promise<void>
}

const batchSize = 500
const pollMs = 1_000

// Only events whose predecessor is published: a later one must not overtake it, not even when the broker refuses just the first.
// `skip locked`: several publishers share the work.
const take = statement(
  'publisher-take',
  `SELECT id, entity_kind || ':' || entity_id AS key, version, type, payload
   FROM outbox AS event
   WHERE published_at IS NULL AND ingested_at IS NULL AND NOT EXISTS (
     SELECT FROM outbox AS earlier
     WHERE earlier.entity_kind = event.entity_kind AND earlier.entity_id = event.entity_id
       AND earlier.version = event.version - 1 AND earlier.published_at IS NULL AND earlier.ingested_at IS NULL)
   ORDER BY seq LIMIT $1
   FOR UPDATE SKIP LOCKED`,
)
const mark = statement('publisher-mark', `UPDATE outbox SET published_at = now() WHERE id = ANY($1::uuid[])`)

interface Row {
  id: string
  key: string
  version: number
  type: string
  payload: Buffer
}

/**
 * With a broker: publishes what is new, marks it once the broker has confirmed it, and goes on by itself after failures. Without one
 * there is nothing to carry, and `wake` only passes the wake-up on.
 */
export const createPublisher = (options: { database: Database; bus: EventBus; logger: Logger }): Publisher => {
  const { database, bus, logger } = options
  if (bus.transport === 'ledger') return { wake: bus.wake, close: async () => {} }

  const stopping = new AbortController()
  const { signal } = stopping

  const publishBatch = () =>
    database.transaction(async (query) => {
      const rows = await query<Row>(take, [batchSize])
      if (rows.length === 0) return { published: 0, failed: 0 }
      const results = await bus.publish(rows)
      const confirmed = rows.filter((_, index) => results[index] && results[index].outcome !== 'error')
      if (confirmed.length > 0) await query(mark, [confirmed.map(({ id }) => id)])
      const failed = results.find((result) => result.outcome === 'error')
      if (failed?.outcome === 'error') logger.warn({ err: failed.error }, 'the broker refused events; trying again')
      return { published: confirmed.length, failed: rows.length - confirmed.length }
    })

  const run = async () => {
    const wakeup = createWakeup()
    const backoff = createBackoff()
    const stopListening = bus.onWake(wakeup.wake)
    while (!signal.aborted) {
      try {
        const { published, failed } = await publishBatch()
        if (failed > 0) await pause(backoff.next(), signal)
        else backoff.reset()
        if (published === 0 && failed === 0) await wakeup.wait(pollMs, signal)
      } catch (error) {
        logger.error({ err: error }, 'events could not be published; trying again')
        await pause(backoff.next(), signal)
      }
    }
    stopListening()
  }
  const ended = run()

  return {
    wake: bus.wake,
    async close() {
      stopping.abort()
      await ended
    },
  }
}
