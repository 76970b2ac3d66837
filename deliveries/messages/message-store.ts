import { type Query, queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { announceLanes } from '../lane-notice-store.ts'
import type { Channel } from './message.ts'

const insert = statement(
  'message-insert',
  `INSERT INTO messages (id, channel, type, sealed, expires_at)
   VALUES ($1, $2, $3, $4, now() + $5 * interval '1 second')`,
)

export interface NewMessage {
  id: string
  channel: Channel
  /** Of the template. */
  type: string
  sealed: Buffer
  /** How long it may wait, in seconds. */
  ttl: number
}

/** In the transaction that makes the message necessary; relays hear of it after the commit. */
export const insertMessage = async (transaction: Transaction, message: NewMessage): Promise<void> => {
  const query = queryOf(transaction)
  await query(insert, [message.id, message.channel, message.type, message.sealed, message.ttl])
  await announceLanes(query)
}

const select = statement('message-outcome', `SELECT state, error FROM messages WHERE id = $1`)

export interface MessageOutcome {
  state: 'waiting' | 'sent' | 'failed' | 'expired'
  /** The category of the last failure. */
  error: string | null
}

/** Undefined when it is not there, or not yet. */
export const messageOutcome = async (query: Query, id: string): Promise<MessageOutcome | undefined> =>
  (await query<MessageOutcome>(select, [id]))[0]

const giveUp = statement(
  'message-give-up',
  `UPDATE messages SET state = 'failed', error = coalesce(error, 'given_up'), sealed = NULL, finished_at = now()
   WHERE id = $1 AND state = 'waiting'`,
)

/** It is not tried again. */
export const giveMessageUp = async (query: Query, id: string): Promise<void> => {
  await query(giveUp, [id])
}
