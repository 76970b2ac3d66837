import type { Channel } from '../../deliveries/messages/message.ts'
import { type Query, statement } from '../../platform/database/database.ts'

/** A message that this relay sends now. */
export interface ClaimedMessage {
  id: string
  type: string
  sealed: Buffer
  /** This one included. It tells this claim from later ones. */
  attempts: number
  /** Until it may no longer be sent, in ms. */
  remainingMs: number
}

const claim = statement(
  'messages-claim',
  `UPDATE messages SET attempts = attempts + 1, next_attempt_at = now() + $3 * interval '1 millisecond'
   WHERE id = ANY(ARRAY(
     SELECT id FROM messages
     WHERE state = 'waiting' AND channel = $1 AND next_attempt_at <= now() AND expires_at > now()
       AND (NOT $4::boolean OR type = 'Test')
     ORDER BY next_attempt_at LIMIT $2 FOR UPDATE SKIP LOCKED))
   RETURNING id, type, sealed, attempts, extract(epoch FROM expires_at - now())::float8 * 1000 AS "remainingMs"`,
)

/** Takes messages that are due; for `leaseMs` no other relay does. */
export const claimMessages = (
  query: Query,
  options: { channel: Channel; limit: number; leaseMs: number; testsOnly: boolean },
): Promise<ClaimedMessage[]> =>
  query<ClaimedMessage>(claim, [options.channel, options.limit, options.leaseMs, options.testsOnly])

const sent = statement(
  'message-sent',
  `UPDATE messages SET state = 'sent', sealed = NULL, error = NULL, connector = $2, finished_at = now()
   WHERE id = $1 AND state = 'waiting'`,
)

/** Whoever holds it by now: it was sent. */
export const messageSent = async (query: Query, id: string, connector: string): Promise<void> => {
  await query(sent, [id, connector])
}

// What could only be tried again after its time is given up now.
const failed = statement(
  'message-failed',
  `WITH tried AS (
     SELECT id, $5::float8 IS NULL OR now() + $5 * interval '1 millisecond' >= expires_at AS over FROM messages
     WHERE id = $1 AND attempts = $2 AND state = 'waiting' FOR UPDATE)
   UPDATE messages SET error = $3, connector = $4,
     state = CASE WHEN over THEN 'failed' ELSE 'waiting' END,
     sealed = CASE WHEN over THEN NULL ELSE sealed END,
     finished_at = CASE WHEN over THEN now() END,
     next_attempt_at = CASE WHEN over THEN next_attempt_at ELSE now() + $5 * interval '1 millisecond' END
   FROM tried WHERE messages.id = tried.id RETURNING over`,
)

/** `retryMs`: when it is tried again; undefined gives it up. Answers whether it was given up. */
export const messageFailed = async (
  query: Query,
  { id, attempts }: ClaimedMessage,
  failure: { error: string; connector: string | undefined; retryMs: number | undefined },
): Promise<boolean> => {
  const values = [id, attempts, failure.error, failure.connector ?? null, failure.retryMs ?? null]
  const [row] = await query<{ over: boolean }>(failed, values)
  return row?.over ?? false
}

const expire = statement(
  'messages-expire',
  `UPDATE messages SET state = 'expired', sealed = NULL, finished_at = now()
   WHERE id = ANY(ARRAY(
     SELECT id FROM messages WHERE state = 'waiting' AND expires_at <= now()
     ORDER BY expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED))
   RETURNING channel`,
)

/** Erases what was not sent in time. Answers the channels, one for each. */
export const expireMessages = async (query: Query): Promise<Channel[]> =>
  (await query<{ channel: Channel }>(expire, [])).map(({ channel }) => channel)

const waiting = statement(
  'messages-waiting',
  `SELECT channel, count(*) AS total FROM messages WHERE state = 'waiting' GROUP BY channel`,
)

export const waitingMessages = (query: Query): Promise<{ channel: Channel; total: number }[]> =>
  query<{ channel: Channel; total: number }>(waiting, [])
