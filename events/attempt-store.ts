import { type Query, statement } from '../platform/database.ts'
import { type HookChange, type HookNews, lockHealth, type ProbeTiming, storeHealth } from './hook-health-store.ts'
import { type Lease, laneColumns } from './lane-store.ts'

/** What came of attempts: stored with their deliveries, their hooks told, and their lanes given back, as far as they are still ours. */

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
  /** Whether it says something new of the receiver: not a success of one that is well, and no test. */
  isNews: boolean
}

const lockLanes = statement(
  'attempts-lock-lanes',
  `SELECT lanes.fence FROM lanes
   JOIN unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS lease (hook_id, entity_kind, entity_id, fence)
     ON lanes.hook_id = lease.hook_id AND lanes.entity_kind = lease.entity_kind
    AND lanes.entity_id = lease.entity_id AND lanes.fence = lease.fence
   ORDER BY lanes.hook_id, lanes.entity_kind, lanes.entity_id
   FOR UPDATE OF lanes`,
)

// Open deliveries are told by finished_at: a condition on state would lure the planner into reading the whole index of open ones.
const record = statement(
  'attempts-record',
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
  'attempts-release',
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
     AND lanes.entity_id = released.entity_id AND released.next_attempt_at IS NOT NULL
   RETURNING lanes.fence, released.next_attempt_at <= now() AS due`,
)

/**
 * Stores results and gives lanes back, all in the caller's transaction. Results and lanes whose lease was lost meanwhile (expired and
 * claimed by another relay, or the hook deleted) are left alone: `fenced` counts them. `due`: the fences of lanes that have more to send.
 */
export const recordAttempts = async (
  query: Query,
  results: readonly AttemptRecord[],
  released: readonly Lease[],
  timing: ProbeTiming,
): Promise<{ fenced: number; changes: HookChange[]; due: Set<number> }> => {
  const leases = new Map([...results.map(({ lease }) => lease), ...released].map((lease) => [lease.fence, lease]))
  if (leases.size === 0) return { fenced: 0, changes: [], due: new Set() }
  const concerned = new Set(results.flatMap(({ isNews, lease }) => (isNews ? [lease.hookId] : [])))
  const health = concerned.size > 0 ? await lockHealth(query, [...concerned]) : []
  const held = await query<{ fence: number }>(lockLanes, laneColumns([...leases.values()]))
  const ours = new Set(held.map(({ fence }) => fence))
  const valid = results.filter(({ lease }) => ours.has(lease.fence))
  if (valid.length > 0) await query(record, [JSON.stringify(valid.map(rowOf))])
  const free = released.filter(({ fence }) => ours.has(fence))
  const left = free.length > 0 ? await query<{ fence: number; due: boolean }>(release, laneColumns(free)) : []
  const changes = health.length > 0 ? await storeHealth(query, health, newsOf(valid), timing) : []
  const due = new Set(left.flatMap((lane) => (lane.due ? [lane.fence] : [])))
  return { fenced: leases.size - ours.size, changes, due }
}

const rowOf = ({ lease, isNews, pauseHookMs, disableHook, responseBody, ...row }: AttemptRecord) => ({
  ...row,
  hookId: lease.hookId,
  responseBody: responseBody?.toString('base64'),
})

const newsOf = (results: readonly AttemptRecord[]): HookNews[] => {
  const news = results.filter(({ isNews }) => isNews)
  return [...Map.groupBy(news, ({ lease }) => lease.hookId)].map(([hookId, own]) => ({
    hookId,
    outcomes: own.map(({ state, lease }) => ({
      succeeded: state === 'succeeded',
      lane: `${lease.entityKind}:${lease.entityId}`,
    })),
    pauseMs: Math.max(...own.map(({ pauseHookMs = 0 }) => pauseHookMs)) || undefined,
    disable: own.find(({ disableHook }) => disableHook !== undefined)?.disableHook,
  }))
}
