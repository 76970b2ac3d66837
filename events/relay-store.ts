import { type Query, statement } from '../platform/database.ts'

/** The relays that run. */

const enter = statement(
  'relays-enter',
  `INSERT INTO relays (id, alive_until) VALUES ($1, now() + $2 * interval '1 millisecond')`,
)
const renew = statement(
  'relays-renew',
  `UPDATE relays SET alive_until = now() + $2 * interval '1 millisecond' WHERE id = $1 AND alive_until > now() RETURNING id`,
)

/** Table expressions that free the lanes `whose` is true of. The order of locks is the same everywhere. */
const freeing = (whose: string) => `
   left_behind AS (
     SELECT hook_id, entity_kind, entity_id FROM lanes WHERE ${whose}
     ORDER BY hook_id, entity_kind, entity_id FOR UPDATE
   ),
   freed AS (
     UPDATE lanes SET leased_by = NULL FROM left_behind
     WHERE lanes.hook_id = left_behind.hook_id AND lanes.entity_kind = left_behind.entity_kind
       AND lanes.entity_id = left_behind.entity_id
     RETURNING 1
   )`

const leave = statement(
  'relays-leave',
  `WITH gone AS (DELETE FROM relays WHERE id = $1), ${freeing('leased_by = $1')} SELECT count(*) AS lanes FROM freed`,
)

export const enterRelay = async (query: Query, id: string, aliveMs: number): Promise<void> => {
  await query(enter, [id, aliveMs])
}

/** False when its time was up: others have its lanes, or are about to. */
export const renewRelay = async (query: Query, id: string, aliveMs: number): Promise<boolean> =>
  (await query(renew, [id, aliveMs])).length > 0

/** What it has not given back is freed. */
export const leaveRelay = async (query: Query, id: string): Promise<void> => {
  await query(leave, [id])
}

const takeOver = statement(
  'relays-take-over',
  `WITH gone AS (DELETE FROM relays WHERE alive_until < now() RETURNING id),
   ${freeing('leased_by IN (SELECT id FROM gone)')}
   SELECT (SELECT count(*) FROM gone) AS relays, (SELECT count(*) FROM freed) AS lanes`,
)

/** Frees the lanes of relays whose time was up. */
export const takeOverLanes = async (query: Query): Promise<{ relays: number; lanes: number }> =>
  (await query<{ relays: number; lanes: number }>(takeOver, []))[0]!

const freeUnknown = statement(
  'relays-free-unknown',
  `WITH ${freeing('leased_by = $1 AND fence <> ALL($2::bigint[])')} SELECT count(*) AS lanes FROM freed`,
)

/**
 * Frees the lanes that a relay has without knowing it, because the answer to its claim was lost: all but those with `fences`. Returns how
 * many. The relay must have no claim under way.
 */
export const freeUnknownLanes = async (query: Query, id: string, fences: readonly number[]): Promise<number> =>
  (await query<{ lanes: number }>(freeUnknown, [id, fences]))[0]!.lanes
