import { z } from 'zod'
import { removedUpTo } from '../../events/feed-store.ts'
import { impersonation } from '../../events/records.ts'
import { createBackOff } from '../../platform/back-off.ts'
import type { Database, Query } from '../../platform/database/database.ts'
import type { Logger } from '../../platform/logger.ts'
import { pause } from '../../platform/wake-up.ts'
import type { NotifyOwner } from '../base/owner-notices.ts'
import type { EventFeed } from '../directory/events/feed.ts'
import { findParties } from '../tokens/impersonations/parties-store.ts'
import { findCursor, moveCursor } from './notice-store.ts'

export interface ImpersonationNoticesOptions {
  database: Pick<Database, 'query' | 'transaction'>
  feed: Pick<EventFeed, 'read'>
  notifyOwner: NotifyOwner
  /** Whether people are told at all. */
  isOn: () => boolean
  logger: Logger
  /** Between looks at the ledger, in ms. Default 2 000. */
  pollMs?: number | undefined
}

const types = ['Impersonation.Started', 'Impersonation.Ended'] as const
const told = z.object({
  event: z.enum(types),
  data: impersonation.pick({ subjectId: true, actorId: true, clientId: true, reason: true }).strip(),
})
/** Events of one transaction. */
const batch = 100

/**
 * Tells people who acts as them. It follows the ledger, so an exchange costs nothing more, and nothing is missed where
 * impersonations begin or end: the cursor moves in the transaction that tells. Every issuer does it; of several one
 * moves the cursor.
 */
export const startImpersonationNotices = (options: ImpersonationNoticesOptions): { close(): Promise<void> } => {
  const { database, feed, notifyOwner, isOn, logger, pollMs = 2_000 } = options
  const { query } = database
  const stopping = new AbortController()
  const { signal } = stopping

  const tell = async (trx: Query, payload: Buffer) => {
    const { event, data } = told.parse(JSON.parse(payload.toString()))
    const owner = await findParties(trx, data)
    if (!owner) return
    const { actor } = owner
    await notifyOwner(
      trx,
      owner,
      event === 'Impersonation.Started'
        ? { type: 'ImpersonationStarted', actor, reason: data.reason }
        : { type: 'ImpersonationEnded', actor },
    )
  }

  /** Answers whether there may be more already. */
  const step = async (): Promise<boolean> => {
    const { seq, isBehind } = await findCursor(query)
    if (!isBehind) return false
    // Every issuer was away for longer than events are kept.
    const after = Math.max(seq, await removedUpTo(query))
    const { payloads, cursor, more } = await feed.read({ after, types, limit: batch, waitMs: 0 })
    if (cursor === seq) return false
    if (payloads.length === 0 || !isOn()) {
      await moveCursor(query, seq, cursor)
      return more
    }
    await database.transaction(async (trx) => {
      if (!(await moveCursor(trx, seq, cursor))) return
      for (const payload of payloads) await tell(trx, payload)
    })
    return more
  }

  const run = async () => {
    const backOff = createBackOff()
    while (!signal.aborted) {
      try {
        if (!(await step())) await pause(pollMs, signal)
        backOff.reset()
      } catch (error) {
        logger.error({ err: error }, 'people could not be told who acts as them; trying again')
        await pause(backOff.next(), signal)
      }
    }
  }
  const ended = run()

  return {
    async close() {
      stopping.abort()
      await ended
    },
  }
}
