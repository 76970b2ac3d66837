import { type Logger, throttledLevel } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { loadPolicies, type PolicySet, shippedPolicies } from '../../policies/policy-set.ts'
import type { SignInShadow } from '../../policies/shadow.ts'
import { askSignInRules, type SignInDecision, type SignInInput, signInEntrypoint } from '../../policies/sign-in.ts'
import { problem } from '../base/errors/problems.ts'

export type SignInQuestion = Omit<SignInInput, 'version'>

/**
 * Who may sign in and with what, asked before the first proof, before the second factor and at the end, and where a
 * session answers instead.
 */
export interface SignInPolicy {
  /**
   * Synchronous, some tenths of a millisecond. Throws 503 when the rules give no decision: that is never an allow.
   * @param options.shipped the operator's rules are not asked, for whoever must get in to put them right.
   */
  decideSignIn(question: SignInQuestion, options?: { shipped?: boolean }): SignInDecision
  /** The rules that are asked now. */
  rules(): { revision: string; isShipped: boolean }
  /** The operator's rules are asked, in force or in the shadow: unlike the shipped ones they are told everything. */
  asksOwnRules(): boolean
}

/**
 * `policies` absent, or without rules about signing in: the shipped ones decide, which do what the settings say. They
 * are loaded now, unless the caller has them, so that a decision never waits.
 */
export const createSignInPolicy = async ({
  policies,
  shipped: given,
  shadow,
  logger,
  metrics,
}: {
  policies?: { current(): PolicySet } | undefined
  shipped?: PolicySet | undefined
  /** Told what was asked and decided. */
  shadow?: Pick<SignInShadow, 'compare'> | undefined
  logger: Logger
  metrics: Metrics
}): Promise<SignInPolicy> => {
  const shipped = given ?? (await loadPolicies({ path: shippedPolicies, logger }))
  const decisions = metrics.counter(
    'surrogate_sign_in_decisions_total',
    'Decisions of the sign-in rules: allowed, denied, or error (none given)',
    ['stage', 'outcome'],
  )

  const setFor = (shippedOnly: boolean): PolicySet => {
    const own = shippedOnly ? undefined : policies?.current()
    return own?.entrypoints.includes(signInEntrypoint) ? own : shipped
  }

  return {
    decideSignIn(question, { shipped: shippedOnly = false } = {}) {
      const { stage } = question
      const input: SignInInput = { version: 1, ...question }
      try {
        const decision = askSignInRules(setFor(shippedOnly), input)
        decisions.inc({ stage, outcome: decision.allow ? 'allowed' : 'denied' })
        if (!shippedOnly) shadow?.compare({ input, decision })
        return decision
      } catch (cause) {
        decisions.inc({ stage, outcome: 'error' })
        const level = throttledLevel(logger, 'error', `sign-in rules ${stage}`)
        logger[level]({ err: cause, stage }, 'the sign-in rules could not be evaluated')
        throw problem('server.unavailable', { cause })
      }
    },
    rules() {
      const set = setFor(false)
      return { revision: set.revision, isShipped: set === shipped }
    },
    asksOwnRules: () => shadow !== undefined || setFor(false) !== shipped,
  }
}
