import type { Html } from './html.ts'
import type { Say } from './say.ts'

/** Why a password is not good enough, by the codes that existing clients know. */
export interface PasswordIssue {
  code: string
  interpolation?: Record<string, unknown> | undefined
}

const count = ({ interpolation: { min, max } = {} }: PasswordIssue) => ({ count: String(min ?? max ?? '') })

const texts: Readonly<Record<string, (say: Say, issue: PasswordIssue) => Html>> = {
  too_short: (say, issue) => say('passwordTooShort', count(issue)),
  too_long: (say, issue) => say('passwordTooLong', count(issue)),
  character_types: (say, issue) => say('passwordTypes', count(issue)),
  pwned: (say) => say('passwordPwned'),
  'restricted.repetition': (say) => say('passwordPredictable'),
  'restricted.sequence': (say) => say('passwordPredictable'),
  'restricted.user_info': (say) => say('passwordOwnData'),
  'restricted.words': (say) => say('passwordWords'),
}

/** An issue that this version does not know is told as what it comes to. */
const passwordProblem = (say: Say, issue: PasswordIssue): Html =>
  (texts[issue.code.replace(/^password_rejected\./, '')] ?? texts['pwned']!)(say, issue)

const predictable = /^password_rejected\.restricted\.(repetition|sequence)$/

/** What is told in the same words is told once. */
export const passwordProblems = (say: Say, issues: readonly PasswordIssue[]): Html[] =>
  issues
    .filter(
      ({ code }, index) => !predictable.test(code) || index === issues.findIndex((one) => predictable.test(one.code)),
    )
    .map((issue) => passwordProblem(say, issue))
