import type { Metrics } from '../../platform/metrics.ts'
import type { DecisionLogSettings } from '../config/settings/logs.ts'
import type { RequestContext } from '../request/request-context.ts'

/** Which requests get a line in the decision log. */
export interface DecisionSample {
  /** How many requests the line stands for, as a share of them (0.01: one of a hundred); 0 = there is no line. */
  take(context: RequestContext): number
}

/**
 * By lot, not by the request's id: a proxy may hand on an id that its client has chosen, who could then stay out of the
 * log.
 */
export const createDecisionSample = (options: {
  shares: NonNullable<DecisionLogSettings['sample']>
  metrics: Metrics
  /** From 0 to less than 1. */
  random: () => number
}): DecisionSample => {
  const { shares, metrics, random } = options
  const left = metrics.counter(
    'surrogate_gateway_decision_log_sampled_out_total',
    'Requests without a line in the decision log because of decisionLog.sample',
    ['outcome'],
  )
  for (const outcome of ['allowed', 'denied']) left.inc({ outcome }, 0)
  return {
    take(context) {
      const outcome = outcomeOf(context)
      if (outcome === 'failed') return 1
      const share = shares[outcome]
      if (share === 1 || random() < share) return share
      left.inc({ outcome })
      return 0
    },
  }
}

/** `failed`: it is our fault or that of what we depend on, and every line counts. */
const outcomeOf = ({ decision, error, response }: RequestContext): 'allowed' | 'denied' | 'failed' => {
  if (decision?.allow === false && decision.reason === 'policy_error') return 'failed'
  if (error !== undefined) return error.status >= 500 ? 'failed' : 'denied'
  if (decision) return decision.allow ? 'allowed' : 'denied'
  return response.writableFinished ? 'allowed' : 'denied'
}
