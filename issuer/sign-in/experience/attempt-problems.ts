import type { AppError } from '../../../platform/problem.ts'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import type { AttemptOutcome } from '../../interaction/attempts.ts'

/** Of every attempt, beside what whoever shows something wrong is told. */
export const attemptProblems: readonly ProblemCode[] = [
  'session.verification_blocked_too_many_attempts',
  'session.captcha_required',
]

const blocked = () => problem('session.verification_blocked_too_many_attempts')

/**
 * The id of the proof. Throws for everything else; `wrong` says what whoever showed something wrong is told. The
 * failure that locks is told like those after it.
 */
export const provenBy = (attempt: AttemptOutcome, wrong: () => AppError): string => {
  switch (attempt.outcome) {
    case 'verified':
      return attempt.proofId
    case 'invalid_credentials':
      throw attempt.isLast ? blocked() : wrong()
    case 'locked':
      throw blocked()
    case 'too_many_requests':
      throw problem('rate_limit.exceeded', { headers: { 'Retry-After': '600' } })
    case 'captcha_required':
      throw problem('session.captcha_required')
    case 'over':
      throw problem('session.not_found')
  }
}
