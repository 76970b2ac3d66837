import { type Query, statement } from '../platform/database.ts'
import type { AttemptRecord } from './attempt-store.ts'
import type { LaneKey } from './lane-store.ts'
import { type LockedEvent, listeners, seqsAndTypes } from './ledger-store.ts'

/**
 * First attempts: most deliveries succeed at once, and those are stored when they are done, with their event, in the transaction that takes
 * it in. What does not goes on in a lane, leased to the relay that has begun it.
 */

/** Pairs of event and hook that are looked at for each that may be tried: most events concern few hooks. */
const looks = 8
/** Payloads above are read when they are sent, a few at a time. */
const biggest = 16_384

// Nothing is locked: a change of a hook must not wait for receivers. A lane, or a last delivery that was given up (`Surrogate-Gap`), is for who
// works lanes off. An event whose payload is too big is named, so that nothing of its entity overtakes it.
const fresh = statement(
  'first-attempts-fresh',
  `WITH ${listeners()},
   tried AS MATERIALIZED (
     SELECT wanted.*, is_well AND prompt.id IS NOT NULL AS is_tried,
       EXISTS (SELECT FROM deliveries WHERE deliveries.hook_id = wanted.id AND died_at IS NOT NULL OFFSET 0) AS has_gaps
     FROM wanted LEFT JOIN unnest($4::text[]) AS prompt (id) ON prompt.id = wanted.id
   )
   SELECT id AS "eventId", seq, type, entity_kind AS "entityKind", entity_id AS "entityId", version, created_at AS "occurredAt",
     CASE WHEN octet_length(payload) <= ${biggest} THEN convert_from(payload, 'UTF8') END AS payload, hooks, is_all AS "isAll"
   FROM (
     SELECT event.*, first.*, sum(tries) OVER (ORDER BY asked.seq) AS tries_up_to
     FROM (
       SELECT seq FROM unnest($1::bigint[]) AS asked (seq) ORDER BY seq
       LIMIT (SELECT $5::int * ${looks} / greatest(count(DISTINCT id), 1) FROM wanted)) AS asked
     CROSS JOIN LATERAL (
       SELECT id, seq, type, entity_kind, entity_id, version, organization_id, created_at, payload FROM outbox
       WHERE outbox.seq = asked.seq LIMIT 1) AS event
     CROSS JOIN LATERAL (
       SELECT string_agg(hook.id, ' ') FILTER (WHERE is_free) AS hooks, bool_and(is_free) AS is_all, count(*) FILTER (WHERE is_free) AS tries
       FROM tried AS hook CROSS JOIN LATERAL (
         SELECT is_tried
           AND NOT EXISTS (
             SELECT FROM lanes
             WHERE lanes.hook_id = hook.id AND lanes.entity_kind = event.entity_kind AND lanes.entity_id = event.entity_id OFFSET 0)
           AND NOT (has_gaps AND event.version > 1 AND coalesce((
             SELECT died_at IS NOT NULL FROM deliveries
             WHERE deliveries.hook_id = hook.id AND deliveries.entity_kind = event.entity_kind
               AND deliveries.entity_id = event.entity_id AND deliveries.version < event.version
             ORDER BY deliveries.version DESC LIMIT 1), false)) AS is_free OFFSET 0) AS delivery
       WHERE hook.type = event.type
         AND (hook.organization_ids IS NULL OR event.organization_id = ANY(hook.organization_ids))
     ) AS first
   ) AS event
   WHERE hooks IS NOT NULL AND tries_up_to <= $5
   ORDER BY seq`,
)

/** An event that is just being taken in, and the hooks to which it may be sent right away. */
export interface FreshEvent {
  eventId: string
  seq: number
  type: string
  entityKind: string
  entityId: string
  version: number
  occurredAt: Date
  /** JSON. Null when it is too big to be read in advance. */
  payload: string | null
  /** Ids, with a space between. */
  hooks: string
  /** No other hook is told of it. */
  isAll: boolean
}

/**
 * Those of the events of which nobody else can send anything before this transaction ends, in the order in which they happened: with not more
 * than `most` deliveries together, to the hooks that are given.
 */
export const freshEvents = (
  query: Query,
  ready: readonly LockedEvent[],
  { hookIds, most }: { hookIds: readonly string[]; most: number },
): Promise<FreshEvent[]> => query<FreshEvent>(fresh, [...seqsAndTypes(ready), hookIds, most])

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
  event: FreshEvent
  result: AttemptRecord
}

/**
 * Stores deliveries that are done. An event of which all are is taken in thereby: their numbers are returned. The others are up to
 * `takeEventsIn`, which passes over the deliveries that stand.
 */
export const storeFirstSuccesses = async (query: Query, successes: readonly FirstSuccess[]): Promise<Set<number>> => {
  if (successes.length === 0) return new Set()
  const done = new Map<FreshEvent, number>()
  for (const { event } of successes) done.set(event, (done.get(event) ?? 0) + 1)
  const whole = [...done].filter(([{ isAll, hooks }, count]) => isAll && count === hooks.split(' ').length)
  const seqs = whole.map(([{ seq }]) => seq)
  await query(store, [JSON.stringify(successes.map(rowOf)), seqs])
  return new Set(seqs)
}

const rowOf = ({ event, result }: FirstSuccess) => ({
  hookId: result.lease.hookId,
  eventId: event.eventId,
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
