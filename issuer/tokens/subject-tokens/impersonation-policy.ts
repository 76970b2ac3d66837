import { type Logger, throttledLevel } from '../../../platform/logger.ts'
import {
  decideImpersonation,
  type ImpersonationDecision,
  type ImpersonationInput,
} from '../../../policies/impersonation.ts'
import type { PolicySet } from '../../../policies/policy-set.ts'

export type ImpersonationQuestion = Omit<ImpersonationInput, 'version'>

/** Whether this may happen, asked at minting and again at exchange. */
export interface ImpersonationPolicy {
  /** False when no policy is configured: then nobody needs to gather what it would be asked with. */
  readonly enabled: boolean
  /** A policy that is broken answers `unavailable`, which is never an allow. */
  decide(question: ImpersonationQuestion): ImpersonationDecision | 'unavailable'
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
        return decideImpersonation(policies.current(), { version: 1, ...question })
      } catch (error) {
        const { stage } = question
        const level = throttledLevel(logger, 'error', `impersonation policy ${stage}`)
        logger[level]({ err: error, stage }, 'the impersonation policy could not be evaluated')
        return 'unavailable'
      }
    },
  }
}
