import { oneRow, type Query, statement } from '../platform/database/database.ts'

/** What the Management API shows of deliveries and attempts, and what ends with a hook. */

/** Of a `DeliveryRow`, but its state. */
export const deliveryColumns = `deliveries.id::text, deliveries.hook_id AS "hookId", event_id AS "eventId", deliveries.type AS event,
  json_build_object('kind', deliveries.entity_kind, 'id', deliveries.entity_id) AS entity, deliveries.version, attempts,
  next_attempt_at AS "nextAttemptAt", deliveries.created_at AS "createdAt", last_status AS "lastStatus", last_error AS "lastError",
  deliveries.test`

// Two states are read off: an open delivery is "held" while its hook is disabled, and "sending" while a relay has its
// lane for it.
export const shownState = `CASE
  WHEN state NOT IN ('pending', 'retrying') THEN state
  WHEN NOT hooks.enabled AND NOT deliveries.test THEN 'held'
  WHEN lanes.leased_by IS NOT NULL AND lanes.leased_until > now() AND deliveries.next_attempt_at <= now() AND NOT EXISTS (
    SELECT FROM deliveries AS earlier
    WHERE earlier.hook_id = deliveries.hook_id AND earlier.entity_kind = deliveries.entity_kind
      AND earlier.entity_id = deliveries.entity_id AND earlier.version < deliveries.version
      AND earlier.version >= lanes.from_version AND earlier.finished_at IS NULL) THEN 'sending'
  ELSE state
END`
/** What `shownState` looks at. */
export const withLane = `deliveries JOIN hooks ON hooks.id = deliveries.hook_id
  LEFT JOIN lanes ON lanes.hook_id = deliveries.hook_id AND lanes.entity_kind = deliveries.entity_kind
    AND lanes.entity_id = deliveries.entity_id`
const one = statement(
  'delivery-find',
  `SELECT ${deliveryColumns}, ${shownState} AS state, coalesce(deliveries.payload, outbox.payload) AS payload
   FROM ${withLane} LEFT JOIN outbox ON outbox.id = deliveries.event_id
   WHERE deliveries.hook_id = $1 AND deliveries.id = $2`,
)

export type DeliveryState = 'pending' | 'sending' | 'retrying' | 'held' | 'succeeded' | 'dead' | 'cancelled'

/** The states that are stored, for those that are read off an open delivery. */
const storedStates: Partial<Record<DeliveryState, string[]>> = {
  pending: ['pending'],
  retrying: ['retrying'],
  sending: ['pending', 'retrying'],
  held: ['pending', 'retrying'],
}

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
  test: boolean
}

export interface KeptDelivery extends DeliveryRow {
  /** Null when its event is no longer kept. */
  payload: Buffer | null
}

export interface Slice {
  limit: number
  offset: number
}

export interface DeliveryFilter {
  types?: readonly string[] | undefined
  state?: DeliveryState | undefined
  from?: Date | undefined
  to?: Date | undefined
  entityKind?: string | undefined
  entityId?: string | undefined
}

/**
 * The conditions of a filter, and their values. Only those that are asked for: with the others a plan for all values
 * could not know that the list of a hook is to be read from its end. `key` tells them from others.
 */
const conditionsOf = (hookId: string, { types, state, from, to, entityKind, entityId }: DeliveryFilter) => {
  const asked = [
    ['type = ANY(?)', types],
    ['state = ANY(?)', state && (storedStates[state] ?? [state])],
    ['deliveries.created_at >= ?', from],
    ['deliveries.created_at < ?', to],
    ['deliveries.entity_kind = ?', entityKind],
    // Versions begin with 1. The condition is needed for the index of lanes to be used.
    ['deliveries.entity_id = ? AND version > 0', entityId],
  ] as const
  const given = asked.filter(([, value]) => value !== undefined)
  // True of all. The condition is needed for the index of a hook's list to be used.
  const always = ['deliveries.hook_id = $1', `deliveries.created_at > '-infinity'`]
  return {
    key: asked.map(([, value]) => (value === undefined ? '-' : 'x')).join(''),
    where: [...always, ...given.map(([text], index) => text.replace('?', `$${index + 2}`))].join(' AND '),
    values: [hookId, ...given.map(([, value]) => value)],
  }
}

/** Deliveries of a hook, newest first. */
export const listDeliveries = async (query: Query, hookId: string, filter: DeliveryFilter, slice: Slice) => {
  const { key, where, values } = conditionsOf(hookId, filter)
  const { state } = filter
  const readOff = state && storedStates[state] ? [state] : []
  const shown = `SELECT ${deliveryColumns}, ${shownState} AS state, deliveries.id AS place FROM ${withLane} WHERE ${where}`
  const parameter = (offset: number) => `$${values.length + readOff.length + offset}`
  const found = readOff.length > 0 ? `(${shown}) AS shown WHERE state = ${parameter(0)}` : `(${shown}) AS shown`
  const name = `${key}${readOff.length > 0 ? 'r' : ''}`
  const list = statement(
    `delivery-list-${name}`,
    `SELECT * FROM ${found} ORDER BY place DESC LIMIT ${parameter(1)} OFFSET ${parameter(2)}`,
  )
  const counted = readOff.length > 0 ? found : `deliveries WHERE ${where}`
  const count = statement(`delivery-count-${name}`, `SELECT count(*) AS total FROM ${counted}`)
  const [rows, { total }] = await Promise.all([
    query<DeliveryRow & { place: number }>(list, [...values, ...readOff, slice.limit, slice.offset]),
    oneRow(query<{ total: number }>(count, [...values, ...readOff])),
  ])
  return { rows: rows.map(({ place: _, ...delivery }): DeliveryRow => delivery), total }
}

/** Ids of deliveries come from callers as text. */
const isDeliveryId = (text: string) => /^\d{1,18}$/.test(text)

export const findDelivery = async (query: Query, hookId: string, id: string): Promise<KeptDelivery | undefined> => {
  if (!isDeliveryId(id)) return undefined
  const [row] = await query<KeptDelivery>(one, [hookId, id])
  return row
}

const attemptsOfDelivery = statement(
  'attempt-list',
  `SELECT id::text, at, duration_ms AS "durationMs", succeeded, request_headers AS "requestHeaders", status,
          response_headers AS "responseHeaders", response_body AS "responseBody", error, address
   FROM delivery_attempts WHERE delivery_id = $1 ORDER BY delivery_attempts.id LIMIT $2 OFFSET $3`,
)
const attemptsOfDeliveryCount = statement(
  'attempt-list-count',
  `SELECT count(*) AS total FROM delivery_attempts WHERE delivery_id = $1`,
)

export interface DeliveryAttempt {
  id: string
  at: Date
  durationMs: number
  succeeded: boolean
  requestHeaders: Record<string, string>
  status: number | null
  responseHeaders: Record<string, string> | null
  responseBody: Buffer | null
  error: string | null
  address: string | null
}

/** The POSTs of one delivery, oldest first; those before a replay included. */
export const attemptsOf = async (query: Query, deliveryId: string, slice: Slice | undefined) => {
  const [rows, { total }] = await Promise.all([
    query<DeliveryAttempt>(attemptsOfDelivery, [deliveryId, slice?.limit ?? null, slice?.offset ?? 0]),
    oneRow(query<{ total: number }>(attemptsOfDeliveryCount, [deliveryId])),
  ])
  return { rows, total }
}

const attemptLog = statement(
  'attempt-log',
  `SELECT attempt.id::text, attempt.at, attempt.succeeded, attempt.status, attempt.response_body AS "responseBody",
          attempt.error, delivery.type, coalesce(delivery.payload, outbox.payload) AS payload
   FROM delivery_attempts AS attempt
   JOIN deliveries AS delivery ON delivery.hook_id = attempt.hook_id AND delivery.id = attempt.delivery_id
   LEFT JOIN outbox ON outbox.id = delivery.event_id
   WHERE attempt.hook_id = $1 AND attempt.at >= $2 AND attempt.at < $3 AND ($4::text IS NULL OR delivery.type = $4)
   ORDER BY attempt.at DESC, attempt.id DESC LIMIT $5 OFFSET $6`,
)
const attemptCount = statement(
  'attempt-count',
  `SELECT count(*) AS total FROM delivery_attempts AS attempt
   JOIN deliveries AS delivery ON delivery.hook_id = attempt.hook_id AND delivery.id = attempt.delivery_id
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
  const [rows, { total }] = await Promise.all([
    query<AttemptRow>(attemptLog, [...values, slice.limit, slice.offset]),
    oneRow(query<{ total: number }>(attemptCount, values)),
  ])
  return { rows, total }
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

// Lanes are locked before deliveries, as relays do.
const lockLanes = statement(
  'delivery-cancel-lanes',
  `SELECT FROM lanes WHERE hook_id = $1 ORDER BY entity_kind, entity_id FOR UPDATE`,
)
const cancel = statement(
  'delivery-cancel',
  `UPDATE deliveries SET state = 'cancelled', finished_at = now(), last_error = 'the hook was deleted'
   WHERE id = ANY(ARRAY(SELECT id FROM open_deliveries WHERE hook_id = $1)) AND finished_at IS NULL`,
)

/**
 * Cancels the open deliveries of a hook that is about to be deleted. The same transaction has locked the hook, so no
 * event is ingested for it meanwhile.
 */
export const cancelDeliveries = async (query: Query, hookId: string): Promise<void> => {
  await query(lockLanes, [hookId])
  await query(cancel, [hookId])
}
