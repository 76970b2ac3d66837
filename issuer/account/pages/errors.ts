import { AppError } from '../../../platform/problem.ts'
import type { ProblemCode } from '../../base/errors/problems.ts'
import type { PasswordIssue } from '../../directory/users/password-policy/check-password.ts'
import type { AccountError, PlainMessage } from '../../pages/account/index.ts'

type Told = readonly [message: PlainMessage, field?: string]

/** What pages say of a refusal, and in which field it can be put right. */
const messages: Readonly<Partial<Record<ProblemCode, Told>>> = {
  'session.invalid_credentials': ['accountPasswordWrong', 'password'],
  'session.mfa.invalid_totp_code': ['factorCodeWrong', 'code'],
  'session.mfa.invalid_backup_code': ['factorCodeWrong', 'code'],
  'verification_code.code_mismatch': ['codeWrong', 'code'],
  'verification_code.expired': ['codeOver', 'code'],
  'verification_code.not_found': ['codeOver', 'code'],
  'verification_code.exceed_max_try': ['codeOver', 'code'],
  'session.verification_failed': ['codeOver', 'code'],
  'session.verification_blocked_too_many_attempts': ['lockedForNow'],
  'rate_limit.exceeded': ['tooManyRequestsForNow'],
  'request.message_rate_limited': ['codeLimited', 'address'],
  'connector.not_found': ['codeUnavailable', 'address'],
  'session.mfa.webauthn_verification_failed': ['accountPasskeyFailed'],
  'verification_record.not_found': ['accountRefused'],
  'password.rejected': ['passwordWords', 'password'],
  'user.same_password': ['passwordSame', 'password'],
  'user.email_already_in_use': ['emailTaken', 'address'],
  'user.phone_already_in_use': ['phoneTaken', 'address'],
  'user.username_already_in_use': ['usernameTaken', 'username'],
  'user.last_sign_in_method_required': ['accountLastWayIn'],
  'user.passkey_already_in_use': ['accountPasskeyTaken'],
  'user.totp_already_in_use': ['accountRefused'],
  'user.totp_secret_invalid': ['enrolTotpSecretNew'],
  'session.mfa.backup_code_can_not_be_alone': ['accountBackupAlone'],
  'session.mfa.mfa_factor_not_enabled': ['accountReadOnly'],
  'entity.not_found': ['accountRefused'],
  'console.last_owner': ['accountLastOwner'],
}

/**
 * Why it was refused, for the page; undefined when it was done. `more` comes before the table: what a code means on
 * one page alone. What is nobody's mistake is thrown on.
 */
export const errorOf = async (
  work: Promise<unknown>,
  more: Readonly<Partial<Record<ProblemCode, Told>>> = {},
): Promise<(AccountError & { code: string }) | undefined> => {
  try {
    await work
    return undefined
  } catch (error) {
    if (!(error instanceof AppError) || error.status >= 500) throw error
    const told = { ...messages, ...more }[error.code as ProblemCode]
    if (!told) throw error
    const [message, field] = told
    const issues = error.code === 'password.rejected' ? (error.data as PasswordIssue[]) : undefined
    return { code: error.code, message, field, issues }
  }
}

/** The status of a page that says so. */
export const statusOf = ({ code }: { code: string }): number => (code === 'rate_limit.exceeded' ? 429 : 400)
