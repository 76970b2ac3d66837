import { type Query, statement } from '../../platform/database/database.ts'

// These statements look at everything that is kept, once an hour. They are planned anew each time, for what the tables
// hold by then, and sequential scans are allowed.
const lockRetention = statement(
  'ledger-retention-lock',
  `SELECT pg_try_advisory_xact_lock(7305173) AS mine, set_config('plan_cache_mode', 'force_custom_plan', true),
     set_config('enable_seqscan', 'on', true)`,
)
const expire = [
  statement(
    'ledger-expire-held',
    `UPDATE deliveries SET state = 'cancelled', finished_at = now(), died_at = now(),
       last_error = 'not delivered within the retention time'
     WHERE finished_at IS NULL AND id = ANY(ARRAY(
       SELECT open.id FROM open_deliveries AS open JOIN hooks ON hooks.id = open.hook_id
       WHERE NOT hooks.enabled AND open.created_at < now() - $1 * interval '1 millisecond'))`,
  ),
  statement('ledger-expire-attempts', `DELETE FROM delivery_attempts WHERE at < now() - $1 * interval '1 millisecond'`),
  statement(
    'ledger-expire-deliveries',
    `DELETE FROM deliveries WHERE finished_at < now() - $1 * interval '1 millisecond'`,
  ),
  // A dead letter can be sent again, so its bytes stay as long as it does.
  statement(
    'ledger-expire-outbox',
    `WITH removed AS (
       DELETE FROM outbox WHERE created_at < now() - $1 * interval '1 millisecond'
         AND NOT EXISTS (SELECT FROM outbox_pending AS pending WHERE pending.seq = outbox.seq)
         AND NOT EXISTS (SELECT FROM open_deliveries WHERE event_id = outbox.id)
         AND NOT EXISTS (SELECT FROM deliveries WHERE event_id = outbox.id AND died_at IS NOT NULL AND state = 'dead')
       RETURNING seq)
     UPDATE outbox_removed SET seq = greatest(seq, (SELECT max(seq) FROM removed))`,
  ),
  statement('ledger-expire-replays', `DELETE FROM replays WHERE finished_at < now() - $1 * interval '1 millisecond'`),
  statement(
    'ledger-expire-test-targets',
    `DELETE FROM test_targets WHERE created_at < now() - $1 * interval '1 millisecond'`,
  ),
  statement('ledger-expire-messages', `DELETE FROM messages WHERE finished_at < now() - $1 * interval '1 millisecond'`),
  statement(
    'ledger-expire-logouts',
    `DELETE FROM logout_deliveries WHERE finished_at < now() - $1 * interval '1 millisecond'`,
  ),
]

/** Removes what is older than `keepMs`; nothing that is still to be ingested or delivered. One process at a time. */
export const removeExpired = async (query: Query, keepMs: number): Promise<void> => {
  const [lock] = await query<{ mine: boolean }>(lockRetention, [])
  if (!lock?.mine) return
  for (const one of expire) await query(one, [keepMs])
}
