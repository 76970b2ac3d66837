import type { Database, Transaction } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { addressKey } from '../base/rate-limits/address-key.ts'
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
import { countMessage } from '../messages/limit-store.ts'
import type { TakenField } from './become-person.ts'
import { beginEvent, keepStaged, releaseStaged } from './interaction-changes-store.ts'
import { type InteractionEventName, type Staged, stagedProfile } from './interaction-state.ts'
import type { Interaction } from './interaction-store.ts'
import { findAccount, findPassword } from './person-store.ts'
import { keepProof } from './proof-store.ts'
import { type IdentifierType, identifies } from './proofs.ts'
import { provenAddress } from './required-profile.ts'
import type { Visitor } from './visitor.ts'

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

export type UsernameStaged =
  | { outcome: 'staged' | 'taken' | 'over' | 'too_many_requests' }
  | { outcome: 'invalid'; violation: UsernameViolation }

/**
 * What somebody is to become, kept until the interaction finishes. Whoever calls has asked whether it is time for it.
 */
export interface Staging {
  username(interaction: Interaction, username: string, visitor: Visitor): Promise<UsernameStaged>
  /** Throws 503 when too many passwords wait to be hashed. */
  password(interaction: Interaction, password: string): Promise<PasswordStaged>
  /** User name and password of somebody new. Answers the id by which the Experience API names them. */
  identity(
    interaction: Interaction,
    identity: { username: string; password: string },
    visitor: Visitor,
  ): Promise<
    { outcome: 'staged'; id: string } | { outcome: 'taken' | 'invalid' | 'over' | 'too_many_requests' } | Rejected
  >
  /** Leaves out what people may not say of themselves. */
  profile(interaction: Interaction, profile: Record<string, unknown>): Promise<boolean>
  /** Begins the interaction for something else: what was proven for the one counts for nothing in the other. */
  begin(interaction: Interaction, event: InteractionEventName, options?: { isAnew?: boolean }): Promise<void>
  /** Goes on with a new account for an address that was proven here, and is nobody's. False when there is none. */
  beginAccount(interaction: Interaction): Promise<boolean>
  /** Forgets what somebody else has; the page that asks for it again says so. */
  release(interaction: Interaction, fields: readonly TakenField[]): Promise<void>
}

/** Of one address, in an hour. */
const usernames = { most: 20, seconds: 3_600 } as const

export const createStaging = ({
  database: { query, transaction },
  hmac,
  passwords,
  passwordRules,
  settings,
}: {
  database: Pick<Database, 'query' | 'transaction'>
  hmac: Hmac
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
    async username(interaction, username, { origin: { ip } }) {
      const policy = readUsernamePolicy(settings().usernamePolicy)
      const violation = checkUsername(username, policy)
      if (violation) return { outcome: 'invalid', violation }
      const { most, seconds } = usernames
      const asked = await countMessage(query, hmac('message-limits', 'user names', addressKey(ip)), most, seconds)
      if (asked > most) return { outcome: 'too_many_requests' }
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

    async identity(interaction, { username, password }, visitor) {
      const id = newId()
      const named = await this.username(interaction, username, visitor)
      if (named.outcome !== 'staged') return { outcome: named.outcome }
      const kept = await this.password(interaction, password)
      if (kept.outcome === 'rejected') return kept
      if (kept.outcome !== 'staged' || (await keep(interaction, { identityId: id })) !== 'staged') {
        return { outcome: 'over' }
      }
      return { outcome: 'staged', id }
    },

    profile: async (interaction, profile) =>
      (await keep(interaction, { profile: stagedProfile.parse(profile) })) === 'staged',

    begin: (interaction, event, { isAnew = false } = {}) => beginEvent(query, { id: interaction.id, event, isAnew }),

    async beginAccount({ id, proofs }) {
      const proven = proofs.find((proof) => identifies(proof) && proof.userId === null && proof.data.identifier)
      if (!proven) return false
      const { kind, data } = proven
      const keepProven = async (trx: Transaction) => {
        await beginEvent(trx, { id, event: 'Register', isAnew: false })
        return keepProof(trx, { interactionId: id, userId: null, kind, purpose: 'register', data })
      }
      return (await transaction(keepProven)) !== undefined
    },

    async release({ id }, fields) {
      const identifier = fields.find(isIdentifier)
      await releaseStaged(query, id, fields, identifier === undefined ? {} : { notice: `${identifier}_taken` })
    },
  }
}

const isIdentifier = (field: TakenField): field is IdentifierType =>
  field === 'username' || field === 'email' || field === 'phone'
