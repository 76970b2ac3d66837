import type { Problem } from '../form.ts'
import { type PasswordIssue, passwordProblems } from '../password-words.ts'
import type { Say } from '../say.ts'
import type { PlainMessage } from './shell.ts'

/** Why something was not done, and in which field it can be put right. */
export interface AccountError {
  message: PlainMessage
  field?: string | undefined
  /** Of a password, instead of the message. */
  issues?: readonly PasswordIssue[] | undefined
}

export const problemsOf = (say: Say, error: AccountError | undefined): Problem[] => {
  if (error === undefined) return []
  const { message, field, issues } = error
  const messages = issues === undefined ? [say(message)] : passwordProblems(say, issues)
  return messages.map((text) => ({ message: text, field }))
}
