import { type Query, statement } from '../../platform/database.ts'

/** What a broker brought, held against the ledger, which has the last word. */

const inspect = statement(
  'inbox-inspect',
  `SELECT message.id, event.id IS NULL AS unknown
   FROM unnest($1::uuid[], $2::bytea[]) AS message (id, digest) LEFT JOIN outbox AS event ON event.id = message.id
   WHERE event.id IS NULL OR sha256(event.payload) <> message.digest`,
)

/** Ids that are not in the ledger, and ids whose bytes differ from the ledger's. A digest of null is not compared. */
export const inspectMessages = async (
  query: Query,
  eventIds: readonly string[],
  digests: readonly (Buffer | null)[],
): Promise<{ unknown: string[]; different: string[] }> => {
  const rows = await query<{ id: string; unknown: boolean }>(inspect, [eventIds, digests])
  const idsWhere = (unknown: boolean) => rows.filter((row) => row.unknown === unknown).map(({ id }) => id)
  return { unknown: idsWhere(true), different: idsWhere(false) }
}

// From each event back to the last one that is taken in: a hole is rarely deep. One statement takes all locks, in the order of the
// numbers, as everybody who takes events in does.
const isPending = (event: string) =>
  `CROSS JOIN LATERAL (SELECT seq FROM outbox_pending WHERE outbox_pending.seq = ${event}.seq LIMIT 1) AS pending`
const lockWithEarlier = statement(
  'inbox-lock-with-earlier',
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
 * Locks events that are not taken in yet, and all earlier ones of their entities, which the ledger has whatever the broker did with
 * them. Returns their ids. Must be the first statement of its transaction: who holds such locks already could wait in a circle.
 */
export const lockEventsWithEarlier = async (query: Query, eventIds: readonly string[]): Promise<string[]> =>
  (await query<{ id: string }>(lockWithEarlier, [eventIds])).map(({ id }) => id)
