import { problem } from '../../../base/errors/problems.ts'
import { isMfaMandatory, type SignInExperience } from '../../sign-in-experience/sign-in-experience.ts'
import type { BreachedPasswords } from './breached/breached-passwords.ts'
import { type AboutUser, checkPassword, type PasswordIssue } from './check-password.ts'

export interface PasswordRules {
  /**
   * What is wrong with a password that somebody chooses: by the policy, and by the lists of breached ones. `about` is
   * what is known of the user, also what was entered just now.
   */
  issues(password: string, about: AboutUser): Promise<PasswordIssue[]>
  /** Throws 422 `password.rejected`, whose `data` are the issues. */
  require(password: string, about: AboutUser): Promise<void>
}

export interface PasswordRulesDependencies {
  /** The settings of now. */
  experience(): Pick<SignInExperience, 'passwordPolicy' | 'mfa'>
  breached: BreachedPasswords
}

/** For people who choose a password. The Management API sets any: its caller answers for it. */
export const createPasswordRules = ({ experience, breached }: PasswordRulesDependencies): PasswordRules => {
  const issues: PasswordRules['issues'] = async (password, about) => {
    const { passwordPolicy, mfa } = experience()
    const found = checkPassword(password, passwordPolicy, about, { isMfaMandatory: isMfaMandatory(mfa) })
    // Nobody else is asked about a password that is refused anyhow.
    if (found.length > 0 || !passwordPolicy.rejects.pwned) return found
    return (await breached.has(password)) ? [{ code: 'password_rejected.pwned' }] : []
  }

  return {
    issues,
    async require(password, about) {
      const found = await issues(password, about)
      if (found.length > 0) throw problem('password.rejected', { data: found })
    },
  }
}
