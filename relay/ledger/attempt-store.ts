import { type Query, statement } from '../../platform/database/database.ts'
import { type HookChange, type HookOutcomes, lockHealth, type ProbeTiming, storeHealth } from './hook-health-store.ts'
import { type Lease, laneColumns } from './lane-store.ts'

/**
 * Stores the results of attempts with their deliveries, updates the health of their hooks, and gives lanes back. What
 * was done under a lease that has ended is left alone.
 */

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
  /** The receiver is gone (410): why the hook is disabled. Its open deliveries wait until it is enabled. */
  disableHook?: string | undefined
  /** A failure, or the first success after one; never a test. Others leave the hook's health as it is. */
  changesHealth: boolean
}

export interface Release {
  lease: Lease
  /** The lane is kept, under the same lease, when it has more that is due. */
  goOn: boolean
}

/** A lane that is not empty. */
export interface LaneLeft {
  /** Of its first open delivery. */
  from: number
  due: boolean
  /** The lease goes on. */
  kept: boolean
}

// Rows are found one by one (LATERAL … LIMIT 1) and changed by their place (`ctid`), here and wherever many lanes or
// deliveries are changed at once. The planner would read these tables as a whole, because they are empty now and then.
const lockLanes = statement(
  'attempts-lock-lanes',
  `SELECT lane.* FROM (
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS lease (hook_id, entity_kind, entity_id, fence)
     ORDER BY hook_id, entity_kind, entity_id) AS lease
   CROSS JOIN LATERAL (
     SELECT fence, from_version AS "from" FROM lanes
     WHERE lanes.hook_id = lease.hook_id AND lanes.entity_kind = lease.entity_kind
       AND lanes.entity_id = lease.entity_id AND lanes.fence = lease.fence
     LIMIT 1 FOR UPDATE) AS lane`,
)

const record = statement(
  'attempts-record',
  `WITH result AS MATERIALIZED (
     SELECT * FROM json_to_recordset($1::json) AS row (
       "deliveryId" bigint, "hookId" text, at timestamptz, "durationMs" int, state text, "retryInMs" float8,
       "requestHeaders" json, status smallint, "responseHeaders" json, "responseBody" text, error text, address text)
   ),
   updated AS (
     UPDATE deliveries SET
       state = result.state, attempts = attempts + 1, last_status = result.status, last_error = result.error,
       next_attempt_at = now() + result."retryInMs" * interval '1 millisecond',
       finished_at = CASE WHEN result.state = 'retrying' THEN NULL ELSE now() END,
       died_at = CASE WHEN result.state = 'dead' THEN now() END
     FROM result CROSS JOIN LATERAL (
       SELECT ctid AS place FROM deliveries WHERE hook_id = result."hookId" AND id = result."deliveryId" LIMIT 1) AS found
     WHERE deliveries.ctid = found.place AND deliveries.finished_at IS NULL
   )
   INSERT INTO delivery_attempts (delivery_id, hook_id, at, duration_ms, succeeded, request_headers, status, response_headers,
                                  response_body, error, address)
   SELECT "deliveryId", "hookId", at, "durationMs", state = 'succeeded', "requestHeaders", status, "responseHeaders",
          decode("responseBody", 'base64'), error, address
   FROM result`,
)

// Not one statement with the lock: only a new snapshot sees the deliveries that were made while it waited for the lock.
// A lane that an earlier commit gave back, whose answer was lost, stays given back.
const release = statement(
  'attempts-release',
  `WITH lane AS MATERIALIZED (
     SELECT held.place, goes_on, open.version, open.next_attempt_at, open.next_attempt_at <= now() AS due
     FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[])
       AS ours (hook_id, entity_kind, entity_id, fence, first, goes_on)
     CROSS JOIN LATERAL (
       SELECT ctid AS place FROM lanes
       WHERE lanes.hook_id = ours.hook_id AND lanes.entity_kind = ours.entity_kind AND lanes.entity_id = ours.entity_id LIMIT 1) AS held
     LEFT JOIN LATERAL (
       SELECT version, next_attempt_at FROM deliveries
       WHERE deliveries.hook_id = ours.hook_id AND deliveries.entity_kind = ours.entity_kind
         AND deliveries.entity_id = ours.entity_id AND version >= first AND finished_at IS NULL
       ORDER BY version LIMIT 1) AS open ON true
   ),
   emptied AS (DELETE FROM lanes USING lane WHERE lanes.ctid = lane.place AND lane.version IS NULL)
   UPDATE lanes SET from_version = lane.version,
     leased_by = CASE WHEN due AND goes_on THEN leased_by END,
     ready_at = CASE WHEN due AND goes_on THEN ready_at ELSE greatest(lane.next_attempt_at, now()) END
   FROM lane WHERE lanes.ctid = lane.place AND lane.version IS NOT NULL
   RETURNING lanes.fence, lanes.from_version AS "from", due, leased_by IS NOT NULL AS kept`,
)

/**
 * Stores results and gives lanes back, all in the caller's transaction. Results and lanes whose lease was lost
 * meanwhile (expired and claimed by another relay, or the hook deleted) are left alone: `fenced` counts them. `left`:
 * lanes that have something more to send, by fence.
 */
export const recordAttempts = async (
  query: Query,
  results: readonly AttemptRecord[],
  released: readonly Release[],
  timing: ProbeTiming,
): Promise<{ fenced: number; changes: HookChange[]; left: Map<number, LaneLeft> }> => {
  const leases = new Map([...results, ...released].map(({ lease }) => [lease.fence, lease]))
  if (leases.size === 0) return { fenced: 0, changes: [], left: new Map() }
  const concerned = new Set(results.flatMap(({ changesHealth, lease }) => (changesHealth ? [lease.hookId] : [])))
  const health = concerned.size > 0 ? await lockHealth(query, [...concerned]) : []
  const held = await query<{ fence: number; from: number }>(lockLanes, laneColumns([...leases.values()]))
  const ours = new Map(held.map(({ fence, from }) => [fence, from]))
  const valid = results.filter(({ lease }) => ours.has(lease.fence))
  if (valid.length > 0) await query(record, [JSON.stringify(valid.map(rowOf))])
  const left = await giveBack(query, released, ours)
  const changes = health.length > 0 ? await storeHealth(query, health, outcomesOf(valid), timing) : []
  return { fenced: leases.size - ours.size, changes, left: new Map(left.map((lane) => [lane.fence, lane])) }
}

/** @param ours the fences that still hold, each with the version that its lane begins at. */
const giveBack = async (query: Query, released: readonly Release[], ours: ReadonlyMap<number, number>) => {
  const free = released.filter(({ lease }) => ours.has(lease.fence))
  if (free.length === 0) return []
  const leases = free.map(({ lease }) => lease)
  const first = leases.map(({ fence }) => ours.get(fence))
  return query<LaneLeft & { fence: number }>(release, [...laneColumns(leases), first, free.map(({ goOn }) => goOn)])
}

const rowOf = ({ lease, changesHealth, pauseHookMs, disableHook, responseBody, ...row }: AttemptRecord) => ({
  ...row,
  hookId: lease.hookId,
  responseBody: responseBody?.toString('base64'),
})

const outcomesOf = (results: readonly AttemptRecord[]): HookOutcomes[] => {
  const changing = results.filter(({ changesHealth }) => changesHealth)
  return [...Map.groupBy(changing, ({ lease }) => lease.hookId)].map(([hookId, own]) => ({
    hookId,
    outcomes: own.map(({ state, lease }) => ({
      succeeded: state === 'succeeded',
      lane: `${lease.entityKind}:${lease.entityId}`,
    })),
    pauseMs: Math.max(...own.map(({ pauseHookMs = 0 }) => pauseHookMs)) || undefined,
    disable: own.find(({ disableHook }) => disableHook !== undefined)?.disableHook,
  }))
}
