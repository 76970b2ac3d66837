import { type Query, statement } from '../platform/database.ts'

/** What the Management API shows of deliveries and attempts, and what ends with a hook. */

const list = statement(
  'delivery-list',
  `SELECT deliveries.id::text, deliveries.hook_id AS "hookId", event_id AS "eventId", type AS event,
          json_build_object('kind', deliveries.entity_kind, 'id', deliveries.entity_id) AS entity, version,
          CASE
            WHEN state NOT IN ('pending', 'retrying') THEN state
            WHEN NOT hooks.enabled THEN 'held'
            WHEN lanes.leased_by IS NOT NULL AND lanes.ready_at > now() AND deliveries.next_attempt_at <= now() AND NOT EXISTS (
              SELECT FROM deliveries AS earlier
              WHERE earlier.hook_id = deliveries.hook_id AND earlier.entity_kind = deliveries.entity_kind
                AND earlier.entity_id = deliveries.entity_id AND earlier.version < deliveries.version
                AND earlier.state IN ('pending', 'retrying')) THEN 'sending'
            ELSE state
          END AS state,
          attempts, next_attempt_at AS "nextAttemptAt", deliveries.created_at AS "createdAt", last_status AS "lastStatus",
          last_error AS "lastError"
   FROM deliveries JOIN hooks ON hooks.id = deliveries.hook_id
   LEFT JOIN lanes ON lanes.hook_id = deliveries.hook_id AND lanes.entity_kind = deliveries.entity_kind
     AND lanes.entity_id = deliveries.entity_id
   WHERE deliveries.hook_id = $1 AND ($2::text IS NULL OR type = $2)
   ORDER BY deliveries.id DESC LIMIT $3 OFFSET $4`,
)
const count = statement(
  'delivery-count',
  `SELECT count(*) AS total FROM deliveries WHERE hook_id = $1 AND ($2::text IS NULL OR type = $2)`,
)

export type DeliveryState = 'pending' | 'sending' | 'retrying' | 'held' | 'succeeded' | 'dead' | 'cancelled'

export interface DeliveryRow {
  id: string
  hookId: string
  eventId: string
  event: string
  entity: { kind: string; id: string }
  version: number
  state: DeliveryState
  attempts: number
  nextAttemptAt: Date
  createdAt: Date
  lastStatus: number | null
  lastError: string | null
}

export interface Slice {
  limit: number
  offset: number
}

/** Deliveries of a hook, newest first; `event` narrows to one type. */
export const listDeliveries = async (
  query: Query,
  hookId: string,
  filter: { event?: string | undefined },
  slice: Slice,
) => {
  const event = filter.event ?? null
  const [rows, [counted]] = await Promise.all([
    query<DeliveryRow>(list, [hookId, event, slice.limit, slice.offset]),
    query<{ total: number }>(count, [hookId, event]),
  ])
  return { rows, total: counted!.total }
}

const attemptLog = statement(
  'attempt-log',
  `SELECT attempt.id::text, attempt.at, attempt.succeeded, attempt.status, attempt.response_body AS "responseBody",
          attempt.error, delivery.type, coalesce(delivery.payload, outbox.payload) AS payload
   FROM delivery_attempts AS attempt JOIN deliveries AS delivery ON delivery.id = attempt.delivery_id
   LEFT JOIN outbox ON outbox.id = delivery.event_id
   WHERE attempt.hook_id = $1 AND attempt.at >= $2 AND attempt.at < $3 AND ($4::text IS NULL OR delivery.type = $4)
   ORDER BY attempt.at DESC, attempt.id DESC LIMIT $5 OFFSET $6`,
)
const attemptCount = statement(
  'attempt-count',
  `SELECT count(*) AS total FROM delivery_attempts AS attempt JOIN deliveries AS delivery ON delivery.id = attempt.delivery_id
   WHERE attempt.hook_id = $1 AND attempt.at >= $2 AND attempt.at < $3 AND ($4::text IS NULL OR delivery.type = $4)`,
)

export interface AttemptRow {
  id: string
  at: Date
  succeeded: boolean
  status: number | null
  responseBody: Buffer | null
  error: string | null
  type: string
  payload: Buffer | null
}

/** Attempts of a hook in a time span, newest first. */
export const listAttempts = async (
  query: Query,
  hookId: string,
  filter: { from: Date; to: Date; event?: string | undefined },
  slice: Slice,
) => {
  const values = [hookId, filter.from, filter.to, filter.event ?? null]
  const [rows, [counted]] = await Promise.all([
    query<AttemptRow>(attemptLog, [...values, slice.limit, slice.offset]),
    query<{ total: number }>(attemptCount, values),
  ])
  return { rows, total: counted!.total }
}

const stats = statement(
  'attempt-stats',
  `SELECT hook_id AS "hookId", count(*) AS "requestCount", count(*) FILTER (WHERE succeeded) AS "successCount"
   FROM delivery_attempts WHERE hook_id = ANY($1::text[]) AND at > now() - interval '24 hours' GROUP BY hook_id`,
)

export interface ExecutionStats {
  requestCount: number
  successCount: number
}

/** Attempts of the last 24 hours by hook; a hook without any is absent. */
export const executionStats = async (
  query: Query,
  hookIds: readonly string[],
): Promise<Map<string, ExecutionStats>> => {
  const rows = await query<ExecutionStats & { hookId: string }>(stats, [hookIds])
  return new Map(rows.map(({ hookId, ...row }) => [hookId, row]))
}

const cancel = statement(
  'delivery-cancel',
  `UPDATE deliveries SET state = 'cancelled', finished_at = now(), last_error = 'the hook was deleted'
   WHERE hook_id = $1 AND state IN ('pending', 'retrying')`,
)

/** Ends what is open for a hook that the same transaction has deleted: after it, so that events taken in meanwhile are included. */
export const cancelDeliveries = async (query: Query, hookId: string): Promise<void> => {
  await query(cancel, [hookId])
}
