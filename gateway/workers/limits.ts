import { z } from 'zod'
import type { Metrics } from '../../platform/metrics.ts'
import type { BucketAnswer, TokenBuckets } from '../authorize/token-buckets.ts'
import type { GatewayConfig } from '../config/load.ts'
import { countedBuckets, limitKey } from '../open-parts.ts'

/** The token buckets of all workers: a limit holds over all of them because nobody else counts. */
export interface Limits {
  /** For each request all of its tokens, or none. */
  take(requests: readonly (readonly { key: string; party: string }[])[]): BucketAnswer[][]
  /** Forgets the buckets that neither this configuration has nor the one before it. */
  keep(config: GatewayConfig): void
}

/** What a limit's key says of it. */
const limit = z.object({ requests: z.number().positive(), per: z.number().positive(), burst: z.number().positive() })

export const createLimits = ({ metrics }: { metrics: Metrics }): Limits => {
  const limits = new Map<string, { buckets: TokenBuckets; close(): void }>()
  let kept: ReadonlySet<string> = new Set()

  const bucketsOf = (key: string): TokenBuckets => {
    const known = limits.get(key)
    if (known) return known.buckets
    const opened = countedBuckets(limit.parse(JSON.parse(key)), metrics)
    limits.set(key, opened)
    return opened.buckets
  }

  return {
    take(requests) {
      const now = Date.now()
      return requests.map((wanted) => {
        const asked = wanted.map(({ key, party }) => ({ buckets: bucketsOf(key), party }))
        const answers = asked.map(({ buckets, party }) => buckets.ask(party, now))
        if (answers.every(({ wait }) => wait === 0)) for (const { buckets, party } of asked) buckets.take(party, now)
        return answers
      })
    },
    keep({ routes }) {
      const keys = new Set(routes.flatMap(({ id, rateLimits }) => rateLimits.map((one) => limitKey(id, one))))
      for (const [key, { close }] of limits) {
        if (keys.has(key) || kept.has(key)) continue
        close()
        limits.delete(key)
      }
      kept = keys
    },
  }
}
