import { type Query, statement } from '../platform/database.ts'
import { patternsOf } from './catalogue.ts'

/** The ledger as a whole: taking events in (once, in order, with a delivery for every hook that listens), its backlog, and its retention. */

// Waits: a broker may deliver an event before its publisher, which holds the row, has marked it.
const lockEvents = statement(
  'ledger-lock-events',
  `SELECT seq, type, entity_kind || ':' || entity_id AS key, version, version > 1 AND EXISTS (
     SELECT FROM outbox AS earlier JOIN outbox_pending USING (seq)
     WHERE earlier.entity_kind = event.entity_kind AND earlier.entity_id = event.entity_id
       AND earlier.version = event.version - 1) AS follows
   FROM outbox AS event JOIN outbox_pending AS pending USING (seq) WHERE id = ANY($1::uuid[])
   ORDER BY seq FOR UPDATE OF pending`,
)

// The upsert of lanes locks those that exist: whoever is releasing one waits or is waited for, so that no delivery is left without a
// lane. The order of rows is the order of locks, the same everywhere.
const takeIn = statement(
  'ledger-take-in',
  `WITH removed AS (DELETE FROM outbox_pending WHERE seq = ANY($1::bigint[]) RETURNING seq),
   taken AS (
     SELECT id, seq, type, entity_kind, entity_id, version, organization_id FROM removed JOIN outbox USING (seq)
   ),
   named AS (
     SELECT type, string_to_array(patterns, ' ') AS patterns FROM unnest($2::text[], $3::text[]) AS known (type, patterns)
   ),
   listening AS (
     SELECT id, events, organization_ids FROM hooks
     WHERE events && string_to_array(array_to_string($3::text[], ' '), ' ') FOR KEY SHARE
   ),
   queued AS (
     INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version)
     SELECT listening.id, taken.id, taken.type, taken.entity_kind, taken.entity_id, taken.version
     FROM taken JOIN named ON named.type = taken.type JOIN listening ON listening.events && named.patterns
       AND (listening.organization_ids IS NULL OR taken.organization_id = ANY(listening.organization_ids))
     ORDER BY taken.seq, listening.id
     ON CONFLICT DO NOTHING
     RETURNING hook_id, entity_kind, entity_id
   ),
   opened AS (
     INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at)
     SELECT hook_id, entity_kind, entity_id, now() FROM queued GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
     ON CONFLICT (hook_id, entity_kind, entity_id) DO UPDATE SET ready_at = lanes.ready_at
   )
   SELECT count(*) AS deliveries FROM queued`,
)

interface LockedEvent {
  seq: number
  type: string
  key: string
  version: number
  /** Its predecessor is not taken in yet. */
  follows: boolean
}

/**
 * Takes events in, once each: they are pending no more, and there is a delivery for every hook that listens. In order per entity: an event
 * whose predecessor is neither taken in nor in this call is `deferred`. Runs in a transaction of the caller's, who acknowledges after its
 * commit.
 */
export const takeEventsIn = async (
  query: Query,
  eventIds: readonly string[],
): Promise<{ taken: number; deliveries: number; deferred: number }> => {
  const locked = await query<LockedEvent>(lockEvents, [eventIds])
  const ready = inOrder(locked)
  const types = [...new Set(locked.map(({ type }) => type))]
  const patterns = types.map((type) => patternsOf(type).join(' '))
  const [counted] = ready.length > 0 ? await query<{ deliveries: number }>(takeIn, [ready, types, patterns]) : []
  return { taken: ready.length, deliveries: counted?.deliveries ?? 0, deferred: locked.length - ready.length }
}

const inOrder = (events: readonly LockedEvent[]): number[] => {
  const reached = new Map<string, number>()
  const ready: number[] = []
  for (const { seq, key, version, follows } of events.toSorted((left, right) => left.version - right.version)) {
    if (follows && reached.get(key) !== version - 1) continue
    reached.set(key, version)
    ready.push(seq)
  }
  return ready
}

const lockRetention = statement('ledger-retention-lock', `SELECT pg_try_advisory_xact_lock(7305173) AS mine`)
const expire = [
  statement(
    'ledger-expire-held',
    `UPDATE deliveries SET state = 'cancelled', finished_at = now(), last_error = 'not delivered within the retention time'
     WHERE state IN ('pending', 'retrying') AND created_at < now() - $1 * interval '1 millisecond'
       AND EXISTS (SELECT FROM hooks WHERE hooks.id = deliveries.hook_id AND NOT hooks.enabled)`,
  ),
  statement('ledger-expire-attempts', `DELETE FROM delivery_attempts WHERE at < now() - $1 * interval '1 millisecond'`),
  statement(
    'ledger-expire-deliveries',
    `DELETE FROM deliveries WHERE finished_at < now() - $1 * interval '1 millisecond'`,
  ),
  // A dead letter can be sent again, so its bytes stay as long as it does.
  statement(
    'ledger-expire-outbox',
    `WITH removed AS (
       DELETE FROM outbox WHERE created_at < now() - $1 * interval '1 millisecond'
         AND NOT EXISTS (SELECT FROM outbox_pending AS pending WHERE pending.seq = outbox.seq)
         AND NOT EXISTS (SELECT FROM deliveries WHERE event_id = outbox.id AND state IN ('pending', 'retrying'))
         AND NOT EXISTS (SELECT FROM deliveries WHERE event_id = outbox.id AND state = 'dead')
       RETURNING seq)
     UPDATE outbox_removed SET seq = greatest(seq, (SELECT max(seq) FROM removed))`,
  ),
  statement('ledger-expire-replays', `DELETE FROM replays WHERE finished_at < now() - $1 * interval '1 millisecond'`),
  statement(
    'ledger-expire-test-targets',
    `DELETE FROM test_targets WHERE created_at < now() - $1 * interval '1 millisecond'`,
  ),
]

/** Removes what is older than `keepMs`; nothing that is still to be taken in or delivered. One process at a time. */
export const removeExpired = async (query: Query, keepMs: number): Promise<void> => {
  const [lock] = await query<{ mine: boolean }>(lockRetention, [])
  if (!lock?.mine) return
  for (const one of expire) await query(one, [keepMs])
}

const backlog = statement(
  'ledger-backlog',
  `SELECT coalesce((SELECT extract(epoch FROM now() - created_at) FROM outbox_pending JOIN outbox USING (seq)
            ORDER BY seq LIMIT 1), 0) AS "outboxAge",
          (SELECT count(*) FROM lanes) AS lanes`,
)

/** `outboxAge`: seconds since the oldest event that no relay has taken in. `lanes`: how many have something to deliver. */
export const backlogOf = async (query: Query): Promise<{ outboxAge: number; lanes: number }> => {
  const [row] = await query<{ outboxAge: string | number; lanes: number }>(backlog, [])
  return { outboxAge: Number(row!.outboxAge), lanes: row!.lanes }
}
