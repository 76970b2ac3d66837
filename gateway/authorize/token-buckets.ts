/** Token buckets of many callers in bounded memory: one number for each. */
export interface TokenBuckets {
  /** What taking one token would mean; takes nothing yet. `now` in ms. */
  ask(key: string, now: number): BucketAnswer
  /** Takes a token. If `ask` said `wait`, the token taken is the one that becomes available then. */
  take(key: string, now: number): void
  readonly size: number
  /** Buckets that were forgotten, before they were full again, for lack of room. */
  readonly forgotten: number
}

export interface BucketAnswer {
  /** ms until there is a token; 0: there is one. */
  wait: number
  /** Whole tokens left after taking this one. */
  left: number
  /** ms until the bucket is full again. */
  fullIn: number
}

/**
 * Generic cell rate algorithm: a bucket is the time at which it is full again, so nothing is refilled. A full bucket
 * can be forgotten. There are two maps, and a touched bucket moves to the young one. When that holds half of
 * `maxBuckets`, or is older than a full refill, it becomes the old one and the old one is dropped.
 */
export const createTokenBuckets = (options: {
  /** Tokens in `per` ms, evenly. */
  requests: number
  per: number
  /** Tokens of a full bucket. */
  burst: number
  maxBuckets?: number
}): TokenBuckets => {
  const { requests, per, burst, maxBuckets = 100_000 } = options
  const interval = per / requests
  const fill = interval * burst
  let young = new Map<string, number>()
  let old = new Map<string, number>()
  let youngSince = 0
  let forgotten = 0

  const age = (now: number): void => {
    const full = young.size >= maxBuckets / 2
    if (!full && now - youngSince < fill) return
    if (full) for (const fullAt of old.values()) if (fullAt > now) forgotten++
    old = young
    young = new Map()
    youngSince = now
  }
  const fullAt = (key: string, now: number): number => Math.max(young.get(key) ?? old.get(key) ?? 0, now) + interval

  return {
    ask(key, now) {
      const next = fullAt(key, now)
      // Intervals are fractions of milliseconds: half a microsecond less is a rounding error, not an early request.
      const spare = fill - (next - now) + 0.0005
      if (spare < 0) return { wait: Math.ceil(-spare), left: 0, fullIn: next - interval - now }
      return { wait: 0, left: Math.floor(spare / interval), fullIn: next - now }
    },
    take(key, now) {
      const next = fullAt(key, now)
      if (!young.has(key)) age(now)
      young.set(key, next)
    },
    get size() {
      return young.size + old.size
    },
    get forgotten() {
      return forgotten
    },
  }
}
