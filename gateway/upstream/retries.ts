import type { Metrics } from '../../platform/metrics.ts'
import type { AppError } from '../../platform/problem.ts'
import type { RetrySettings } from '../config/settings/upstream.ts'
import { createRetryBudget } from './retry-budget.ts'

/** Why a request may be repeated, as `retries.on` names it. */
export type RetryCause = RetrySettings['on'][number]

/** Whether and how often requests of an upstream are repeated. */
export interface Retries {
  /** For one request, the first one counted. */
  readonly attempts: number
  readonly on: ReadonlySet<RetryCause | number>
  /** A request was admitted. `now` is in ms. */
  request(now: number): void
  /** Whether the budget allows another one; if so, it is counted. */
  take(cause: RetryCause, now: number): boolean
}

export const createRetries = (
  { attempts, on, budget: share }: RetrySettings,
  { upstream, metrics }: { upstream: string; metrics: Metrics },
): Retries => {
  const budget = createRetryBudget(share)
  const repeated = metrics.counter('surrogate_gateway_upstream_retries_total', 'Requests sent upstream once more', [
    'upstream',
    'cause',
  ])
  const refused = metrics.counter(
    'surrogate_gateway_upstream_retries_refused_total',
    'Requests not sent once more because retries.budget was used up',
    ['upstream'],
  )
  return {
    attempts,
    on: new Set(on),
    request: budget.request,
    take(cause, now) {
      const allowed = budget.take(now)
      if (allowed) repeated.inc({ upstream, cause: String(cause) })
      else refused.inc({ upstream })
      return allowed
    },
  }
}

/** RFC 9110 §9.2.2: sent twice they mean what they mean once. */
const idempotent = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

export const isIdempotent = (method: string): boolean => idempotent.has(method)

/** What an attempt that began to be sent ended with. */
const causes: Record<string, RetryCause> = {
  upstream_unavailable: 'refused-stream',
  upstream_protocol_error: 502,
  upstream_timeout: 504,
}

/** @param sent whether anything may have gone out: before, there was no connection. */
export const causeOf = ({ code }: AppError, sent: boolean): RetryCause | undefined =>
  causes[code] && (sent ? causes[code] : 'connect')
