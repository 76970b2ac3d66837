import { type Query, statement } from '../platform/database.ts'

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
const lockWithEarlier = statement(
  'inbox-lock-with-earlier',
  `WITH RECURSIVE open AS (
     SELECT entity_kind, entity_id, version FROM outbox JOIN outbox_pending USING (seq) WHERE id = ANY($1::uuid[])
     UNION
     SELECT earlier.entity_kind, earlier.entity_id, earlier.version
     FROM open JOIN outbox AS earlier
       ON earlier.entity_kind = open.entity_kind AND earlier.entity_id = open.entity_id AND earlier.version = open.version - 1
     JOIN outbox_pending AS pending ON pending.seq = earlier.seq
   )
   SELECT event.id FROM open JOIN outbox AS event
     ON event.entity_kind = open.entity_kind AND event.entity_id = open.entity_id AND event.version = open.version
   JOIN outbox_pending AS pending ON pending.seq = event.seq
   ORDER BY event.seq FOR UPDATE OF pending`,
)

/**
 * Locks events that are not taken in yet, and all earlier ones of their entities, which the ledger has whatever the broker did with
 * them. Returns their ids. Must be the first statement of its transaction: who holds such locks already could wait in a circle.
 */
export const lockEventsWithEarlier = async (query: Query, eventIds: readonly string[]): Promise<string[]> =>
  (await query<{ id: string }>(lockWithEarlier, [eventIds])).map(({ id }) => id)
