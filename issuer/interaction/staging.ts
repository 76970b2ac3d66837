import type { Database } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { findTaken } from '../directory/people/person-store.ts'
import type { SignInExperience } from '../directory/sign-in-experience/sign-in-experience.ts'
import type { PasswordHasher } from '../directory/users/password.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'
import type { InteractionEventName, Staged } from './interaction-state.ts'
import { beginEvent, type Interaction, keepStaged } from './interaction-store.ts'
import { findPassword } from './person-store.ts'

/** Why a password is not taken; see `password-policy`. */
export type PasswordIssue = { code: string; interpolation?: Record<string, unknown> | undefined }

interface Rejected {
  outcome: 'rejected'
  issues: readonly PasswordIssue[]
}

export type PasswordStaged =
  | { outcome: 'staged' }
  | Rejected
  /** It is the one that there is. */
  | { outcome: 'same' }
  | { outcome: 'over' }

export type UsernameStaged = { outcome: 'staged' | 'taken' | 'invalid' | 'over' }

/** What somebody is to become, kept until the interaction finishes. Whoever calls has asked whether it is time for it. */
export interface Staging {
  username(interaction: Interaction, username: string): Promise<UsernameStaged>
  /** Throws 503 when too many passwords wait to be hashed. */
  password(interaction: Interaction, password: string): Promise<PasswordStaged>
  /** User name and password of somebody new. Answers the id by which the Experience API names them. */
  identity(
    interaction: Interaction,
    identity: { username: string; password: string },
  ): Promise<{ outcome: 'staged'; id: string } | { outcome: 'taken' | 'invalid' | 'over' } | Rejected>
  profile(interaction: Interaction, profile: Record<string, unknown>): Promise<boolean>
  /** Begins the interaction for something else: what was proven for the one counts for nothing in the other. */
  begin(interaction: Interaction, event: InteractionEventName, options?: { isAnew?: boolean }): Promise<void>
}

export const createStaging = ({
  database: { query },
  passwords,
}: {
  database: Pick<Database, 'query'>
  passwords: PasswordHasher
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
      if (!/^[A-Z_a-z]\w{0,127}$/.test(username)) return { outcome: 'invalid' }
      const taken = await findTaken(query, { username })
      return { outcome: taken.username ? 'taken' : await keep(interaction, { username }) }
    },

    async password(interaction, password) {
      const { person } = interaction
      if (person?.hasPassword && (await isSame(person.id, password))) return { outcome: 'same' }
      const { digest } = await passwords.hash(password)
      return { outcome: await keep(interaction, { password: { digest, algorithm: 'Argon2id' } }) }
    },

    async identity(interaction, { username, password }) {
      const id = newId()
      const named = await this.username(interaction, username)
      if (named.outcome !== 'staged') return { outcome: named.outcome }
      const kept = await this.password(interaction, password)
      if (kept.outcome === 'rejected') return kept
      if (kept.outcome !== 'staged' || (await keep(interaction, { identityId: id })) !== 'staged') {
        return { outcome: 'over' }
      }
      return { outcome: 'staged', id }
    },

    profile: async (interaction, profile) => (await keep(interaction, { profile })) === 'staged',

    begin: (interaction, event, { isAnew = false } = {}) => beginEvent(query, { id: interaction.id, event, isAnew }),
  }
}
