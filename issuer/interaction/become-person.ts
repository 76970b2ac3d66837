import type { Query } from '../../platform/database/database.ts'
import { newId } from '../../platform/ids.ts'
import { AppError } from '../../platform/problem.ts'
import { constraintError } from '../base/errors/constraint-errors.ts'
import type { Recording } from '../base/recording.ts'
import type { Federation } from '../connectors/federation.ts'
import { joinByEmail } from '../directory/organizations/jit/join.ts'
import { createPerson, type Taken } from '../directory/people/create-person.ts'
import { readPhone } from '../directory/users/phone.ts'
import { bindIdentities, IdentityTaken } from './bind-identities.ts'
import type { Bindings } from './bindings.ts'
import { socialIdentities } from './identity-store.ts'
import type { Staged } from './interaction-state.ts'
import type { Interaction } from './interaction-store.ts'
import { changePerson, isAddressTaken, skipMfa, skipPasskey } from './person-change-store.ts'
import { type SecondFactor, secondFactorNames, secondFactors } from './person-facts.ts'
import type { Proof } from './proofs.ts'
import { provenAddress } from './required-profile.ts'

/** What somebody else has already. */
export type TakenField = 'username' | 'email' | 'phone' | 'passkey' | 'totp' | 'federated'

/** The transaction cannot go on: it is rolled back, and a page asks for something else. */
export class TakenError extends Error {
  override readonly name = 'TakenError'
  readonly fields: readonly TakenField[]

  constructor(fields: readonly TakenField[], options?: ErrorOptions) {
    super(`taken: ${fields.join(', ')}`, options)
    this.fields = fields
  }
}

export interface Became {
  userId: string
  /** Undefined: the person is as before. */
  change: 'created' | 'updated' | undefined
  /** There is another password: what the old one opened has to end. */
  isPasswordNew: boolean
  /** That it got, by the names of the settings. */
  factors: readonly SecondFactor[]
  /** The names of providers that they are known by now. */
  linked: readonly string[]
}

const unchanged = { change: undefined, isPasswordNew: false, factors: [], linked: [] } as const

/**
 * Makes the person that the interaction is about what it was staged for: a new user, or one with another address, with
 * a password, with new factors. `userId` is undefined for somebody new. Records `User.Created` and memberships;
 * `User.Data.Updated` is for the caller, after the sign-in. Throws `TakenError`.
 */
export type BecomePerson = (
  trx: Query,
  about: { interaction: Interaction; proofs: readonly Proof[]; userId: string | undefined; recording: Recording },
) => Promise<Became>

export const createBecomePerson =
  ({
    bindings,
    isStillFrom,
    isUsernameCaseSensitive,
  }: {
    bindings: Bindings
    isStillFrom: Federation['isStillFrom']
    isUsernameCaseSensitive: () => boolean
  }): BecomePerson =>
  async (trx, { interaction, proofs, userId, recording }) => {
    const { staged, state } = interaction
    const email = provenAddress(proofs, 'email')
    const number = provenAddress(proofs, 'phone')
    const phone = number === undefined ? undefined : readPhone(number)
    const identities = proofs.flatMap(({ data }) => data.federated ?? [])
    try {
      if (userId === undefined) {
        const id = newId(12)
        const { username, password, profile } = staged
        const { name, avatar } = identities[0] ?? {}
        for (const identity of identities) if (!(await isStillFrom(trx, identity))) throw new IdentityTaken()
        const created = await createPerson(recording, {
          ...{ id, username, primaryEmail: email, phone, password },
          isUsernameCaseSensitive: isUsernameCaseSensitive(),
          ...{ name, avatar, identities: socialIdentities(identities) },
          ...profileOf(profile),
        })
        if (created.outcome !== 'created') throw new TakenError([takenFields[created.outcome]])
        await bindIdentities(recording, id, proofs, isStillFrom)
        await bindings.bindAll(trx, id, proofs)
        return { ...unchanged, userId: id, change: 'created' }
      }
      if (state.skipsMfa) await skipMfa(trx, userId)
      if (state.skipsPasskey) await skipPasskey(trx, userId)
      const changes = { username: staged.username, email, phone: phone?.number, password: staged.password }
      const isChanged = Object.values(changes).some((value) => value !== undefined)
      const binds = proofs.some(bindings.isFactor)
      const bound = await bindIdentities(recording, userId, proofs, isStillFrom)
      if (!isChanged && !binds && !bound.isChanged) return { ...unchanged, userId }
      if (email !== undefined && (await isAddressTaken(trx, userId, email))) throw new TakenError(['email'])
      if (isChanged) await changePerson(trx, userId, changes)
      if (email !== undefined) await joinByEmail(recording, { userId, email })
      await bindings.bindAll(trx, userId, proofs)
      return {
        ...{
          userId,
          change: 'updated',
          linked: bound.linked,
          isPasswordNew: staged.password !== undefined || bound.isPasswordVoid,
        },
        factors: secondFactorNames.filter((name) =>
          proofs.some((proof) => bindings.isFactor(proof) && proof.kind === secondFactors[name].proof),
        ),
      }
    } catch (error) {
      throw takenBy(error)
    }
  }

const profileOf = (staged: Staged['profile']) => {
  if (staged === undefined) return {}
  const { name, avatar, ...profile } = staged
  return { name, avatar, profile }
}

const takenFields: Readonly<Record<Taken, TakenField>> = {
  username_already_in_use: 'username',
  email_already_in_use: 'email',
  phone_already_in_use: 'phone',
}

const takenCodes: Readonly<Record<string, TakenField>> = {
  'user.username_already_in_use': 'username',
  'user.email_already_in_use': 'email',
  'user.phone_already_in_use': 'phone',
  'user.passkey_already_in_use': 'passkey',
  'user.totp_already_in_use': 'totp',
  'user.identity_already_in_use': 'federated',
}

const takenBy = (error: unknown): unknown => {
  if (error instanceof IdentityTaken) return new TakenError(['federated'], { cause: error })
  const problem = constraintError(error)
  const field = problem instanceof AppError ? takenCodes[problem.code] : undefined
  return field === undefined ? error : new TakenError([field], { cause: error })
}
