import { z } from 'zod'
import type { Setting } from '../../base/settings-store.ts'
import type { UserRow } from './user.ts'

/** Of the sign-in experience. */
export const passwordExpiration = z.object({
  enabled: z.boolean().default(false),
  /** Days after which a password has to be replaced. */
  validPeriodDays: z.number().int().min(1).max(3_650).optional(),
})
export type PasswordExpiration = z.output<typeof passwordExpiration>

/** The one member of the sign-in experience that is about this; the others are not looked at. */
export const passwordExpirationSetting = {
  name: 'sign-in-exp',
  schema: z.object({ passwordExpiration: passwordExpiration.default({ enabled: false }) }),
} satisfies Setting<z.ZodType>

const dayMs = 86_400_000

/**
 * Whether the password has to be replaced before it opens anything: while the policy is on, when an administrator said
 * so, or when it is too old. One whose age is not known is as old as its user.
 */
export const isPasswordExpired = (
  user: Pick<UserRow, 'password_changed_at' | 'password_expired' | 'created_at'>,
  { enabled, validPeriodDays }: PasswordExpiration,
  now: Date,
): boolean => {
  if (!enabled) return false
  if (user.password_expired) return true
  if (validPeriodDays === undefined) return false
  return now.getTime() >= (user.password_changed_at ?? user.created_at).getTime() + validPeriodDays * dayMs
}
