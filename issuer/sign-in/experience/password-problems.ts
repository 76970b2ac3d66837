import type { AppError } from '../../../platform/problem.ts'
import { type ProblemCode, problem } from '../../base/errors/problems.ts'
import type { PasswordStaged, UsernameStaged } from '../../interaction/staging.ts'

type Refused =
  | Exclude<PasswordStaged, { outcome: 'staged' }>
  | { outcome: Exclude<UsernameStaged['outcome'], 'staged'> }

export const usernameProblems: readonly ProblemCode[] = ['user.username_already_in_use']
export const passwordProblems: readonly ProblemCode[] = ['password.rejected', 'user.same_password']

/** Why a user name or a password was not taken. */
export const rejected = (staged: Refused): AppError => {
  switch (staged.outcome) {
    case 'rejected':
      return problem('password.rejected', { data: { issues: staged.issues } })
    case 'same':
      return problem('user.same_password')
    case 'taken':
      return problem('user.username_already_in_use')
    case 'invalid':
      return problem('guard.invalid_input', {
        detail: 'A username begins with a letter or an underscore, and goes on with letters, digits and underscores.',
      })
    case 'too_many_requests':
      return problem('rate_limit.exceeded', { headers: { 'Retry-After': '600' } })
    case 'over':
      return problem('session.not_found')
  }
}
