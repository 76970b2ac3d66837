import { type Logger, throttledLevel } from '../../platform/logger.ts'
import { PolicyError, type PolicyErrorCode } from '../engine/index.ts'
import type { PolicySet } from '../policy-set.ts'
import { ApiError, invalid } from './api-error.ts'
import { type Document, memberOf } from './document.ts'

/**
 * The value of a document. Undefined when no rule gives one; throws `ApiError`: 400 for an input that cannot be used,
 * 500 where the evaluation came to no answer. What went wrong is for the log.
 */
export const evaluate = (set: PolicySet, document: Document, input: unknown, logger: Logger): unknown => {
  const { entrypoint, members } = document
  try {
    const result = set.evaluate(entrypoint, input)
    return members.length === 0 ? result : memberOf(result, document)
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    if (error.code === 'invalid') throw invalid(error.message)
    logger[throttledLevel(logger, 'warn', `${error.code} ${entrypoint}`)]({ entrypoint, err: error }, 'no answer')
    const [code, message] = /conflict$/.test(error.message) ? conflict : reasons[error.code]
    throw new ApiError(500, 'internal_error', failedQuery, { errors: [{ code, message }] })
  }
}

const failedQuery = 'error(s) occurred while evaluating query'

const conflict = ['eval_conflict_error', 'rules contradict each other; the log of the server says where'] as const

/** By OPA's codes of evaluation errors, where it has one. */
const reasons: Record<Exclude<PolicyErrorCode, 'invalid'>, readonly [code: string, message: string]> = {
  failed: ['eval_internal_error', 'the rules came to no answer; the log of the server says why'],
  units_used_up: ['eval_cancel_error', 'the rules used up their units of work'],
  memory_used_up: ['eval_cancel_error', 'the rules used up their memory'],
  deadline_missed: ['eval_cancel_error', 'the rules missed their deadline'],
  busy: ['eval_cancel_error', 'no thread came free'],
}
