import type { Clock } from '../../../platform/clock.ts'
import { setting } from '../../../platform/config.ts'
import type { Query } from '../../../platform/database/database.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import { OAuthError, problem } from '../errors/problems.ts'
import { addressKey } from './address-key.ts'
import { createRateLimiter, type RateLimiter } from './rate-limiter.ts'

/** All per minute. Undefined: no limit. */
export interface RateLimits {
  /** Failed client authentications, for each client and for each address. */
  failedAuthentications: number
  /** Token requests of each authenticated client. */
  tokens?: number | undefined
  /** Token requests from each address. */
  tokensPerAddress?: number | undefined
  /** Management API requests of each client. */
  management?: number | undefined
}

/** Authorization requests of one address that are kept until its browser comes back, per minute. */
const storedRequests = 300

export const rateLimitDefaults: RateLimits = { failedAuthentications: 60 }

/** Nobody is registered under a longer one, so what is sent as one need not be remembered. */
const maxClientIdLength = 64

const perMinute = setting.integer(1, 1_000_000_000)

/** The settings behind `RateLimits`. */
export const rateLimitSettings = {
  RATE_LIMIT_FAILED_AUTHENTICATIONS: perMinute.default(rateLimitDefaults.failedAuthentications),
  RATE_LIMIT_TOKENS: perMinute.optional(),
  RATE_LIMIT_TOKENS_PER_ADDRESS: perMinute.optional(),
  RATE_LIMIT_MANAGEMENT: perMinute.optional(),
}

/**
 * The limits of the issuer as its endpoints use them. A request that succeeds costs nothing where no limit is set for
 * it.
 */
export interface Limits {
  /**
   * Throws 429 while too many authentications from this address have failed, before anything is looked up; not for a
   * client that has authenticated from there before, so that one program with a wrong secret does not stop its
   * neighbours behind the same address.
   */
  refuseGuessing(address: string, clientId: string | undefined): void
  /** This client has authenticated from this address. */
  countSuccess(address: string, clientId: string): void
  /**
   * Counts a failed authentication and throws 429 when it is one too many for the address or for the client it named. A
   * client is not kept out by what others send in its name: with its right secret it is let in all the same, since
   * nobody guesses 256 random bits.
   */
  countFailure(address: string, clientId: string | undefined): Promise<void>
  /** Throws 429 when the address asks for too many tokens. */
  tokenRequestFrom: ((address: string) => Promise<void>) | undefined
  /** Throws 429 when the client asks for too many tokens. */
  tokenRequestBy: ((clientId: string) => Promise<void>) | undefined
  /** Throws 429 when too many authorization requests of the address are to be kept. */
  storedRequestFrom: ((address: string) => Promise<void>) | undefined
  /** Throws 429 `rate_limit.exceeded` when the client calls the Management API too often. */
  managementRequestBy: ((clientId: string) => Promise<void>) | undefined
}

export interface LimitsDependencies {
  query: Query
  limits: RateLimits
  now: Clock
  metrics: Metrics
}

export const createLimits = ({ query, limits, now, metrics }: LimitsDependencies): Limits => {
  const counter = metrics.counter('surrogate_rate_limited_total', 'Requests refused with 429, by limit.', ['limit'])
  const limiter = (name: string, count: number): RateLimiter =>
    createRateLimiter({ query, name, perMinute: count, now })

  const oauthRefusal = (limit: string, seconds: number, what: string) => {
    counter.inc({ limit })
    // RFC 6749 has no code for this; RFC 6585 §4 has the status.
    return new OAuthError('temporarily_unavailable', `Too many ${what}; try again in ${seconds} s.`, {
      status: 429,
      headers: { 'Retry-After': String(seconds) },
    })
  }
  const managementRefusal = (limit: string, seconds: number) => {
    counter.inc({ limit })
    return problem('rate_limit.exceeded', { headers: { 'Retry-After': String(seconds) } })
  }
  const guard = (
    name: string,
    count: number | undefined,
    keyOf: (text: string) => string,
    refusal: (limit: string, seconds: number) => Error,
  ) => {
    if (count === undefined) return undefined
    const { take } = limiter(name, count)
    return async (text: string) => {
      const seconds = await take(keyOf(text))
      if (seconds > 0) throw refusal(name, seconds)
    }
  }

  const byAddress = limiter('failures-of-address', limits.failedAuthentications)
  const byClient = limiter('failures-of-client', limits.failedAuthentications)
  const proven = createRecentSet(20_000)
  const guessing = (seconds: number) => oauthRefusal('failed_authentications', seconds, 'failed authentications')
  const tokens = (limit: string, seconds: number) => oauthRefusal(limit, seconds, 'token requests')
  const same = (text: string) => text
  return {
    refuseGuessing(address, clientId) {
      const key = addressKey(address)
      const seconds = byAddress.wait(key)
      if (seconds > 0 && !proven.has(`${key} ${clientId}`)) throw guessing(seconds)
    },
    countSuccess: (address, clientId) => proven.add(`${addressKey(address)} ${clientId}`),
    async countFailure(address, clientId) {
      const waits = await Promise.all([
        byAddress.take(addressKey(address)),
        clientId === undefined || clientId.length > maxClientIdLength ? 0 : byClient.take(clientId),
      ])
      const seconds = Math.max(...waits)
      if (seconds > 0) throw guessing(seconds)
    },
    tokenRequestFrom: guard('tokens_per_address', limits.tokensPerAddress, addressKey, tokens),
    tokenRequestBy: guard('tokens', limits.tokens, same, tokens),
    storedRequestFrom: guard('stored_requests', storedRequests, addressKey, (limit, seconds) =>
      oauthRefusal(limit, seconds, 'authorization requests'),
    ),
    managementRequestBy: guard('management', limits.management, same, managementRefusal),
  }
}

/** The last `most` texts that were new. */
const createRecentSet = (most: number) => {
  const texts = new Set<string>()
  return {
    has: (text: string) => texts.has(text),
    add(text: string) {
      if (texts.has(text)) return
      if (texts.size >= most) texts.delete(texts.values().next().value!)
      texts.add(text)
    },
  }
}
