import { type Query, statement } from '../platform/database/database.ts'
import { announceLanes } from './lane-notice-store.ts'

/** Opening deliveries that ended, one at a time, and giving dead ones up. Many at a time: `replay-store.ts`. */

// The hook is locked before, because a lane must not outlive it. A lane that waits for the retry of a later event
// becomes due at once, because what is queued now comes before it. A lane that a relay works on is looked at again when
// it is given back.
export const openLanes = (queued: string) => `
     INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at, from_version)
     SELECT hook_id, entity_kind, entity_id, now(), min(version) FROM ${queued} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
     ON CONFLICT (hook_id, entity_kind, entity_id) DO UPDATE
       SET ready_at = now(), from_version = least(lanes.from_version, excluded.from_version)`
/** What makes a delivery that ended open again. */
export const openAnew = `state = 'pending', attempts = 0, next_attempt_at = now(), finished_at = NULL, died_at = NULL, last_status = NULL, last_error = NULL`

// The deliveries before it in its lane become due too; none loses its count of attempts. The lane is locked first, as
// relays do, so that results that are stored meanwhile are neither lost nor overwritten.
const hastenLane = statement(
  'delivery-hasten-lane',
  `UPDATE lanes SET ready_at = CASE WHEN leased_by IS NULL THEN now() ELSE ready_at END FROM deliveries AS wanted
   WHERE wanted.hook_id = $1 AND wanted.id = $2 AND lanes.hook_id = wanted.hook_id AND lanes.entity_kind = wanted.entity_kind
     AND lanes.entity_id = wanted.entity_id`,
)
const hasten = statement(
  'delivery-hasten',
  `UPDATE deliveries SET next_attempt_at = least(next_attempt_at, now())
   WHERE finished_at IS NULL AND id = ANY(ARRAY(
     SELECT earlier.id
     FROM (SELECT hook_id, entity_kind, entity_id, version FROM deliveries WHERE hook_id = $1 AND id = $2 LIMIT 1) AS wanted
     CROSS JOIN LATERAL (
       SELECT id FROM deliveries
       WHERE deliveries.hook_id = wanted.hook_id AND deliveries.entity_kind = wanted.entity_kind
         AND deliveries.entity_id = wanted.entity_id AND deliveries.version <= wanted.version AND finished_at IS NULL
       ORDER BY version OFFSET 0) AS earlier))`,
)
const lookUp = statement(
  'delivery-look-up',
  `SELECT deliveries.finished_at AS "finishedAt", outbox.id IS NOT NULL AS kept
   FROM deliveries LEFT JOIN outbox ON outbox.id = deliveries.event_id WHERE deliveries.hook_id = $1 AND deliveries.id = $2`,
)
const reopen = statement(
  'delivery-reopen',
  `WITH hook AS MATERIALIZED (SELECT id FROM hooks WHERE id = $1 FOR KEY SHARE),
   again AS (
     UPDATE deliveries SET ${openAnew} FROM hook
     WHERE hook_id = hook.id AND deliveries.id = $2 AND finished_at IS NOT NULL
     RETURNING hook_id, entity_kind, entity_id, version
   ) ${openLanes('again')}`,
)

/**
 * Queues one delivery again, or brings it forward when it is open. `kept: false`: it cannot be, since its event is no
 * longer kept (a test-send never had one). Undefined: there is no such delivery.
 */
export const replayDelivery = async (
  query: Query,
  hookId: string,
  deliveryId: string,
): Promise<{ kept: boolean } | undefined> => {
  const [row] = await query<{ finishedAt: Date | null; kept: boolean }>(lookUp, [hookId, deliveryId])
  if (row === undefined || !row.kept) return row && { kept: false }
  if (row.finishedAt !== null) await query(reopen, [hookId, deliveryId])
  else {
    await query(hastenLane, [hookId, deliveryId])
    await query(hasten, [hookId, deliveryId])
  }
  await announceLanes(query)
  return { kept: true }
}

// The rows can be listed until retention removes them.
const purge = statement(
  'delivery-purge',
  `UPDATE deliveries SET state = 'cancelled', last_error = 'purged: ' || coalesce(last_error, '')
   WHERE hook_id = $1 AND died_at IS NOT NULL AND state = 'dead' RETURNING id`,
)

/** Cancels dead deliveries, so that a redrive of all does not send them. Returns how many. */
export const purgeDead = async (query: Query, hookId: string): Promise<number> => (await query(purge, [hookId])).length
