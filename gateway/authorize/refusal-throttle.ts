import type { Metrics } from '../../platform/metrics.ts'
import type { ProblemCode } from '../refusals/problems.ts'
import type { RequestContext } from '../request/request-context.ts'
import { networkOf } from './rate-limit.ts'
import { createTokenBuckets } from './token-buckets.ts'

/**
 * When refusals of tokens are answered. Anybody can cause them as fast as answers come back, and each costs about as
 * much as a good request. Beyond a number of refusals a second the answers to an address wait, and so does a client
 * that sends its next request after the last answer. Good requests never wait, not even those of the same address.
 */
export interface RefusalThrottle {
  /** Calls `answer` at once, or when the limit allows it: after `longestWaitMs` at most. */
  throttle(context: RequestContext, code: string, answer: () => void): void
}

/**
 * Refusals of callers without a good token. Refusals by policy or for a missing scope go to callers that are known.
 */
const throttled: ReadonlySet<string> = new Set<ProblemCode>([
  'token_missing',
  'invalid_token',
  'invalid_dpop_proof',
  'keys_unavailable',
])

/** Answers that wait take memory: beyond so many, the next are given at once. */
const maxHeld = 1_000

/** No answer waits longer: with many connections this bounds how much a flood is slowed. */
const longestWaitMs = 500

/** @param perSecond refusals of an address that are answered at once, half of them in a row. */
export const createRefusalThrottle = ({ perSecond, metrics }: { perSecond: number; metrics: Metrics }) => {
  const burst = Math.max(1, perSecond / 2)
  const buckets = createTokenBuckets({ requests: perSecond, per: 1_000, burst })
  const heldNow = metrics.gauge('surrogate_gateway_refusals_held', 'Refusals of tokens whose answers wait now')
  const heldTotal = metrics.counter('surrogate_gateway_refusals_held_total', 'Refusals of tokens whose answers waited')
  let held = 0

  /** In ms; 0 = at once. A waiting refusal has already taken its token, so the next one waits longer. */
  const waitOf = (address: string): number => {
    const now = performance.now()
    const { wait } = buckets.ask(address, now)
    if (wait < longestWaitMs) {
      buckets.take(address, now)
      return wait
    }
    // Spread, so that clients that came together do not come back together.
    return longestWaitMs * (1 - Math.random() / 2)
  }

  const refusals: RefusalThrottle = {
    throttle(context, code, answer) {
      const { request } = context
      const wait = request && throttled.has(code) ? waitOf(networkOf(request.clientIp)) : 0
      if (wait === 0 || held >= maxHeld) return answer()
      held++
      heldNow.inc()
      heldTotal.inc()
      setTimeout(() => {
        held--
        heldNow.dec()
        answer()
      }, wait).unref()
    },
  }
  return refusals
}
