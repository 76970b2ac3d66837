import { type Query, statement } from '../../platform/database/database.ts'
import type { LaneKey, Lease } from './lane-store.ts'

/**
 * Which lanes a relay takes next: fair between hooks, never two relays the same one. Lanes of gated hooks, whose
 * breaker is open or whose POSTs are counted, and test-sends are claimed apart: the plain claim is what runs all the
 * time.
 */
interface Claimant {
  /** Claims nothing when it is not among the relays that are alive. */
  relayId: string
  leaseMs: number
}

/** No relay has leased the lane, or the lease has ended. */
const isFree = `(leased_by IS NULL OR leased_until < now())`
// ready_at stays, so that a lane that is leased keeps its place in the indexes.
const leasedBy = (relay: string, ms: string) =>
  `fence = nextval('lane_fences'), leased_by = ${relay}, leased_until = now() + ${ms} * interval '1 millisecond'`
/** The row that was found and locked (`attempt-store.ts` says why). */
const isDue = `lanes.ctid = due.place`
const leaseColumns = `lanes.hook_id AS "hookId", lanes.entity_kind AS "entityKind", lanes.entity_id AS "entityId", lanes.fence,
   lanes.from_version AS "from"`

/** Hooks looked at by one claim. */
const visit = 100

// Only hooks that have lanes are looked at, with one step of the index each. A claim begins behind the last hook of the
// one before.
const claim = statement(
  'lanes-claim',
  `WITH RECURSIVE visited AS (
     (SELECT hook_id, 1 AS place FROM lanes WHERE hook_id > $1 ORDER BY hook_id LIMIT 1)
     UNION ALL
     SELECT next.hook_id, place + 1 FROM visited CROSS JOIN LATERAL (
       SELECT hook_id FROM lanes WHERE lanes.hook_id > visited.hook_id ORDER BY hook_id LIMIT 1) AS next
     WHERE place < ${visit}
   ),
   due AS (
     SELECT lane.place
     FROM (SELECT hook_id FROM visited ORDER BY visited.place) AS visited JOIN hooks ON hooks.id = visited.hook_id
     LEFT JOIN unnest($2::text[], $3::int[]) AS room (hook_id, lanes) ON room.hook_id = hooks.id
     CROSS JOIN LATERAL (
       SELECT ctid AS place, hook_id FROM lanes
       WHERE lanes.hook_id = hooks.id AND ready_at <= now() AND NOT test AND ${isFree}
       ORDER BY ready_at LIMIT coalesce(room.lanes, $4)
       FOR UPDATE SKIP LOCKED
     ) AS lane
     WHERE hooks.enabled AND NOT hooks.gated AND (hooks.paused_until IS NULL OR hooks.paused_until <= now())
       AND EXISTS (SELECT FROM relays WHERE id = $6 AND alive_until > now())
     LIMIT $5
   ),
   claimed AS (
     UPDATE lanes SET ${leasedBy('$6', '$7')} FROM due WHERE ${isDue}
     RETURNING lanes.hook_id, lanes.entity_kind, lanes.entity_id, lanes.fence, lanes.from_version
   ),
   reached AS (
     SELECT coalesce(max(hook_id), '') AS last, count(*) >= ${visit} AS more,
       EXISTS (SELECT FROM hooks WHERE gated) AS gated, EXISTS (SELECT FROM lanes WHERE test) AS tests
     FROM visited
   )
   SELECT hook_id AS "hookId", entity_kind AS "entityKind", entity_id AS "entityId", fence, from_version AS "from", reached.*
   FROM reached LEFT JOIN claimed ON true`,
)

export interface ClaimOptions extends Claimant {
  /** Lanes at most, over all hooks. */
  limit: number
  /** Lanes at most for a hook that is not in `room`. */
  perHook: number
  /** How many more lanes of these hooks; 0 = none. */
  room: ReadonlyMap<string, number>
  /** Where the last claim stopped. Default: at the beginning. */
  after?: string
}

export interface Claimed {
  leases: Lease[]
  /** For the next claim; empty when all hooks have had their turn. */
  after: string
  /** Some hooks are gated: `claimGatedLanes`. */
  gated: boolean
  /** There may be test-sends: `claimTestLanes`. */
  tests: boolean
}

/**
 * Claims lanes that are due, of enabled hooks that are neither paused nor gated: within a hook the longest due first,
 * hooks by turns. Several relays never get the same one.
 */
export const claimLanes = async (query: Query, options: ClaimOptions): Promise<Claimed> => {
  const { relayId, leaseMs, limit, perHook, room, after = '' } = options
  const values = [after, [...room.keys()], [...room.values()], perHook, limit, relayId, leaseMs]
  const rows = await query<LeaseRow & { last: string; more: boolean; gated: boolean; tests: boolean }>(claim, values)
  const [reached] = rows
  if (reached === undefined) throw new Error('a claim answers a row at least')
  const { last, more, gated, tests } = reached
  const leases = rows.filter((row) => row.fence !== null).map(leaseOf)
  const cut = leases.length === limit
  const stopped = leases.reduce((highest, { hookId }) => (hookId > highest ? hookId : highest), '')
  return { leases, after: cut ? stopped : more ? last : '', gated, tests }
}

type LeaseRow = LaneKey & { fence: number | null; from: number }
const leaseOf = ({ hookId, entityKind, entityId, fence, from }: LeaseRow): Lease => ({
  hookId,
  entityKind,
  entityId,
  fence: Number(fence),
  from,
})

// A rate limit's slots refill with time, at most one second's worth; `slots_from` is when there were none. An open
// breaker lets one POST through. A reserved slot is spent even if no POST follows. The row is locked as it is now: if
// another relay spent a slot meanwhile, this one gets none.
const claimGated = statement(
  'lanes-claim-gated',
  `WITH gate AS (
     SELECT id, open, rate, burst, slots_from, probe_at, least(
       CASE WHEN open THEN 1 END,
       CASE WHEN rate IS NULL THEN 1000 ELSE floor(least(burst, extract(epoch FROM now() - coalesce(slots_from, now() - interval '1 day')) * rate)) END,
       coalesce(room.lanes, $3))::int AS slots
     FROM (
       SELECT id, slots_from, probe_at, open_since IS NOT NULL AS open, rate, greatest(1, ceil(rate)) AS burst
       FROM (SELECT *, least(rate_limit, CASE WHEN catching_up THEN $4::int END) / 60.0::float8 AS rate FROM hooks WHERE gated) AS hooks
       WHERE enabled AND (paused_until IS NULL OR paused_until <= now()) AND (open_since IS NULL OR probe_at <= now())
     ) AS hook
     LEFT JOIN unnest($1::text[], $2::int[]) AS room (hook_id, lanes) ON room.hook_id = hook.id
     WHERE EXISTS (SELECT FROM relays WHERE id = $5 AND alive_until > now())
   ),
   entered AS (
     SELECT gate.id, open, rate, burst, slots FROM gate JOIN hooks USING (id)
     WHERE slots > 0 AND hooks.slots_from IS NOT DISTINCT FROM gate.slots_from
       AND hooks.probe_at IS NOT DISTINCT FROM gate.probe_at AND (catching_up OR EXISTS (
       SELECT FROM lanes WHERE lanes.hook_id = gate.id AND ready_at <= now() AND NOT test AND ${isFree}))
     ORDER BY id FOR NO KEY UPDATE OF hooks SKIP LOCKED
   ),
   due AS (
     SELECT lane.* FROM entered CROSS JOIN LATERAL (
       SELECT ctid AS place, hook_id FROM lanes
       WHERE lanes.hook_id = entered.id AND ready_at <= now() AND NOT test AND ${isFree}
       ORDER BY ready_at LIMIT entered.slots
       FOR UPDATE SKIP LOCKED
     ) AS lane
   ),
   claimed AS (UPDATE lanes SET ${leasedBy('$5', '$6')} FROM due WHERE ${isDue} RETURNING ${leaseColumns}),
   spent AS (
     UPDATE hooks SET
       slots_from = CASE WHEN rate IS NULL THEN hooks.slots_from
         ELSE greatest(hooks.slots_from, now() - burst / rate * interval '1 second') + taken / rate * interval '1 second' END,
       probe_at = CASE WHEN open AND taken > 0 THEN now() + $6 * interval '1 millisecond' ELSE hooks.probe_at END,
       catching_up = catching_up AND (taken > 0 OR EXISTS (
         SELECT FROM lanes WHERE lanes.hook_id = hooks.id AND leased_by IS NOT NULL))
     FROM (
       SELECT entered.*, (SELECT count(*) FROM claimed WHERE claimed."hookId" = entered.id) AS taken FROM entered
     ) AS entered
     WHERE hooks.id = entered.id AND (taken > 0 OR catching_up)
   )
   SELECT * FROM claimed`,
)

export interface GatedClaimOptions extends Claimant {
  perHook: number
  room: ReadonlyMap<string, number>
  /** POSTs a minute to a hook that catches up. */
  catchUpRate: number
}

/**
 * Claims lanes of gated hooks, each for one POST: a probe where the breaker is open, else what the rate limit has room
 * for.
 */
export const claimGatedLanes = (query: Query, options: GatedClaimOptions): Promise<Lease[]> => {
  const { relayId, leaseMs, perHook, room, catchUpRate } = options
  return query<Lease>(claimGated, [[...room.keys()], [...room.values()], perHook, catchUpRate, relayId, leaseMs])
}

const claimTests = statement(
  'lanes-claim-tests',
  `UPDATE lanes SET ${leasedBy('$1', '$2')} FROM (
     SELECT ctid AS place, hook_id FROM lanes
     WHERE test AND ready_at <= now() AND ${isFree} AND EXISTS (SELECT FROM relays WHERE id = $1 AND alive_until > now())
     ORDER BY ready_at LIMIT 16 FOR UPDATE SKIP LOCKED
   ) AS due WHERE ${isDue} RETURNING ${leaseColumns}`,
)

/** Claims test-sends, whatever the state of their hooks. */
export const claimTestLanes = (query: Query, { relayId, leaseMs }: Claimant): Promise<Lease[]> =>
  query<Lease>(claimTests, [relayId, leaseMs])

// Overdue lanes are left out: those that could be claimed have been.
const nextDue = statement(
  'lanes-next-due',
  `SELECT extract(epoch FROM min(due_at) - now()) * 1000 AS ms FROM (
     SELECT greatest(ready_at, paused_until, probe_at,
       slots_from + interval '1 minute' / least(rate_limit, CASE WHEN catching_up THEN $1::int END)) AS due_at
     FROM hooks CROSS JOIN LATERAL (
       SELECT ready_at FROM lanes WHERE lanes.hook_id = hooks.id AND NOT test AND ${isFree} ORDER BY ready_at LIMIT 1) AS lane
     WHERE gated AND enabled
   ) AS hook
   WHERE due_at > now() - $2 * interval '1 millisecond'`,
)

/**
 * Milliseconds until a lane of a gated hook is due: not before its next slot or probe. Below 0 when it has become due
 * within the last `sinceMs`, after the claim; undefined when there is none, or only some that are overdue for longer.
 */
export const msUntilGatedDue = async (
  query: Query,
  { catchUpRate, sinceMs }: { catchUpRate: number; sinceMs: number },
): Promise<number | undefined> => {
  const [row] = await query<{ ms: string | number | null }>(nextDue, [catchUpRate, sinceMs])
  return row?.ms == null ? undefined : Number(row.ms)
}
