import { Secret } from '../../platform/secret.ts'
import { createRevocationIndex, type RevocationEntry } from '../caller/revocation-index.ts'
import { followRevocations } from '../caller/revocation-reader.ts'
import type { FeedAddress } from './messages.ts'

/** What a follower is told of its feed. */
export interface Follower {
  /** `silent`: how long ago the feed was heard of, in ms. */
  revoked(entries: readonly RevocationEntry[], upToDate: boolean, silent: number): void
  failed(reason: string, failures: number): void
}

/** Revocation feeds, each read once for all workers. */
export interface Feeds {
  /** Tells all that is known, and then what is new. Returns what ends that; nobody's feed is not read. */
  follow(address: FeedAddress, follower: Follower): () => void
  close(): Promise<void>
}

interface Feed {
  followers: Set<Follower>
  /** All that was told so far, for those who come later. */
  tellAll(follower: Follower): void
  close(): Promise<void>
}

const pruneEveryMs = 60_000

export const createFeeds = (): Feeds => {
  const feeds = new Map<string, Feed>()
  return {
    follow(address, follower) {
      const key = JSON.stringify(address)
      const feed = feeds.get(key) ?? openFeed(address)
      feeds.set(key, feed)
      feed.followers.add(follower)
      feed.tellAll(follower)
      return () => {
        feed.followers.delete(follower)
        if (feed.followers.size > 0 || feeds.get(key) !== feed) return
        feeds.delete(key)
        void feed.close()
      }
    },
    async close() {
      await Promise.all([...feeds.values()].map((feed) => feed.close()))
    },
  }
}

const openFeed = ({ url, id, secret, waitSeconds }: FeedAddress): Feed => {
  const followers = new Set<Follower>()
  const index = createRevocationIndex()
  let heardAt: number | undefined
  let prunedAt = performance.now()
  const reader = followRevocations({
    url,
    client: { id, secret: new Secret(secret) },
    waitSeconds,
    onPage(entries, upToDate) {
      for (const entry of entries) index.add(entry)
      if (upToDate) heardAt = performance.now()
      if (performance.now() - prunedAt > pruneEveryMs) {
        index.prune(Date.now() / 1000)
        prunedAt = performance.now()
      }
      for (const follower of followers) follower.revoked(entries, upToDate, 0)
    },
    onFailure(reason, failures) {
      for (const follower of followers) follower.failed(reason, failures)
    },
  })
  return {
    followers,
    tellAll(follower) {
      const silent = heardAt === undefined ? 0 : performance.now() - heardAt
      follower.revoked(index.entries(), heardAt !== undefined, silent)
    },
    close: reader.close,
  }
}
