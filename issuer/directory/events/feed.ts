import { setTimeout as delay } from 'node:timers/promises'
import {
  cursorBefore,
  type EventHead,
  lastSeqGiven,
  readFeed,
  readHeads,
  removedUpTo,
  writersNow,
} from '../../../events/feed-store.ts'
import type { Query } from '../../../platform/database/database.ts'
import { problem } from '../../base/errors/problems.ts'

/**
 * The events of the ledger for readers that keep a cursor. Numbers are given out before their transactions commit, so a
 * later number can become visible before an earlier one, and a reader that went by what it sees would miss the late
 * one. Events are therefore shown only up to a high-water mark: a number is one once every transaction that was writing
 * to the outbox when it was the last number has ended.
 */
export interface EventFeed {
  read(request: FeedRequest): Promise<FeedPage>
  /** The cursor behind everything that is shown now. */
  position(): Promise<number>
  /** Whether a reader can go on behind this cursor and has missed nothing. */
  keeps(after: number): Promise<boolean>
  /** What stands behind a cursor that is kept, up to where `position` or `read` came last. */
  heads(after: number, limit: number): Promise<HeadsPage>
  /** Answers everybody who waits. */
  close(): void
}

export interface FeedRequest {
  /** The cursor of the last answer. Absent: from `since` on, or else from the oldest event that is kept. */
  after?: number | undefined
  since?: Date | undefined
  types: readonly string[]
  organizationIds?: readonly string[] | undefined
  entity?: { kind: string; id: string } | undefined
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

export interface HeadsPage extends Pick<FeedPage, 'cursor' | 'more'> {
  heads: EventHead[]
  upTo: number
}

const maxBytes = 4_000_000
/** While readers wait, in ms. */
const pollEveryMs = 200
/** While transactions write, the mark is looked for this often, and for at most `markTimeoutMs`; in ms. */
const markEveryMs = 10
const markTimeoutMs = 250

export const createEventFeed = ({ query }: { query: Query }): EventFeed => {
  const closing = new AbortController()
  let highWaterMark = 0
  let pending: { seq: number; writers: Set<string> } | undefined
  let advancing: Promise<number> | undefined

  /**
   * Moves the mark; answers the last number that was given out when it looked. The order of the two questions matters.
   */
  const advanceNow = async (): Promise<number> => {
    const seq = await lastSeqGiven(query)
    if (seq === highWaterMark) return seq
    const writers = await writersNow(query)
    if (writers.size === 0) {
      highWaterMark = Math.max(highWaterMark, seq)
      pending = undefined
      return seq
    }
    if (pending) for (const writer of pending.writers) if (!writers.has(writer)) pending.writers.delete(writer)
    if (pending && pending.writers.size > 0) return seq
    if (pending) highWaterMark = Math.max(highWaterMark, pending.seq)
    pending = { seq, writers }
    return seq
  }
  const advance = (): Promise<number> => {
    advancing ??= advanceNow().finally(() => {
      advancing = undefined
    })
    return advancing
  }

  const awaitMark = async (): Promise<void> => {
    const until = performance.now() + markTimeoutMs
    const wanted = await advance()
    while (highWaterMark < wanted && performance.now() < until && !closing.signal.aborted) {
      await delay(markEveryMs)
      await advance()
    }
  }

  /** Why a reader cannot go on behind this cursor. */
  const refusalOf = async (after: number): Promise<string | undefined> => {
    if (after < (await removedUpTo(query))) return 'Events after it were removed for their age.'
    // A backup was restored: what comes now has numbers that this reader has seen on others.
    if (after > (await lastSeqGiven(query))) return 'There are no events up to it: the database is an older one.'
    return undefined
  }

  const start = async ({ after, since }: FeedRequest): Promise<number> => {
    if (after === undefined) return since === undefined ? 0 : cursorBefore(query, since)
    const detail = await refusalOf(after)
    if (detail !== undefined) throw problem('events.cursor_expired', { detail })
    return after
  }

  return {
    async read(request) {
      const until = performance.now() + request.waitMs
      let cursor = await start(request)
      for (;;) {
        await awaitMark()
        const upTo = highWaterMark
        const { types, organizationIds, entity, limit } = request
        const range = { after: cursor, upTo, types, organizationIds, entity, limit, maxBytes }
        const rows = upTo > cursor ? await readFeed(query, range) : []
        const last = rows.at(-1)
        const bytes = rows.reduce((sum, { payload }) => sum + payload.length, 0)
        const more = rows.length === limit || bytes >= maxBytes
        // What was looked at and is not for this reader is behind it too.
        cursor = more && last ? last.seq : Math.max(cursor, upTo)
        const left = until - performance.now()
        if (last || left <= 0 || closing.signal.aborted)
          return { payloads: rows.map(({ payload }) => payload), cursor, more }
        await delay(Math.min(pollEveryMs, left), undefined, { signal: closing.signal }).catch(() => {})
      }
    },
    async position() {
      await awaitMark()
      return highWaterMark
    },
    keeps: async (after) => (await refusalOf(after)) === undefined,
    async heads(after, limit) {
      const upTo = Math.max(highWaterMark, after)
      const found = upTo > after ? await readHeads(query, { after, upTo, limit }) : []
      const more = found.length === limit
      return { heads: found, cursor: more ? found.at(-1)!.seq : upTo, more, upTo }
    },
    close: () => closing.abort(),
  }
}
