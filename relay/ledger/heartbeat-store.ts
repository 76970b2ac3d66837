import { oneRow, type Query, statement } from '../../platform/database/database.ts'

/** The relays that run, and what becomes of the lanes of those that do not. */

const enter = statement(
  'relays-enter',
  `INSERT INTO relays (id, alive_until) VALUES ($1, now() + $2 * interval '1 millisecond')`,
)
const renew = statement(
  'relays-renew',
  `UPDATE relays SET alive_until = now() + $2 * interval '1 millisecond' WHERE id = $1 AND alive_until > now() RETURNING id`,
)

/** Frees the lanes that match `whose`. They are locked first, in the order in which everybody locks lanes. */
const freeing = (name: string, whose: string) => {
  const lock = statement(
    `relays-lock-${name}`,
    `SELECT FROM lanes WHERE ${whose} ORDER BY hook_id, entity_kind, entity_id FOR UPDATE`,
  )
  const free = statement(
    `relays-free-${name}`,
    `WITH freed AS (UPDATE lanes SET leased_by = NULL WHERE ${whose} RETURNING 1) SELECT count(*) AS lanes FROM freed`,
  )
  return async (query: Query, values: readonly unknown[]): Promise<number> => {
    await query(lock, values)
    return (await oneRow(query<{ lanes: number }>(free, values))).lanes
  }
}

const freeLeft = freeing('left', 'leased_by = ANY($1::uuid[])')
const freeUnknown = freeing('unknown', 'leased_by = $1 AND fence <> ALL($2::bigint[]) AND fence < $3')

export const enterRelay = async (query: Query, id: string, aliveMs: number): Promise<void> => {
  await query(enter, [id, aliveMs])
}

/** False when it comes too late: other relays have taken its lanes over, or are about to. */
export const renewRelay = async (query: Query, id: string, aliveMs: number): Promise<boolean> =>
  (await query(renew, [id, aliveMs])).length > 0

const leave = statement('relays-leave', `DELETE FROM relays WHERE id = $1`)

/** Removes the relay, and frees the lanes that it has not given back. In the caller's transaction. */
export const leaveRelay = async (query: Query, id: string): Promise<void> => {
  await query(leave, [id])
  await freeLeft(query, [[id]])
}

const removeSilent = statement('relays-remove-silent', `DELETE FROM relays WHERE alive_until < now() RETURNING id`)

/** Removes relays whose heartbeat did not come, and frees their lanes. In the caller's transaction. */
export const takeOverLanes = async (query: Query): Promise<{ relays: number; lanes: number }> => {
  const gone = await query<{ id: string }>(removeSilent, [])
  const lanes = gone.length > 0 ? await freeLeft(query, [gone.map(({ id }) => id)]) : 0
  return { relays: gone.length, lanes }
}

const fence = statement('relays-next-fence', `SELECT nextval('lane_fences') AS fence`)

/** Every lease that is made from now on has a higher one. */
export const nextFence = async (query: Query): Promise<number> =>
  Number((await oneRow(query<{ fence: number | string }>(fence, []))).fence)

/**
 * Frees lanes that the relay leased without learning of it, because the answer was lost: those leased before fence
 * `before`, except `fences`. Returns how many. In the caller's transaction.
 */
export const freeUnknownLanes = (
  query: Query,
  id: string,
  { fences, before }: { fences: readonly number[]; before: number },
): Promise<number> => freeUnknown(query, [id, fences, before])
