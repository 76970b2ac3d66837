import { type Query, statement } from '../platform/database/database.ts'

/**
 * Relays look for lanes when they have ingested events, and once a second. Whatever else opens lanes (a test-send, a
 * replay, a hook that is enabled) announces them within its transaction, so that relays hear of it after the commit;
 * messages to people are announced here too. NOTIFY makes commits wait for each other, which matters where events are
 * recorded (`notifier.ts`) and not here.
 */
export const lanesChannel = 'surrogate_lanes'

const announce = statement('lanes-announce', `SELECT pg_notify('${lanesChannel}', '')`)

/** In the transaction that opens the lanes, or that makes them due. */
export const announceLanes = async (query: Query): Promise<void> => {
  await query(announce, [])
}
