import { hash } from 'node:crypto'
import type { Principal } from '../request/principal.ts'

/** What a token was verified under; it counts only while all of it still holds. */
export interface VerifiedToken {
  readonly principal: Principal
  /** Its issuer's keys, and their generation when it was verified. */
  readonly keys: { readonly generation: number; usable(): boolean }
  readonly generation: number
  /** ms since the epoch; the token's own `exp`, without skew. */
  readonly expiresAt: number
  /** Length of the token in characters; what is kept of it takes a few times that. */
  readonly size: number
}

/**
 * Verified tokens by SHA-256, one cache for each loaded configuration. An entry ends with its token's `exp`, and when a
 * key of its issuer leaves or its issuer's keys become too old to be used. Only tokens that verified get in, so nobody
 * else can push good ones out. Holds at most 50 000 tokens and at most 32 million characters of them.
 */
export interface VerifiedTokenCache {
  get(key: string, now: number): Principal | undefined
  set(key: string, token: VerifiedToken): void
  readonly size: number
}

/** ~1 µs for a usual token; keeps the tokens themselves out of memory. */
export const tokenKey = (token: string): string => hash('sha256', token, 'base64')

export const createVerifiedTokenCache = ({ maxEntries = 50_000, maxSize = 32_000_000 } = {}): VerifiedTokenCache => {
  const entries = new Map<string, VerifiedToken>()
  let total = 0
  const remove = (key: string): void => {
    total -= entries.get(key)?.size ?? 0
    entries.delete(key)
  }
  return {
    get(key, now) {
      const entry = entries.get(key)
      if (!entry) return undefined
      if (now < entry.expiresAt && entry.generation === entry.keys.generation && entry.keys.usable())
        return entry.principal
      remove(key)
      return undefined
    },
    set(key, token) {
      remove(key)
      entries.set(key, token)
      total += token.size
      // The oldest goes first: maps keep the order of insertion.
      while (entries.size > maxEntries || total > maxSize) remove(entries.keys().next().value!)
    },
    get size() {
      return entries.size
    },
  }
}
