import { type Query, statement } from '../platform/database.ts'

/**
 * Lanes: the deliveries of one hook about one entity, in order. A relay claims lanes, reads their first open deliveries, and records what
 * came of each attempt; fences keep a relay that lost its lease from writing.
 */
export interface LaneKey {
  hookId: string
  entityKind: string
  entityId: string
}

const claim = statement(
  'ledger-claim',
  `WITH due AS (
     SELECT lane.hook_id, lane.entity_kind, lane.entity_id
     FROM hooks LEFT JOIN unnest($1::text[], $2::int[]) AS room (hook_id, lanes) ON room.hook_id = hooks.id
     CROSS JOIN LATERAL (
       SELECT hook_id, entity_kind, entity_id FROM lanes
       WHERE lanes.hook_id = hooks.id AND ready_at <= now()
       ORDER BY ready_at LIMIT coalesce(room.lanes, $3)
       FOR UPDATE SKIP LOCKED
     ) AS lane
     WHERE hooks.enabled AND (hooks.paused_until IS NULL OR hooks.paused_until <= now())
     LIMIT $4
   )
   UPDATE lanes SET fence = nextval('lane_fences'), leased_by = $5, ready_at = now() + $6 * interval '1 millisecond'
   FROM due
   WHERE lanes.hook_id = due.hook_id AND lanes.entity_kind = due.entity_kind AND lanes.entity_id = due.entity_id
   RETURNING lanes.hook_id AS "hookId", lanes.entity_kind AS "entityKind", lanes.entity_id AS "entityId", lanes.fence`,
)

/** A lane that is ours until the lease ends. What is written under an older `fence` than the lane's has no effect. */
export interface Lease extends LaneKey {
  fence: number
}

export interface ClaimOptions {
  relayId: string
  leaseMs: number
  /** Lanes at most, over all hooks. */
  limit: number
  /** Lanes at most for a hook that is not in `room`. */
  perHook: number
  /** How many more lanes of these hooks; 0 = none. */
  room: ReadonlyMap<string, number>
}

/** Claims lanes that are due, of enabled hooks that are not paused, the longest due first within a hook. Several relays never get the same one. */
export const claimLanes = (query: Query, options: ClaimOptions): Promise<Lease[]> => {
  const { relayId, leaseMs, limit, perHook, room } = options
  return query<Lease>(claim, [[...room.keys()], [...room.values()], perHook, limit, relayId, leaseMs])
}

// A statement of its own: what the claim's snapshot saw may be older than the lock it got.
const heads = statement(
  'ledger-heads',
  `SELECT lane.fence, open.id, open.event_id AS "eventId", open.type, open.version, open.attempts,
          open.created_at AS "createdAt", coalesce(open.payload, outbox.payload) AS payload,
          coalesce((
            SELECT earlier.state = 'dead' FROM deliveries AS earlier
            WHERE earlier.hook_id = lane.hook_id AND earlier.entity_kind = lane.entity_kind
              AND earlier.entity_id = lane.entity_id AND earlier.version < open.version
            ORDER BY earlier.version DESC LIMIT 1
          ), false) AS gap
   FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS lane (hook_id, entity_kind, entity_id, fence)
   CROSS JOIN LATERAL (
     SELECT * FROM deliveries
     WHERE deliveries.hook_id = lane.hook_id AND deliveries.entity_kind = lane.entity_kind
       AND deliveries.entity_id = lane.entity_id AND state IN ('pending', 'retrying')
     ORDER BY version LIMIT $5
   ) AS open
   LEFT JOIN outbox ON outbox.id = open.event_id
   ORDER BY lane.fence, open.version`,
)

export interface OpenDelivery {
  id: number
  eventId: string
  type: string
  version: number
  /** POSTs so far. */
  attempts: number
  createdAt: Date
  /** Null when the event is no longer kept. */
  payload: Buffer | null
  /** The delivery before it in the lane was given up. */
  gap: boolean
}

const columns = (lanes: readonly Lease[]) => [
  lanes.map(({ hookId }) => hookId),
  lanes.map(({ entityKind }) => entityKind),
  lanes.map(({ entityId }) => entityId),
  lanes.map(({ fence }) => fence),
]

/** The first open deliveries of claimed lanes, at most `perLane` each, in order, by fence. */
export const openDeliveries = async (
  query: Query,
  leases: readonly Lease[],
  perLane: number,
): Promise<Map<number, OpenDelivery[]>> => {
  const rows = await query<OpenDelivery & { fence: number }>(heads, [...columns(leases), perLane])
  return Map.groupBy(rows, ({ fence }) => fence)
}

const targets = statement(
  'ledger-targets',
  `SELECT hooks.id, url, sealed_headers AS "sealedHeaders", (
     SELECT coalesce(array_agg(sealed ORDER BY hook_signing_keys.expires_at DESC NULLS FIRST), '{}') FROM hook_signing_keys
     WHERE hook_id = hooks.id AND (expires_at IS NULL OR expires_at > now())) AS "sealedKeys"
   FROM hooks WHERE hooks.id = ANY($1::text[])`,
)

export interface SealedTarget {
  id: string
  url: string
  sealedHeaders: Buffer | null
  /** Newest first. */
  sealedKeys: Buffer[]
}

export const targetsOf = (query: Query, hookIds: readonly string[]): Promise<SealedTarget[]> =>
  query<SealedTarget>(targets, [hookIds])

const nextDue = statement(
  'ledger-next-due',
  `SELECT extract(epoch FROM min(due) - now()) * 1000 AS ms FROM hooks CROSS JOIN LATERAL (
     SELECT greatest(ready_at, hooks.paused_until) AS due FROM lanes WHERE lanes.hook_id = hooks.id ORDER BY ready_at LIMIT 1
   ) AS first WHERE hooks.enabled`,
)

/** Milliseconds until a lane is due (below 0: overdue); undefined when there is none. */
export const msUntilDue = async (query: Query): Promise<number | undefined> => {
  const [row] = await query<{ ms: string | number | null }>(nextDue, [])
  return row?.ms == null ? undefined : Number(row.ms)
}

/** What one POST came to. */
export interface AttemptRecord {
  lease: Lease
  deliveryId: number
  at: Date
  durationMs: number
  state: 'succeeded' | 'retrying' | 'dead'
  /** For `retrying`, in ms from now. */
  retryInMs: number
  requestHeaders: Record<string, string>
  status: number | null
  responseHeaders: Record<string, string> | null
  /** The first 16 kB. */
  responseBody: Buffer | null
  error: string | null
  address: string | null
  /** The receiver asked for silence: nothing more to this hook for so long. */
  pauseHookMs?: number | undefined
  /** The receiver is gone (410): the hook is disabled, and what is open waits for its return. */
  disableHook?: string | undefined
}

const lockLanes = statement(
  'ledger-lock-lanes',
  `SELECT lanes.fence FROM lanes
   JOIN unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS lease (hook_id, entity_kind, entity_id, fence)
     ON lanes.hook_id = lease.hook_id AND lanes.entity_kind = lease.entity_kind
    AND lanes.entity_id = lease.entity_id AND lanes.fence = lease.fence
   ORDER BY lanes.hook_id, lanes.entity_kind, lanes.entity_id
   FOR UPDATE OF lanes`,
)

// Open deliveries are told by finished_at: a condition on state would lure the planner into reading the whole index of open ones.
const record = statement(
  'ledger-record',
  `WITH result AS (
     SELECT * FROM jsonb_to_recordset($1::jsonb) AS row (
       "deliveryId" bigint, "hookId" text, at timestamptz, "durationMs" int, state text, "retryInMs" float8,
       "requestHeaders" jsonb, status smallint, "responseHeaders" jsonb, "responseBody" text, error text, address text)
   ),
   updated AS (
     UPDATE deliveries SET
       state = result.state, attempts = attempts + 1, last_status = result.status, last_error = result.error,
       next_attempt_at = now() + result."retryInMs" * interval '1 millisecond',
       finished_at = CASE WHEN result.state = 'retrying' THEN NULL ELSE now() END
     FROM result WHERE deliveries.id = result."deliveryId" AND deliveries.finished_at IS NULL
   )
   INSERT INTO delivery_attempts (delivery_id, hook_id, at, duration_ms, succeeded, request_headers, status, response_headers,
                                  response_body, error, address)
   SELECT "deliveryId", "hookId", at, "durationMs", state = 'succeeded', "requestHeaders", status, "responseHeaders",
          decode("responseBody", 'base64'), error, address
   FROM result`,
)

// Separate from the lock: only a new snapshot sees the deliveries that were made while the lock was waited for.
const release = statement(
  'ledger-release',
  `WITH released AS (
     SELECT lane.*, (
       SELECT next_attempt_at FROM deliveries
       WHERE deliveries.hook_id = lane.hook_id AND deliveries.entity_kind = lane.entity_kind
         AND deliveries.entity_id = lane.entity_id AND state IN ('pending', 'retrying')
       ORDER BY version LIMIT 1) AS next_attempt_at
     FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS lane (hook_id, entity_kind, entity_id, fence)
   ),
   emptied AS (
     DELETE FROM lanes USING released
     WHERE lanes.hook_id = released.hook_id AND lanes.entity_kind = released.entity_kind
       AND lanes.entity_id = released.entity_id AND released.next_attempt_at IS NULL
   )
   UPDATE lanes SET leased_by = NULL, ready_at = greatest(released.next_attempt_at, now())
   FROM released
   WHERE lanes.hook_id = released.hook_id AND lanes.entity_kind = released.entity_kind
     AND lanes.entity_id = released.entity_id AND released.next_attempt_at IS NOT NULL`,
)

const pauseHook = statement(
  'ledger-pause-hook',
  `UPDATE hooks SET paused_until = greatest(paused_until, now() + $2 * interval '1 millisecond') WHERE id = $1`,
)
const disableHook = statement(
  'ledger-disable-hook',
  `UPDATE hooks SET enabled = false, disabled_at = now(), disabled_reason = $2 WHERE id = $1 AND enabled`,
)

/**
 * Stores results and gives lanes back, all in the caller's transaction. Results and lanes whose lease was lost meanwhile (expired and
 * claimed by another relay, or the hook deleted) are left alone: `fenced` counts them.
 */
export const recordAttempts = async (
  query: Query,
  results: readonly AttemptRecord[],
  released: readonly Lease[],
): Promise<{ fenced: number }> => {
  const leases = new Map([...results.map(({ lease }) => lease), ...released].map((lease) => [lease.fence, lease]))
  if (leases.size === 0) return { fenced: 0 }
  const held = await query<{ fence: number }>(lockLanes, columns([...leases.values()]))
  const ours = new Set(held.map(({ fence }) => fence))
  const valid = results.filter(({ lease }) => ours.has(lease.fence))
  if (valid.length > 0) await query(record, [JSON.stringify(valid.map(rowOf))])
  const free = released.filter(({ fence }) => ours.has(fence))
  if (free.length > 0) await query(release, columns(free))
  for (const { lease, pauseHookMs, disableHook: reason } of valid) {
    if (pauseHookMs !== undefined) await query(pauseHook, [lease.hookId, pauseHookMs])
    if (reason !== undefined) await query(disableHook, [lease.hookId, reason])
  }
  return { fenced: leases.size - ours.size }
}

const rowOf = ({ lease, responseBody, ...row }: AttemptRecord) => ({
  ...row,
  hookId: lease.hookId,
  responseBody: responseBody?.toString('base64'),
})
