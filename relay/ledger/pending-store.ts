import { type Query, statement } from '../../platform/database/database.ts'

/**
 * Events of the outbox that are still to be ingested: locking the next ones, and comparing what a broker brought with
 * the ledger.
 */

/** Locked until the transaction ends: nobody else ingests it. */
export interface PendingEvent {
  id: string
  seq: number
  type: string
  entityKind: string
  entityId: string
  version: number
  organizationId: string | null
  /** Its predecessor is not ingested yet. */
  follows: boolean
}

// The order of the joins is written out, row by row (LATERAL … LIMIT 1). The planner's idea of how many events wait is
// always outdated, and if it believes a table to be empty, it reads it as a whole for each row of another.
const event = `id, seq, type, entity_kind, entity_id, version, organization_id`
const columns = `pending.seq, event.id, event.type, event.entity_kind AS "entityKind", event.entity_id AS "entityId", event.version,
  event.organization_id AS "organizationId", follows IS NOT NULL AS follows`
const predecessor = (condition = 'true') => `LEFT JOIN LATERAL (
     SELECT seq FROM outbox AS earlier
     WHERE ${condition} AND event.version > 1 AND earlier.entity_kind = event.entity_kind AND earlier.entity_id = event.entity_id
       AND earlier.version = event.version - 1 LIMIT 1) AS before ON true
   LEFT JOIN LATERAL (SELECT true AS follows FROM outbox_pending WHERE outbox_pending.seq = before.seq LIMIT 1) AS waiting ON true`

// Waits for locks: a broker may deliver an event before its publisher, which holds the row, has marked it.
const lockById = statement(
  'pending-lock-by-id',
  `SELECT ${columns}
   FROM (
     SELECT found.* FROM (SELECT DISTINCT id FROM unnest($1::uuid[]) AS asked (id)) AS asked
     CROSS JOIN LATERAL (SELECT ${event} FROM outbox WHERE outbox.id = asked.id LIMIT 1) AS found ORDER BY seq OFFSET 0) AS event
   CROSS JOIN LATERAL (SELECT seq FROM outbox_pending WHERE outbox_pending.seq = event.seq LIMIT 1 FOR UPDATE) AS pending
   ${predecessor()}`,
)

/** Locks those of the events that are pending. */
export const lockPending = (query: Query, eventIds: readonly string[]): Promise<PendingEvent[]> =>
  query<PendingEvent>(lockById, [eventIds])

// By row, not by "seq above the last one": an earlier number may be committed later. An entity's events have rising
// numbers, so the predecessor of one of these can only be pending where a number was passed over, because another relay
// is ingesting it.
const lockNext = statement(
  'pending-lock-next',
  `WITH pending AS MATERIALIZED (SELECT seq FROM outbox_pending ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED),
   passed AS MATERIALIZED (
     SELECT count(*) > (SELECT count(*) FROM pending) AS over FROM outbox_pending
     WHERE seq <= (SELECT max(seq) FROM pending)
   )
   SELECT ${columns}
   FROM passed CROSS JOIN pending
   CROSS JOIN LATERAL (SELECT ${event} FROM outbox WHERE outbox.seq = pending.seq LIMIT 1) AS event
   ${predecessor('passed.over')}`,
)

/** Locks the oldest events that nobody else is ingesting. */
export const lockNextPending = (query: Query, limit: number): Promise<PendingEvent[]> =>
  query<PendingEvent>(lockNext, [limit])

// From each event back to the last one that is ingested: a hole is rarely deep. One statement takes all locks, in the
// order of the numbers, like everybody who ingests events.
const isPending = (event: string) =>
  `CROSS JOIN LATERAL (SELECT seq FROM outbox_pending WHERE outbox_pending.seq = ${event}.seq LIMIT 1) AS pending`
const lockWithEarlier = statement(
  'pending-lock-with-earlier',
  `WITH RECURSIVE open AS (
     SELECT event.* FROM unnest($1::uuid[]) AS asked (id)
     CROSS JOIN LATERAL (
       SELECT id, seq, entity_kind, entity_id, version FROM outbox WHERE outbox.id = asked.id LIMIT 1) AS event
     ${isPending('event')}
     UNION
     SELECT earlier.* FROM open
     CROSS JOIN LATERAL (
       SELECT id, seq, entity_kind, entity_id, version FROM outbox
       WHERE outbox.entity_kind = open.entity_kind AND outbox.entity_id = open.entity_id AND outbox.version = open.version - 1
       LIMIT 1) AS earlier
     ${isPending('earlier')}
   )
   SELECT event.id FROM (SELECT id, seq FROM open ORDER BY seq OFFSET 0) AS event
   CROSS JOIN LATERAL (SELECT seq FROM outbox_pending WHERE outbox_pending.seq = event.seq LIMIT 1 FOR UPDATE) AS pending`,
)

/**
 * Locks those of the events that are pending, and all pending events of the same entities before them: the ledger has
 * these, whatever the broker did with them. Must be the first statement of its transaction: one that holds such locks
 * already could cause a deadlock.
 */
export const lockPendingWithEarlier = async (query: Query, eventIds: readonly string[]): Promise<PendingEvent[]> => {
  const locked = await query<{ id: string }>(lockWithEarlier, [eventIds])
  return lockPending(
    query,
    locked.map(({ id }) => id),
  )
}

/**
 * The events that may be ingested now, in order of their versions. An event is left out if its predecessor is neither
 * ingested nor among them.
 */
export const inOrder = (events: readonly PendingEvent[]): PendingEvent[] => {
  const reached = new Map<string, number>()
  return events
    .toSorted((left, right) => left.version - right.version)
    .filter(({ entityKind, entityId, version, follows }) => {
      const entity = `${entityKind} ${entityId}`
      const isReady = !follows || reached.get(entity) === version - 1
      if (isReady) reached.set(entity, version)
      return isReady
    })
}

const compare = statement(
  'pending-compare',
  `SELECT message.id, event.id IS NULL AS unknown
   FROM unnest($1::uuid[], $2::bytea[]) AS message (id, digest) LEFT JOIN outbox AS event ON event.id = message.id
   WHERE event.id IS NULL OR sha256(event.payload) <> message.digest`,
)

/**
 * Which messages have ids that are not in the ledger, and which have other bytes than it. A digest of null is not
 * compared.
 */
export const compareMessages = async (
  query: Query,
  messages: readonly { eventId: string; digest: Buffer | null }[],
): Promise<{ unknown: string[]; different: string[] }> => {
  const values = [messages.map(({ eventId }) => eventId), messages.map(({ digest }) => digest)]
  const rows = await query<{ id: string; unknown: boolean }>(compare, values)
  const idsWhere = (unknown: boolean) => rows.filter((row) => row.unknown === unknown).map(({ id }) => id)
  return { unknown: idsWhere(true), different: idsWhere(false) }
}
