import { type Query, statement } from '../platform/database.ts'
import { patternsOf } from './event-patterns.ts'

/** The ledger as a whole: taking events in (once, in order, with a delivery for every hook that listens), its backlog, and its retention. */

/** Payloads above are read when they are sent, a few at a time. */
const biggest = 16_384

// The order of the joins is written out, row by row (LATERAL … LIMIT 1): how many events wait, and how many are kept, changes faster than what
// a planner knows of it, and one that takes a table for empty reads it as a whole for each row of another.
const event = `id, seq, type, entity_kind, entity_id, version`
const whole = `${event}, organization_id, created_at, payload`
/** `payloads`: whether they are read. */
const columns = (
  payloads: string,
) => `pending.seq, event.id, event.type, event.entity_kind AS "entityKind", event.entity_id AS "entityId",
     event.version, event.organization_id AS "organizationId", event.created_at AS "occurredAt",
     CASE WHEN ${payloads} AND octet_length(event.payload) <= ${biggest} THEN convert_from(event.payload, 'UTF8') END AS payload`
const follows = `LEFT JOIN LATERAL (
     SELECT seq FROM outbox AS earlier
     WHERE event.version > 1 AND earlier.entity_kind = event.entity_kind AND earlier.entity_id = event.entity_id
       AND earlier.version = event.version - 1 LIMIT 1) AS before ON true
   LEFT JOIN LATERAL (SELECT true AS follows FROM outbox_pending WHERE outbox_pending.seq = before.seq LIMIT 1) AS waiting ON true`
// Waits: a broker may deliver an event before its publisher, which holds the row, has marked it.
const lockEvents = statement(
  'ledger-lock-events',
  `SELECT ${columns('$2')}, follows IS NOT NULL AS follows
   FROM (
     SELECT found.* FROM (SELECT DISTINCT id FROM unnest($1::uuid[]) AS asked (id)) AS asked
     CROSS JOIN LATERAL (SELECT ${whole} FROM outbox WHERE outbox.id = asked.id LIMIT 1) AS found ORDER BY seq OFFSET 0) AS event
   CROSS JOIN LATERAL (SELECT seq FROM outbox_pending WHERE outbox_pending.seq = event.seq LIMIT 1 FOR UPDATE) AS pending
   ${follows}`,
)
// By row, not by "seq above the last one": an earlier number may be committed later. Rows that are being taken in are left to whoever does.
const lockNext = statement(
  'ledger-lock-next',
  `WITH pending AS MATERIALIZED (SELECT seq FROM outbox_pending ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED)
   SELECT ${columns('$2')}
   FROM pending CROSS JOIN LATERAL (SELECT ${whole} FROM outbox WHERE outbox.seq = pending.seq LIMIT 1) AS event
   ORDER BY pending.seq`,
)
const pendingUpTo = statement(
  'ledger-pending-up-to',
  `SELECT coalesce(string_agg(seq::text, ' '), '') AS seqs FROM outbox_pending WHERE seq <= $1`,
)
const following = statement(
  'ledger-following',
  `SELECT event.seq FROM unnest($1::bigint[]) AS asked (seq)
   CROSS JOIN LATERAL (SELECT ${event} FROM outbox WHERE outbox.seq = asked.seq LIMIT 1) AS event
   ${follows}
   WHERE follows`,
)

/** Who is told of the types in $2, by their patterns in $3, in the organizations of $4 or in none. `locking`: how the hooks are locked. */
export const listeners = (locking = '') => `named AS MATERIALIZED (
     SELECT type, string_to_array(patterns, ' ') AS patterns FROM unnest($2::text[], $3::text[]) AS known (type, patterns)
   ),
   listening AS (
     SELECT id, events, organization_ids,
       enabled AND NOT gated AND failures = 0 AND (paused_until IS NULL OR paused_until <= now()) AS is_well
     FROM hooks WHERE events && string_to_array(array_to_string($3::text[], ' '), ' ')
       AND (organization_ids IS NULL OR organization_ids && $4::text[]) ${locking}
   ),
   wanted AS MATERIALIZED (
     SELECT named.type, id, organization_ids, is_well FROM named JOIN listening ON listening.events && named.patterns
   )`

// No lane may outlive its hook. The upsert of lanes locks those that exist, also where it changes nothing: whoever is releasing one waits or is waited for, so that no delivery is left without a
// lane. The order of rows is the order of locks, the same everywhere.
const takeIn = statement(
  'ledger-take-in',
  `WITH removed AS (DELETE FROM outbox_pending WHERE seq = ANY($1::bigint[]) RETURNING seq),
   ${listeners('FOR KEY SHARE')},
   taken AS MATERIALIZED (
     SELECT removed.seq, event.* FROM removed CROSS JOIN LATERAL (
       SELECT id, type, entity_kind, entity_id, version, organization_id FROM outbox WHERE outbox.seq = removed.seq LIMIT 1) AS event
   ),
   queued AS (
     INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version)
     SELECT wanted.id, taken.id, taken.type, entity_kind, entity_id, version
     FROM taken JOIN wanted ON wanted.type = taken.type
       AND (wanted.organization_ids IS NULL OR taken.organization_id = ANY(wanted.organization_ids))
     ORDER BY seq, wanted.id
     ON CONFLICT (hook_id, entity_kind, entity_id, version) WHERE version IS NOT NULL DO NOTHING
     RETURNING hook_id, entity_kind, entity_id, version
   ),
   opened AS (
     INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at, from_version)
     SELECT hook_id, entity_kind, entity_id, now(), min(version) FROM queued GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
     ON CONFLICT (hook_id, entity_kind, entity_id) DO UPDATE SET from_version = excluded.from_version
       WHERE lanes.from_version > excluded.from_version
   )
   SELECT count(*) AS deliveries FROM queued`,
)

/** One that is still to be taken in, by whom its row is locked. */
export interface LockedEvent {
  id: string
  seq: number
  type: string
  entityKind: string
  entityId: string
  version: number
  organizationId: string | null
  occurredAt: Date
  /** JSON. Null when it was not asked for, or is too big to be read in advance. */
  payload: string | null
  /** Its predecessor is not taken in yet. */
  follows: boolean
}

/** `payloads`: reads them too, unless they are big. Default false. */
export interface Locking {
  payloads?: boolean
}

/** Of what changed: its changes are taken in, and delivered, in order. */
export const entityOf = ({ entityKind, entityId }: Pick<LockedEvent, 'entityKind' | 'entityId'>): string =>
  `${entityKind} ${entityId}`

export const lockPending = (
  query: Query,
  eventIds: readonly string[],
  { payloads = false }: Locking = {},
): Promise<LockedEvent[]> => query<LockedEvent>(lockEvents, [eventIds, payloads])

/**
 * The oldest that nobody else is taking in. `underWay`: what this process is taking in meanwhile in other transactions, by number. An event
 * comes after one of its entity with a lower number, so only where others have passed something over the ledger is asked what it was.
 */
export const lockNextPending = async (
  query: Query,
  {
    limit,
    payloads = false,
    underWay = new Map(),
  }: Locking & { limit: number; underWay?: ReadonlyMap<number, LockedEvent> },
): Promise<LockedEvent[]> => {
  const events = await query<Omit<LockedEvent, 'follows'>>(lockNext, [limit, payloads])
  if (events.length === 0) return []
  const [pending] = await query<{ seqs: string }>(pendingUpTo, [events.at(-1)!.seq])
  const locked = new Set(events.map(({ seq }) => seq))
  const passed = pending!.seqs.split(' ').filter((seq) => !locked.has(Number(seq)))
  const ours = new Set([...events, ...underWay.values()].map((one) => `${entityOf(one)} ${one.version}`))
  const isOthers = passed.some((seq) => !underWay.has(Number(seq)))
  const later = isOthers ? await query<{ seq: number }>(following, [[...locked]]) : []
  const after = new Set(later.map(({ seq }) => seq))
  return events.map((one) =>
    Object.assign(one, { follows: after.has(one.seq) || ours.has(`${entityOf(one)} ${one.version - 1}`) }),
  )
}

/**
 * Takes events in, once each: they are pending no more, and there is a delivery for every hook that listens. Runs in the transaction that
 * has locked them, whose owner acknowledges after its commit. `ready`: what `readyEvents` says of them. `stored`: numbers of those that
 * were taken in with their first attempts, in the same transaction.
 */
export const takeEventsIn = async (
  query: Query,
  ready: readonly LockedEvent[],
  stored: ReadonlySet<number> = new Set(),
): Promise<{ deliveries: number }> => {
  const rest = ready.filter(({ seq }) => !stored.has(seq))
  const [counted] =
    rest.length > 0
      ? await query<{ deliveries: number }>(takeIn, [rest.map(({ seq }) => seq), ...subjectsOf(rest)])
      : []
  return { deliveries: counted?.deliveries ?? 0 }
}

/** Those that may be taken in: of an entity in order. What comes after one that is neither taken in nor here is left out. */
export const readyEvents = (events: readonly LockedEvent[]): LockedEvent[] => {
  const reached = new Map<string, number>()
  return events
    .toSorted((left, right) => left.version - right.version)
    .filter((event) => {
      const { version, follows } = event
      const key = entityOf(event)
      const isReady = !follows || reached.get(key) === version - 1
      if (isReady) reached.set(key, version)
      return isReady
    })
}

/** What `listeners` reads: their types, the patterns that hooks may name these by, and their organizations. */
export const subjectsOf = (events: readonly LockedEvent[]) => {
  const types = [...new Set(events.map(({ type }) => type))]
  const organizationIds = [...new Set(events.flatMap(({ organizationId }) => organizationId ?? []))]
  return [types, types.map((type) => patternsOf(type).join(' ')), organizationIds]
}

// What follows looks at all that is kept, once an hour: planned anew each time, for what the tables hold by now, and not for indexes.
const lockRetention = statement(
  'ledger-retention-lock',
  `SELECT pg_try_advisory_xact_lock(7305173) AS mine, set_config('plan_cache_mode', 'force_custom_plan', true),
     set_config('enable_seqscan', 'on', true)`,
)
const expire = [
  statement(
    'ledger-expire-held',
    `UPDATE deliveries SET state = 'cancelled', finished_at = now(), died_at = now(), last_error = 'not delivered within the retention time'
     WHERE finished_at IS NULL AND id = ANY(ARRAY(
       SELECT open.id FROM open_deliveries AS open JOIN hooks ON hooks.id = open.hook_id
       WHERE NOT hooks.enabled AND open.created_at < now() - $1 * interval '1 millisecond'))`,
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
         AND NOT EXISTS (SELECT FROM open_deliveries WHERE event_id = outbox.id)
         AND NOT EXISTS (SELECT FROM deliveries WHERE event_id = outbox.id AND died_at IS NOT NULL AND state = 'dead')
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
  `SELECT coalesce((
            SELECT extract(epoch FROM now() - created_at) FROM outbox WHERE seq = (SELECT min(seq) FROM outbox_pending)), 0) AS "outboxAge",
          (SELECT count(*) FROM lanes) AS lanes`,
)

/** `outboxAge`: seconds since the oldest event that no relay has taken in. `lanes`: how many have something to deliver. */
export const backlogOf = async (query: Query): Promise<{ outboxAge: number; lanes: number }> => {
  const [row] = await query<{ outboxAge: string | number; lanes: number }>(backlog, [])
  return { outboxAge: Number(row!.outboxAge), lanes: row!.lanes }
}
