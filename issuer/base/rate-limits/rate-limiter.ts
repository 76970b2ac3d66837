import type { Clock } from '../../../platform/clock.ts'
import type { Query } from '../../../platform/database/database.ts'
import { sha256 } from '../../../platform/secret.ts'
import { leaseTokens } from './bucket-store.ts'

/**
 * Token buckets that all instances share. An instance leases a tenth of a bucket at a time from its row and spends that
 * from memory, so most uses cost no round trip; what an idle instance holds back is at most that tenth, for a minute.
 */
export interface RateLimiter {
  /** Takes one token. Resolves to 0, or to the seconds until there is another, at least 1. */
  take(key: string): Promise<number>
  /**
   * The seconds until there is a token, when this instance knows that there is none now; else 0. Takes nothing, asks
   * nobody.
   */
  wait(key: string): number
}

export interface RateLimiterOptions {
  query: Query
  /** Buckets of different names are different buckets. */
  name: string
  /** What a bucket holds and gets anew each minute. */
  perMinute: number
  now: Clock
}

interface Holding {
  tokens: number
  /** In ms since 1970, like `emptyUntil`. */
  goodUntil: number
  emptyUntil: number
  renewal: Promise<void> | undefined
}

const holdMs = 60_000
/** Whoever is forgotten leases anew: nobody gets more for it. */
const maxKeys = 10_000

export const createRateLimiter = ({ query, name, perMinute, now }: RateLimiterOptions): RateLimiter => {
  const block = Math.max(1, Math.floor(perMinute / 10))
  const holdings = new Map<string, Holding>()

  const holdingOf = (key: string): Holding => {
    const known = holdings.get(key)
    if (known) return known
    if (holdings.size >= maxKeys) holdings.delete(holdings.keys().next().value!)
    const fresh: Holding = { tokens: 0, goodUntil: 0, emptyUntil: 0, renewal: undefined }
    holdings.set(key, fresh)
    return fresh
  }

  const renew = async (key: string, holding: Holding) => {
    // Hashed, so that a row is small and says nothing, whatever a caller sends as its name.
    const { leased, waitSeconds } = await leaseTokens(query, sha256(`${name}:${key}`), perMinute, block)
    const at = now().getTime()
    Object.assign(holding, { tokens: leased, goodUntil: at + holdMs, emptyUntil: at + waitSeconds * 1000 })
  }

  const secondsLeft = ({ emptyUntil }: Holding, at: number) =>
    at < emptyUntil ? Math.max(1, Math.ceil((emptyUntil - at) / 1000)) : 0

  return {
    async take(key) {
      const holding = holdingOf(key)
      for (;;) {
        const at = now().getTime()
        if (holding.tokens > 0 && at < holding.goodUntil) {
          holding.tokens--
          return 0
        }
        const seconds = secondsLeft(holding, at)
        if (seconds > 0) return seconds
        holding.renewal ??= renew(key, holding).finally(() => {
          holding.renewal = undefined
        })
        await holding.renewal
      }
    },
    wait(key) {
      const holding = holdings.get(key)
      return holding === undefined || holding.tokens > 0 ? 0 : secondsLeft(holding, now().getTime())
    },
  }
}
