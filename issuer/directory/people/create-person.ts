import { storableCustomData } from '../../base/custom-data.ts'
import type { Recording } from '../../base/recording.ts'
import { joinByEmail } from '../organizations/jit/join.ts'
import { welcomeUser } from '../users/new-user.ts'
import type { PasswordDigest } from '../users/password-digests.ts'
import type { Phone } from '../users/phone.ts'
import type { User, UserProfile } from '../users/user.ts'
import { findTaken, insertPerson, takeTurnsAt } from './person-store.ts'

/** Somebody who registers, with all that was staged for it. */
export interface NewPerson {
  /** 12 characters (`newId(12)`): given before there is a row. */
  id: string
  username?: string | undefined
  /** Verified: whoever proves it later is this user. */
  primaryEmail?: string | undefined
  /** Verified. */
  phone?: Phone | undefined
  password?: PasswordDigest | undefined
  name?: string | undefined
  avatar?: string | undefined
  profile?: UserProfile | undefined
  customData?: Record<string, unknown> | undefined
  /** By target. Whoever calls has made sure that they are nobody's. */
  identities?: Record<string, unknown> | undefined
  /** `usernamePolicy.caseSensitive`. Default true: `Ada` and `ada` are two names. */
  isUsernameCaseSensitive?: boolean | undefined
}

/** The first that is somebody's, in this order. */
export type Taken = 'username_already_in_use' | 'email_already_in_use' | 'phone_already_in_use'

export type Created = { outcome: 'created'; user: User } | { outcome: Taken }

/**
 * Makes a user with the default roles and with the memberships that the address brings along, and records
 * `User.Created` and `Organization.Membership.Updated`. Names and addresses that somebody has, or gets at the same
 * moment, come back as a value, and nothing was changed. Throws when the id is somebody's.
 */
export const createPerson = async ({ trx, record }: Recording, person: NewPerson): Promise<Created> => {
  storableCustomData(person.customData)
  await takeTurnsAt(trx, person)
  const before = await firstTaken(trx, person)
  if (before) return { outcome: before }
  const row = await insertPerson(trx, person)
  if (!row) {
    // Whoever does not take turns, such as the Management API, was faster.
    const meanwhile = await firstTaken(trx, person)
    if (meanwhile) return { outcome: meanwhile }
    throw new Error('the id of a new user is in use')
  }
  const user = await welcomeUser({ trx, record }, row)
  if (person.primaryEmail !== undefined) {
    await joinByEmail({ trx, record }, { userId: row.id, email: person.primaryEmail })
  }
  return { outcome: 'created', user }
}

const firstTaken = async (trx: Recording['trx'], person: NewPerson): Promise<Taken | undefined> => {
  const taken = await findTaken(trx, person)
  if (taken.username) return 'username_already_in_use'
  if (taken.email) return 'email_already_in_use'
  return taken.phone ? 'phone_already_in_use' : undefined
}
