import { oneRow, type Query, statement } from '../platform/database/database.ts'

/**
 * Test-sends: a delivery of its own, with its own bytes, in a lane of its own that a relay takes whatever the state of
 * the hook, and tries once. `test_targets` says where it goes when that is not where the hook points.
 */
export interface NewTestSend {
  hookId: string
  /** UUID; also names its lane. */
  eventId: string
  type: string
  payload: Buffer
  target: { url: string; sealedHeaders: Buffer | null } | undefined
}

const insert = statement(
  'test-send-insert',
  `WITH hook AS MATERIALIZED (SELECT id FROM hooks WHERE id = $1 FOR KEY SHARE)
   INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, test, payload)
   SELECT id, $2, $3, 'hook', $2::uuid::text, 1, true, $4 FROM hook RETURNING id::text`,
)
const insertTarget = statement(
  'test-send-target',
  `INSERT INTO test_targets (delivery_id, hook_id, url, sealed_headers) VALUES ($1, $2, $3, $4)`,
)
const openLane = statement(
  'test-send-lane',
  `INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at, test) VALUES ($1, 'hook', $2, now(), true)`,
)

/** In the caller's transaction. Returns the delivery's id; undefined when the hook is gone. */
export const insertTestSend = async (
  query: Query,
  { hookId, eventId, type, payload, target }: NewTestSend,
): Promise<string | undefined> => {
  const [row] = await query<{ id: string }>(insert, [hookId, eventId, type, payload])
  if (row === undefined) return undefined
  const { id } = row
  if (target) await query(insertTarget, [id, hookId, target.url, target.sealedHeaders])
  await query(openLane, [hookId, eventId])
  return id
}

const alive = statement('relays-alive', `SELECT EXISTS (SELECT FROM relays WHERE alive_until > now()) AS alive`)

/** Whether any relay runs. */
export const isRelayAlive = async (query: Query): Promise<boolean> =>
  (await oneRow(query<{ alive: boolean }>(alive, []))).alive

const answers = statement(
  'test-send-answers',
  `SELECT deliveries.id::text, state, last_status AS status, last_error AS error, (
     SELECT response_body FROM delivery_attempts WHERE delivery_id = deliveries.id ORDER BY id DESC LIMIT 1) AS body
   FROM deliveries WHERE hook_id = $1 AND id = ANY($2::bigint[]) AND finished_at IS NOT NULL`,
)

export interface TestAnswer {
  id: string
  state: 'succeeded' | 'dead' | 'cancelled'
  status: number | null
  error: string | null
  /** The first 16 kB. */
  body: Buffer | null
}

/** Of those deliveries that have ended. */
export const testAnswers = (query: Query, hookId: string, deliveryIds: readonly string[]): Promise<TestAnswer[]> =>
  query<TestAnswer>(answers, [hookId, deliveryIds])

// Lanes are locked before deliveries, as relays do.
const giveUp = statement(
  'test-send-give-up',
  `WITH lane AS MATERIALIZED (
     SELECT entity_id FROM lanes
     WHERE hook_id = $1 AND entity_kind = 'hook' AND entity_id = ANY(ARRAY(
       SELECT entity_id FROM deliveries WHERE hook_id = $1 AND id = ANY($2::bigint[])))
     ORDER BY entity_id FOR UPDATE
   ),
   given_up AS (
     UPDATE deliveries SET state = 'cancelled', finished_at = now(), last_error = 'No relay sent it in time.'
     WHERE hook_id = $1 AND id = ANY($2::bigint[]) AND finished_at IS NULL AND entity_id = ANY(ARRAY(SELECT entity_id FROM lane))
     RETURNING hook_id, entity_id)
   DELETE FROM lanes USING given_up
   WHERE lanes.hook_id = given_up.hook_id AND lanes.entity_kind = 'hook' AND lanes.entity_id = given_up.entity_id
     AND lanes.leased_by IS NULL`,
)

/** Cancels test-sends that nobody waits for any more, so that relays do not send them. */
export const giveTestsUp = async (query: Query, hookId: string, deliveryIds: readonly string[]): Promise<void> => {
  await query(giveUp, [hookId, deliveryIds])
}
