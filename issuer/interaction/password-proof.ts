import type { EventRequest } from '../../events/outbox.ts'
import type { Database } from '../../platform/database/database.ts'
import { randomToken } from '../../platform/ids.ts'
import { AppError } from '../../platform/problem.ts'
import type { LockoutPolicy } from '../directory/users/lockout/lockout-policy.ts'
import type { PasswordHasher } from '../directory/users/password.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'
import { replaceDigest } from '../directory/users/user-store.ts'
import type { AccountKey } from './account-key.ts'
import type { AttemptOutcome, Attempts } from './attempts.ts'
import type { CaptchaGate } from './captcha-gate.ts'
import type { Identifier } from './identifier.ts'
import type { Interaction } from './interaction-store.ts'
import { digestMark } from './person-store.ts'
import type { Visitor } from './visitor.ts'

export interface PasswordInput {
  identifier: Identifier
  password: string
  /** "Keep me signed in". */
  keep?: boolean | undefined
}

export interface PasswordProofs {
  /** One attempt to prove who somebody is. Throws 503 when too many passwords wait to be verified. */
  prove(
    interaction: Interaction,
    visitor: Visitor,
    input: PasswordInput,
    request: EventRequest,
  ): Promise<AttemptOutcome>
}

export interface PasswordProofDependencies {
  database: Pick<Database, 'query' | 'knex'>
  attempts: Attempts
  accountKey: AccountKey
  captchas: CaptchaGate
  passwords: PasswordHasher
  lockout: () => LockoutPolicy
}

/**
 * Whoever is unknown takes as long as whoever is known: something is hashed for everybody. A suspended person is told
 * only after everything is proven, so here it is one like any other.
 */
export const createPasswordProofs = async ({
  database,
  attempts,
  accountKey,
  captchas,
  passwords,
  lockout,
}: PasswordProofDependencies): Promise<PasswordProofs> => {
  const nobodys = await passwords.hash(randomToken())

  const holds = async (password: string, stored: PasswordDigest | undefined): Promise<boolean> => {
    if (stored === undefined) {
      await passwords.verify(password, nobodys)
      return false
    }
    if (await passwords.verify(password, stored)) return true
    // A digest from elsewhere may be much cheaper than ours, and would tell that the account exists.
    if (!passwords.isCurrent(stored)) await passwords.verify(password, nobodys)
    return false
  }

  /** A digest from elsewhere is replaced by ours now that the password is known, unless there is no time for that. */
  const upgraded = async (userId: string, password: string, stored: PasswordDigest): Promise<PasswordDigest> => {
    if (passwords.isCurrent(stored)) return stored
    const fresh = await passwords.hash(password).catch(unlessBusy)
    if (fresh === undefined) return stored
    const columns = { password_digest: fresh.digest, password_algorithm: fresh.algorithm }
    return (await replaceDigest(database.knex, userId, stored.digest, columns)) ? fresh : stored
  }

  return {
    async prove(interaction, visitor, { identifier, password, keep }, request) {
      const { person, account } = await accountKey(identifier, visitor)
      const isDeviceKnown = person?.isDeviceKnown === true
      if (await captchas.isDue(interaction, visitor, { isDeviceKnown })) return { outcome: 'captcha_required' }
      const entered = { type: identifier.type, value: identifier.canonical }
      return attempts.attempt(
        { interaction, visitor, request, kind: 'password', account, policy: lockout(), person, entered },
        async () => {
          if (!(await holds(password, person?.password)) || !person?.password) return undefined
          const { digest } = await upgraded(person.id, password, person.password)
          return {
            userId: person.id,
            purpose: 'sign_in',
            data: { identifier: entered, digest: digestMark(digest) },
            ...(keep === undefined ? {} : { decision: { keep } }),
          }
        },
      )
    },
  }
}

const unlessBusy = (error: unknown): undefined => {
  if (error instanceof AppError && error.code === 'server.unavailable') return undefined
  throw error
}
