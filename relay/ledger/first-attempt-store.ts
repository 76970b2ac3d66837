import { type Query, statement } from '../../platform/database.ts'
import type { AttemptRecord } from './attempt-store.ts'
import type { FreshEvent } from './fresh-event-store.ts'
import type { LaneKey } from './lane-store.ts'

/**
 * First attempts: most deliveries succeed at once, and those are stored when they are done, with their event, in the transaction that takes
 * it in. What does not goes on in a lane, leased to the relay that has begun it.
 */

const store = statement(
  'first-attempts-store',
  `WITH removed AS (DELETE FROM outbox_pending WHERE seq = ANY($2::bigint[])),
   result AS MATERIALIZED (
     SELECT nextval('deliveries_id_seq') AS id, row.* FROM json_to_recordset($1::json) AS row (
       "hookId" text, "eventId" uuid, type text, "entityKind" text, "entityId" text, version bigint, at timestamptz, "durationMs" int,
       "requestHeaders" json, status smallint, "responseHeaders" json, "responseBody" text, address text)
   ),
   delivery AS (
     INSERT INTO deliveries (id, hook_id, event_id, type, entity_kind, entity_id, version, state, attempts, last_status, finished_at)
     OVERRIDING SYSTEM VALUE
     SELECT id, "hookId", "eventId", type, "entityKind", "entityId", version, 'succeeded', 1, status, clock_timestamp() FROM result
   )
   INSERT INTO delivery_attempts (delivery_id, hook_id, at, duration_ms, succeeded, request_headers, status, response_headers,
                                  response_body, address)
   SELECT id, "hookId", at, "durationMs", true, "requestHeaders", status, "responseHeaders", decode("responseBody", 'base64'), address
   FROM result`,
)

/** A first attempt that succeeded. */
export interface FirstSuccess {
  fresh: FreshEvent
  result: AttemptRecord
}

/**
 * Stores deliveries that are done. An event of which all are is taken in thereby: their numbers are returned. The others are up to
 * `takeEventsIn`, which passes over the deliveries that stand.
 */
export const storeFirstSuccesses = async (query: Query, successes: readonly FirstSuccess[]): Promise<Set<number>> => {
  if (successes.length === 0) return new Set()
  const done = new Map<FreshEvent, number>()
  for (const { fresh } of successes) done.set(fresh, (done.get(fresh) ?? 0) + 1)
  const whole = [...done].filter(([{ isAll, hookIds }, count]) => isAll && count === hookIds.length)
  const seqs = whole.map(([{ event }]) => event.seq)
  await query(store, [JSON.stringify(successes.map(rowOf)), seqs])
  return new Set(seqs)
}

const rowOf = ({ fresh: { event }, result }: FirstSuccess) => ({
  hookId: result.lease.hookId,
  eventId: event.id,
  type: event.type,
  entityKind: event.entityKind,
  entityId: event.entityId,
  version: event.version,
  at: result.at,
  durationMs: result.durationMs,
  requestHeaders: result.requestHeaders,
  status: result.status,
  responseHeaders: result.responseHeaders,
  responseBody: result.responseBody?.toString('base64'),
  address: result.address,
})

// Not a lane that was there before: somebody has opened an older delivery meanwhile. By the clock, for the transaction began before the attempts.
const lease = statement(
  'first-attempts-lease',
  `UPDATE lanes SET fence = nextval('lane_fences'), leased_by = $6, leased_until = clock_timestamp() + $7 * interval '1 millisecond'
   FROM (
     SELECT begun.number, lane.place, delivery.id FROM (
       SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS begun (hook_id, entity_kind, entity_id, number, version)
       ORDER BY hook_id, entity_kind, entity_id) AS begun
     CROSS JOIN LATERAL (
       SELECT ctid AS place FROM lanes
       WHERE lanes.hook_id = begun.hook_id AND lanes.entity_kind = begun.entity_kind AND lanes.entity_id = begun.entity_id
         AND lanes.from_version = begun.version AND leased_by IS NULL LIMIT 1) AS lane
     CROSS JOIN LATERAL (
       SELECT id FROM deliveries
       WHERE deliveries.hook_id = begun.hook_id AND deliveries.entity_kind = begun.entity_kind
         AND deliveries.entity_id = begun.entity_id AND deliveries.version = begun.version LIMIT 1) AS delivery
   ) AS begun
   WHERE lanes.ctid = begun.place AND EXISTS (SELECT FROM relays WHERE relays.id = $6 AND alive_until > now())
   RETURNING begun.number, begun.id AS "deliveryId", lanes.fence`,
)

/** An attempt that is under way when its event is taken in, or has failed by then. `version`: of the event. */
export interface BegunAttempt extends LaneKey {
  version: number
}

export interface LeasedAttempt {
  /** Of the attempt, in what was given. */
  number: number
  deliveryId: number
  fence: number
}

/**
 * Leases the lanes that taking in has opened for them to this relay, which goes on with them. Those left out are somebody else's by now.
 */
export const leaseBegunAttempts = async (
  query: Query,
  attempts: readonly BegunAttempt[],
  { relayId, leaseMs }: { relayId: string; leaseMs: number },
): Promise<LeasedAttempt[]> => {
  if (attempts.length === 0) return []
  const column = <Key extends keyof BegunAttempt>(key: Key) => attempts.map((attempt) => attempt[key])
  return query<LeasedAttempt>(lease, [
    column('hookId'),
    column('entityKind'),
    column('entityId'),
    attempts.map((_, index) => index),
    column('version'),
    relayId,
    leaseMs,
  ])
}
