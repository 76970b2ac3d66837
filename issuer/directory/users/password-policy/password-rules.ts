import { z } from 'zod'
import type { Query } from '../../../../platform/database/database.ts'
import { problem } from '../../../base/errors/problems.ts'
import { readSetting, type Setting } from '../../../base/settings-store.ts'
import type { BreachedPasswords } from './breached/breached-passwords.ts'
import { type AboutUser, checkPassword, type PasswordIssue } from './check-password.ts'
import { type PasswordPolicy, passwordPolicy } from './policy.ts'

/** The one member of the sign-in experience that is about this; the others are not looked at. */
export const passwordPolicySetting = {
  name: 'sign-in-exp',
  schema: z.object({ passwordPolicy: passwordPolicy.prefault({}) }),
} satisfies Setting<z.ZodType>

export interface PasswordRules {
  /** The policy as it is set now. */
  policy(): Promise<PasswordPolicy>
  /** What is wrong with a password that somebody chooses: by the policy, and by the lists of breached ones. */
  issues(password: string, about: AboutUser, circumstances?: { isMfaMandatory: boolean }): Promise<PasswordIssue[]>
  /** Throws 422 `password.rejected`, whose `data` are the issues. */
  require(password: string, about: AboutUser, circumstances?: { isMfaMandatory: boolean }): Promise<void>
}

/** For people who choose a password. The Management API sets any: its caller answers for it. */
export const createPasswordRules = ({
  query,
  breached,
}: {
  query: Query
  breached: BreachedPasswords
}): PasswordRules => {
  const policy = async () => (await readSetting(query, passwordPolicySetting)).passwordPolicy

  const issues: PasswordRules['issues'] = async (password, about, circumstances) => {
    const current = await policy()
    const found = checkPassword(password, current, about, circumstances)
    // Nobody else is asked about a password that is refused anyhow.
    if (found.length > 0 || !current.rejects.pwned) return found
    return (await breached.has(password)) ? [{ code: 'password_rejected.pwned' }] : []
  }

  return {
    policy,
    issues,
    async require(password, about, circumstances) {
      const found = await issues(password, about, circumstances)
      if (found.length > 0) throw problem('password.rejected', { data: found })
    },
  }
}
