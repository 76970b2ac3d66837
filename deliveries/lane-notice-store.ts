import { type Query, statement } from '../platform/database.ts'

/**
 * Relays look for lanes when they have taken events in, and once a second. What opens lanes otherwise (a test-send, a replay, a hook that is
 * enabled) tells them. In the transaction, so it is heard when it has committed, and only then; NOTIFY makes commits wait for each other,
 * which matters to the many that record events (`notifier.ts`) and not to these few.
 */
export const lanesChannel = 'surrogate_lanes'

const announce = statement('lanes-announce', `SELECT pg_notify('${lanesChannel}', '')`)

/** In the transaction that opens the lanes, or that makes them due. */
export const announceLanes = async (query: Query): Promise<void> => {
  await query(announce, [])
}
