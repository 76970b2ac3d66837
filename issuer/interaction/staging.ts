import type { Database } from '../../platform/database/database.ts'
import { findTaken } from '../directory/people/person-store.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import type { PasswordHasher } from '../directory/users/password.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'
import type { PasswordIssue } from '../directory/users/password-policy/check-password.ts'
import type { PasswordRules } from '../directory/users/password-policy/password-rules.ts'
import {
  checkUsername,
  readUsernamePolicy,
  type UsernameViolation,
} from '../directory/users/registration-rules/username-policy.ts'
import { type InteractionEventName, type Staged, stagedProfile } from './interaction-state.ts'
import { beginEvent, type Interaction, keepStaged } from './interaction-store.ts'
import { findAccount, findPassword } from './person-store.ts'
import { provenAddress } from './required-profile.ts'

export type PasswordStaged =
  | { outcome: 'staged' }
  | { outcome: 'rejected'; issues: readonly PasswordIssue[] }
  /** It is the one that there is. */
  | { outcome: 'same' }
  | { outcome: 'over' }

export type UsernameStaged =
  | { outcome: 'staged' | 'taken' | 'over' }
  | { outcome: 'invalid'; violation: UsernameViolation }

/**
 * What somebody is to become, kept until the interaction finishes. Whoever calls has asked whether it is time for it.
 */
export interface Staging {
  username(interaction: Interaction, username: string): Promise<UsernameStaged>
  /** Throws 503 when too many passwords wait to be hashed. */
  password(interaction: Interaction, password: string): Promise<PasswordStaged>
  /** Leaves out what people may not say of themselves. */
  profile(interaction: Interaction, profile: Record<string, unknown>): Promise<boolean>
  /** Begins the interaction for something else: what was proven for the one counts for nothing in the other. */
  begin(interaction: Interaction, event: InteractionEventName, options?: { isAnew?: boolean }): Promise<void>
}

export const createStaging = ({
  database: { query },
  passwords,
  passwordRules,
  settings,
}: {
  database: Pick<Database, 'query'>
  passwords: PasswordHasher
  passwordRules: PasswordRules
  settings: () => SignInExperience
}): Staging => {
  const keep = async (interaction: Interaction, staged: Staged) =>
    (await keepStaged(query, interaction, staged)) ? ('staged' as const) : ('over' as const)

  const isSame = async (userId: string, password: string): Promise<boolean> => {
    const stored: PasswordDigest | undefined = await findPassword(query, userId)
    return stored !== undefined && (await passwords.verify(password, stored))
  }

  return {
    async username(interaction, username) {
      const policy = readUsernamePolicy(settings().usernamePolicy)
      const violation = checkUsername(username, policy)
      if (violation) return { outcome: 'invalid', violation }
      const taken = await findTaken(query, { username, isUsernameCaseSensitive: policy.caseSensitive })
      return { outcome: taken.username ? 'taken' : await keep(interaction, { username }) }
    },

    async password(interaction, password) {
      const { person, staged, proofs } = interaction
      const account = person && (await findAccount(query, person.id))
      const issues = await passwordRules.issues(password, {
        username: staged.username ?? account?.username,
        email: provenAddress(proofs, 'email') ?? account?.primaryEmail,
        phone: provenAddress(proofs, 'phone') ?? account?.primaryPhone,
        name: account?.fullName,
      })
      if (issues.length > 0) return { outcome: 'rejected', issues }
      if (person?.hasPassword && (await isSame(person.id, password))) return { outcome: 'same' }
      const { digest } = await passwords.hash(password)
      return { outcome: await keep(interaction, { password: { digest, algorithm: 'Argon2id' } }) }
    },

    profile: async (interaction, profile) =>
      (await keep(interaction, { profile: stagedProfile.parse(profile) })) === 'staged',

    begin: (interaction, event, { isAnew = false } = {}) => beginEvent(query, { id: interaction.id, event, isAnew }),
  }
}
