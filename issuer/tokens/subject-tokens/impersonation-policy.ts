import type { z } from 'zod'
import { type Logger, throttledLevel } from '../../../platform/logger.ts'
import {
  decideImpersonation,
  type ImpersonationDecision,
  type ImpersonationInput,
  impersonationEntrypoint,
} from '../../../policies/impersonation.ts'
import type { PolicySet } from '../../../policies/policy-set.ts'
import type { policyAnswer } from '../impersonations/history.ts'

export type ImpersonationQuestion = Omit<ImpersonationInput, 'version'>

/** `revision`: of the policies that gave it; absent when there are none. */
export interface RevisedDecision extends ImpersonationDecision {
  revision?: string
}

/** Whether this may happen, asked at minting and again at exchange. */
export interface ImpersonationPolicy {
  /** False when no policy is configured: then nobody needs to gather what it would be asked with. */
  readonly enabled: boolean
  /** A policy that is broken answers `unavailable`, which is never an allow. */
  decide(question: ImpersonationQuestion): RevisedDecision | 'unavailable'
}

/** `policies` absent: impersonation is the integrator's decision alone, and everything is allowed here. */
export const createImpersonationPolicy = ({
  policies,
  logger,
}: {
  policies?: { current(): PolicySet } | undefined
  logger: Logger
}): ImpersonationPolicy => {
  if (!policies) return { enabled: false, decide: () => ({ allow: true }) }
  return {
    enabled: true,
    decide(question) {
      try {
        const set = policies.current()
        return { ...decideImpersonation(set, { version: 1, ...question }), revision: set.revision }
      } catch (error) {
        const { stage } = question
        const level = throttledLevel(logger, 'error', `impersonation policy ${stage}`)
        logger[level]({ err: error, stage }, 'the impersonation policy could not be evaluated')
        return 'unavailable'
      }
    },
  }
}

/** What a session keeps of a decision that allowed it. */
export const keptAnswer = (decision: RevisedDecision): z.output<typeof policyAnswer> => {
  const { revision, reason, grounds, require: required, scopes, maxTtl, readOnly } = decision
  if (revision === undefined) return { asked: false }
  const rule = impersonationEntrypoint
  return { asked: true, revision, rule, reason, grounds, require: required, scopes, maxTtl, readOnly }
}
