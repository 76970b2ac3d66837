import { type SignInExperience, signInExperience } from '../../sign-in-experience/sign-in-experience.ts'

/** How good passwords have to be, as it is set (`passwordPolicy`). Lengths are in code points, after NFKC. */
export type PasswordPolicy = SignInExperience['passwordPolicy']

export const defaultPasswordPolicy: PasswordPolicy = signInExperience.schema.parse({}).passwordPolicy

/** SP 800-63B-4 §3.1.1.2 */
const nistLength = { alone: 15, withSecondFactor: 8 } as const

/** How short a password may be. */
export const shortestPassword = (
  { preset, length }: Pick<PasswordPolicy, 'preset' | 'length'>,
  { isMfaMandatory }: { isMfaMandatory: boolean },
): number => {
  if (preset === 'default') return length.min
  return Math.max(length.min, isMfaMandatory ? nistLength.withSecondFactor : nistLength.alone)
}
