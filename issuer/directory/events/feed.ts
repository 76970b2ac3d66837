import { setTimeout as delay } from 'node:timers/promises'
import { cursorBefore, lastSeqGiven, readFeed, removedUpTo, writersNow } from '../../../events/feed-store.ts'
import type { Query } from '../../../platform/database.ts'
import { problem } from '../../base/errors/problems.ts'

/**
 * The events of the ledger for readers that keep a cursor. Numbers are given out before their transactions commit, so a later number can be
 * seen before an earlier one: a reader that went by what it sees would miss the late one for ever. So it is shown only what lies below a mark
 * that is settled: every transaction that was writing to the outbox when the mark was the last number has ended since.
 */
export interface EventFeed {
  read(request: FeedRequest): Promise<FeedPage>
  /** Answers everybody who waits. */
  close(): void
}

export interface FeedRequest {
  /** The cursor of the last answer. Absent: from `since` on, or else from the oldest event that is kept. */
  after?: number | undefined
  since?: Date | undefined
  types: readonly string[]
  organizationIds?: readonly string[] | undefined
  limit: number
  /** How long to wait for the first event, in ms. */
  waitMs: number
}

export interface FeedPage {
  payloads: Buffer[]
  cursor: number
  /** There are more already. */
  more: boolean
}

const maxBytes = 4_000_000
/** While readers wait, in ms. */
const lookEveryMs = 200
/** A look that finds writers is repeated this soon, and for at most this long before the answer does without what they write. In ms. */
const settleEveryMs = 10
const settleMs = 250

export const createEventFeed = ({ query }: { query: Query }): EventFeed => {
  const closing = new AbortController()
  let settled = 0
  let pending: { seq: number; writers: Set<string> } | undefined
  let looking: Promise<number> | undefined

  /** Moves the mark; answers the last number that was given out when it looked. The order of the two questions matters. */
  const lookNow = async (): Promise<number> => {
    const seq = await lastSeqGiven(query)
    const writers = await writersNow(query)
    if (writers.size === 0) {
      settled = Math.max(settled, seq)
      pending = undefined
      return seq
    }
    if (pending) for (const writer of pending.writers) if (!writers.has(writer)) pending.writers.delete(writer)
    if (pending && pending.writers.size > 0) return seq
    if (pending) settled = Math.max(settled, pending.seq)
    pending = { seq, writers }
    return seq
  }
  const look = (): Promise<number> => {
    looking ??= lookNow().finally(() => {
      looking = undefined
    })
    return looking
  }

  const settle = async (): Promise<void> => {
    const until = performance.now() + settleMs
    const wanted = await look()
    while (settled < wanted && performance.now() < until && !closing.signal.aborted) {
      await delay(settleEveryMs)
      await look()
    }
  }

  const start = async ({ after, since }: FeedRequest): Promise<number> => {
    if (after === undefined) return since === undefined ? 0 : cursorBefore(query, since)
    if (after < (await removedUpTo(query)))
      throw problem('events.cursor_expired', { detail: 'Events after it were removed for their age.' })
    // A backup was restored: what comes now has numbers that this reader has seen on others.
    if (after > (await lastSeqGiven(query)))
      throw problem('events.cursor_expired', {
        detail: 'There are no events up to it: the database is an older one.',
      })
    return after
  }

  return {
    async read(request) {
      const until = performance.now() + request.waitMs
      let cursor = await start(request)
      for (;;) {
        await settle()
        const upTo = settled
        const { types, organizationIds, limit } = request
        const rows =
          upTo > cursor ? await readFeed(query, { after: cursor, upTo, types, organizationIds, limit, maxBytes }) : []
        const last = rows.at(-1)
        const bytes = rows.reduce((sum, { payload }) => sum + payload.length, 0)
        const more = rows.length === limit || bytes >= maxBytes
        // What was looked at and is not for this reader is behind it too.
        cursor = more && last ? last.seq : Math.max(cursor, upTo)
        const left = until - performance.now()
        if (last || left <= 0 || closing.signal.aborted)
          return { payloads: rows.map(({ payload }) => payload), cursor, more }
        await delay(Math.min(lookEveryMs, left), undefined, { signal: closing.signal }).catch(() => {})
      }
    },
    close: () => closing.abort(),
  }
}
