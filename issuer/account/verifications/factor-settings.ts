import { problem } from '../../base/errors/problems.ts'
import type { SignInExperience } from '../../directory/sign-in-experience/sign-in-experience.ts'
import type { FactorType } from '../../directory/users/factors/index.ts'

/** Passkeys also where people sign in with them alone. */
export const isFactorEnabled = ({ mfa, passkeySignIn }: SignInExperience, type: FactorType): boolean =>
  mfa.factors.includes(type) || (type === 'WebAuthn' && passkeySignIn.enabled)

/** Throws 400: what is not enabled is neither asked for nor bound. */
export const requireFactorEnabled = (experience: SignInExperience, type: FactorType): void => {
  if (!isFactorEnabled(experience, type)) throw problem('session.mfa.mfa_factor_not_enabled')
}
