import { createBackOff } from '../platform/back-off.ts'
import { type Database, type Query, statement } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import { createWakeUp, pause } from '../platform/wake-up.ts'
import type { BusEvent, EventBus } from './bus.ts'
import { createEventMetrics } from './event-metrics.ts'

/** Carries the outbox to the bus; runs in every issuer. */
export interface Publisher {
  /** Call it after the commit of something that recorded events. Costs nothing: wake-ups are coalesced. */
  wake(): void
  close(): Promise<void>
}

const batchSize = 500
/** Payloads above the first are read one after the other, and no more of them at a time than the second, in bytes. */
const bigPayload = { above: 16_384, together: 8_388_608 }
const pollMs = 1_000

// One publisher at a time, whichever process it is in: several would wait for each other's events of the same entity.
// One that hangs loses its transaction (`transactionIdleMs`).
const lock = statement('publisher-lock', `SELECT pg_advisory_xact_lock(7305179)`)
// By mark, not by "seq above the last one": an earlier number may be committed later. Per entity the numbers are in
// order, so an earlier event that is not published is among them. `skip locked`: a relay is ingesting it.
const take = statement(
  'publisher-take',
  `SELECT seq, id, entity_kind || ':' || entity_id AS key, version, type, octet_length(payload) AS bytes,
     CASE WHEN octet_length(payload) <= ${bigPayload.above} THEN payload END AS payload
   FROM (
     SELECT seq FROM outbox_pending WHERE published_at IS NULL ORDER BY seq LIMIT ${batchSize} FOR UPDATE SKIP LOCKED) AS pending
   CROSS JOIN LATERAL (
     SELECT id, entity_kind, entity_id, version, type, payload FROM outbox WHERE outbox.seq = pending.seq LIMIT 1) AS event
   ORDER BY seq`,
)
const payloads = statement('publisher-payloads', `SELECT id, payload FROM outbox WHERE id = ANY($1::uuid[])`)
const mark = statement('publisher-mark', `UPDATE outbox_pending SET published_at = now() WHERE seq = ANY($1::bigint[])`)
const oldest = statement(
  'publisher-oldest',
  `SELECT extract(epoch FROM now() - created_at)::float8 AS age FROM outbox
   WHERE seq = (SELECT min(seq) FROM outbox_pending WHERE published_at IS NULL)`,
)

interface PendingEvent extends BusEvent {
  seq: number
}

interface Row extends Omit<PendingEvent, 'payload'> {
  bytes: number
  payload: Buffer | null
}

/**
 * With a broker: publishes what is new, marks it once the broker has confirmed it, and goes on by itself after
 * failures. Without one there is nothing to carry, and `wake` only passes the wake-up on.
 */
export const createPublisher = (options: {
  database: Database
  bus: EventBus
  logger: Logger
  metrics?: Metrics
}): Publisher => {
  const { database, bus, logger, metrics } = options
  if (bus.transport === 'ledger') return { wake: bus.wake, close: async () => {} }
  const eventMetrics = createEventMetrics(metrics)
  if (metrics) measureOldest(metrics, database.query)

  const stopping = new AbortController()
  const { signal } = stopping

  const publishBatch = () =>
    database.transaction(async (query) => {
      await query(lock, [])
      const events = await withPayloads(query, await query<Row>(take, []))
      if (events.length === 0) return { published: 0, failed: 0 }
      const results = await bus.publish(events)
      const confirmed = events.filter((_, index) => results[index]?.outcome !== 'error')
      if (confirmed.length > 0) await query(mark, [confirmed.map(({ seq }) => seq)])
      eventMetrics.published(confirmed.map(({ id }) => id))
      const failed = results.find((result) => result.outcome === 'error')
      if (failed?.outcome === 'error')
        logger.warn({ reason: failed.error.message }, 'the broker refused events; trying again')
      eventMetrics.refused(events.length - confirmed.length)
      return { published: confirmed.length, failed: events.length - confirmed.length }
    })

  const run = async () => {
    const wakeUp = createWakeUp()
    const backOff = createBackOff()
    const stopListening = bus.onWake(wakeUp.wake)
    while (!signal.aborted) {
      // While the broker is away the database is left in peace.
      await bus.ready(signal)
      if (signal.aborted) break
      try {
        const { published, failed } = await publishBatch()
        if (failed > 0) await pause(backOff.next(), signal)
        else backOff.reset()
        if (published === 0 && failed === 0) await wakeUp.wait(pollMs, signal)
      } catch (error) {
        logger.error({ err: error }, 'events could not be published; trying again')
        await pause(backOff.next(), signal)
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

/** As many from the beginning as memory is meant for; at least one. */
const withPayloads = async (query: Query, rows: readonly Row[]): Promise<PendingEvent[]> => {
  let bytes = 0
  const kept = rows.filter(({ payload, bytes: size }, index) => {
    if (payload === null) bytes += size
    return index === 0 || bytes <= bigPayload.together
  })
  const big = kept.filter(({ payload }) => payload === null).map(({ id }) => id)
  const read = big.length === 0 ? [] : await query<{ id: string; payload: Buffer }>(payloads, [big])
  const found = new Map(read.map(({ id, payload }) => [id, payload]))
  return kept.flatMap(({ bytes: _, ...event }) => {
    const payload = event.payload ?? found.get(event.id)
    return payload === undefined ? [] : [{ ...event, payload }]
  })
}

const measureOldest = (metrics: Metrics, query: Query) => {
  const gauge = metrics.gauge(
    'surrogate_outbox_unpublished_oldest_seconds',
    'Age of the oldest event that the broker has not confirmed; 0 when there is none.',
  )
  metrics.onCollect(async () => {
    const [row] = await query<{ age: number }>(oldest, [])
    gauge.set(row?.age ?? 0)
  })
}
