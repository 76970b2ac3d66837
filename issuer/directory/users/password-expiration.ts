import type { SignInExperience } from '../sign-in-experience/sign-in-experience.ts'
import type { UserRow } from './user.ts'

const dayMs = 86_400_000

/**
 * Whether the password has to be replaced before it opens anything: while the policy is on, when an administrator said
 * so, or when it is too old. One whose age is not known is as old as its user.
 */
export const isPasswordExpired = (
  user: Pick<UserRow, 'password_changed_at' | 'password_expired' | 'created_at'>,
  { enabled, validPeriodDays }: SignInExperience['passwordExpiration'],
  now: Date,
): boolean => {
  if (!enabled) return false
  if (user.password_expired) return true
  if (validPeriodDays === undefined) return false
  return now.getTime() >= (user.password_changed_at ?? user.created_at).getTime() + validPeriodDays * dayMs
}
