import { setTimeout as delay } from 'node:timers/promises'
import { type EventRequest, recordEvent } from '../../events/outbox.ts'
import type { Database } from '../../platform/database/database.ts'
import { randomToken } from '../../platform/ids.ts'
import { AppError } from '../../platform/problem.ts'
import type { TokenAudit } from '../base/audit/token-audit.ts'
import type { Hmac } from '../base/hmac-keys-store.ts'
import { lockoutKeys } from '../directory/users/lockout/lockout-keys.ts'
import { isCurrentDigest, type PasswordHasher } from '../directory/users/password.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'
import { replaceDigest } from '../directory/users/user-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import {
  addressPolicy,
  type Counted,
  countAttempt,
  type FailureKeys,
  forgiveAttempt,
  type LockoutPolicy,
  lockAccount,
  lockoutDefaults,
  succeedAttempt,
} from './failure-store.ts'
import type { Identifier } from './identifier.ts'
import { type Interaction, isInteractionOpen, leaveTurn, turnSeconds } from './interaction-store.ts'
import { digestMark, findPerson, type Person } from './person-store.ts'
import type { Visitor } from './visitor.ts'

export type PasswordAttempt =
  | { outcome: 'verified' }
  /** The same for an unknown identifier, a user without a password, and a wrong one. */
  | { outcome: 'invalid_credentials' }
  | { outcome: 'locked'; minutes: number }
  /** From this address. */
  | { outcome: 'too_many_requests' }
  /** Told only to who knows the password. */
  | { outcome: 'suspended' }
  /** The interaction has finished or expired. */
  | { outcome: 'over' }

export interface PasswordInput {
  identifier: Identifier
  password: string
  /** "Keep me signed in". */
  keep: boolean
}

export interface PasswordProofs {
  /** One attempt to prove who somebody is. Throws 503 when too many passwords wait to be verified. */
  prove(
    interaction: Interaction,
    visitor: Visitor,
    input: PasswordInput,
    request: EventRequest,
  ): Promise<PasswordAttempt>
}

export interface PasswordProofDependencies {
  database: Pick<Database, 'query' | 'transaction' | 'knex'>
  /** The publisher of the outbox. */
  events: { wake(): void }
  hmac: Hmac
  passwords: PasswordHasher
  audit: TokenAudit
  lockout?: LockoutPolicy
}

/** In ms. */
const turnPause = 40
const turnTries = Math.ceil((turnSeconds * 1_000) / turnPause)

/**
 * Attempts are counted before anything is hashed, and what is refused is not hashed. Whoever is unknown takes as long
 * as whoever is known: something is hashed for everybody. No transaction is open meanwhile.
 */
export const createPasswordProofs = async ({
  database,
  events,
  hmac,
  passwords,
  audit,
  lockout = lockoutDefaults,
}: PasswordProofDependencies): Promise<PasswordProofs> => {
  const { query } = database
  const nobodys = await passwords.hash(randomToken())

  const failureKeys = lockoutKeys(hmac)
  const keysOf = (
    identifier: Identifier,
    person: Person | undefined,
    device: Buffer | undefined,
    ip: string,
  ): FailureKeys => {
    const account = () => {
      if (!person) return failureKeys.identifier(identifier.canonical)
      // What strangers do elsewhere does not lock the owner out here.
      if (person.isDeviceKnown && device !== undefined) return failureKeys.device(person.id, device)
      return failureKeys.user(person.id)
    }
    return { address: failureKeys.address(ip), account: account() }
  }

  /** Attempts of one interaction take turns: of a form that is sent twice, the second finds it finished. */
  const takeTurn = async (interactionId: string, keys: FailureKeys): Promise<Counted | undefined> => {
    for (let tries = 0; tries <= turnTries; tries++) {
      const counted = await countAttempt(query, interactionId, keys, lockout)
      if (counted) return counted
      if (!(await isInteractionOpen(query, interactionId))) return undefined
      await delay(turnPause)
    }
    return undefined
  }

  const holds = async (password: string, stored: PasswordDigest | undefined): Promise<boolean> => {
    if (stored === undefined) {
      await passwords.verify(password, nobodys)
      return false
    }
    if (await passwords.verify(password, stored)) return true
    // A digest from elsewhere may be much cheaper than ours, and would tell that the account exists.
    if (!isCurrentDigest(stored)) await passwords.verify(password, nobodys)
    return false
  }

  /** A digest from elsewhere is replaced by ours now that the password is known, unless there is no time for that. */
  const upgraded = async (userId: string, password: string, stored: PasswordDigest): Promise<PasswordDigest> => {
    if (isCurrentDigest(stored)) return stored
    const fresh = await passwords.hash(password).catch(unlessBusy)
    if (fresh === undefined) return stored
    const columns = { password_digest: fresh.digest, password_algorithm: fresh.algorithm }
    return (await replaceDigest(database.knex, userId, stored.digest, columns)) ? fresh : stored
  }

  const lock = async (interaction: Interaction, key: Buffer, person: Person | undefined, told: LockTold) => {
    const isRecorded = await database.transaction(async (trx) => {
      if (!(await lockAccount(trx, key, lockout)) || !person) return false
      const { id, type, name, description } = interaction.client
      await recordEvent(trx, {
        type: 'Identifier.Lockout',
        entity: { kind: 'user', id: person.id },
        data: null,
        extras: {
          type: told.identifier.type,
          value: told.identifier.canonical,
          interactionEvent: 'SignIn',
          sessionId: interaction.id,
          userIp: told.request.ip,
          application: { id, type, name, description },
        },
        request: told.request,
      })
      return true
    })
    if (isRecorded) events.wake()
  }

  return {
    async prove(interaction, visitor, { identifier, password, keep }, request) {
      const device = visitor.device === undefined ? undefined : tokenDigest('device', visitor.device)
      const person = await findPerson(query, identifier, device)
      const keys = keysOf(identifier, person, device, visitor.origin.ip)
      const counted = await takeTurn(interaction.id, keys)
      if (!counted) return { outcome: 'over' }

      const note = (result: 'Success' | 'Error', error?: string) =>
        audit.record({
          key: 'Interaction.SignIn.Verification.Password.Submit',
          result,
          applicationId: interaction.client.id,
          userId: person?.id,
          payload: { interactionId: interaction.id, ip: request.ip, userAgent: request.userAgent, error },
        })
      const refuse = async <const Refusal extends PasswordAttempt>(refusal: Refusal): Promise<Refusal> => {
        note('Error', refusal.outcome)
        await leaveTurn(query, interaction.id)
        return refusal
      }

      const { ofAddress, ofAccount, minutes } = counted
      if (ofAddress > addressPolicy.attempts) return refuse({ outcome: 'too_many_requests' })
      if (ofAccount === null || ofAccount > lockout.attempts) return refuse({ outcome: 'locked', minutes })

      const forgive = () => forgiveAttempt(query, interaction.id, keys, lockout)
      let isRight: boolean
      try {
        isRight = await holds(password, person?.password)
      } catch (error) {
        await forgive()
        throw error
      }
      if (!isRight || !person?.password) {
        if (ofAccount === lockout.attempts) await lock(interaction, keys.account, person, { identifier, request })
        return refuse({ outcome: 'invalid_credentials' })
      }
      if (person.isSuspended) {
        await forgive()
        return refuse({ outcome: 'suspended' })
      }
      const { digest } = await upgraded(person.id, password, person.password)
      const isKept = await succeedAttempt(query, keys, {
        interactionId: interaction.id,
        userId: person.id,
        kind: 'password',
        data: { identifier: { type: identifier.type, value: identifier.canonical }, digest: digestMark(digest) },
        decision: { keep },
      })
      if (isKept) {
        note('Success')
        return { outcome: 'verified' }
      }
      if (!(await isInteractionOpen(query, interaction.id))) return { outcome: 'over' }
      // Somebody has deleted the person meanwhile.
      return refuse({ outcome: 'invalid_credentials' })
    },
  }
}

interface LockTold {
  identifier: Identifier
  request: EventRequest
}

const unlessBusy = (error: unknown): undefined => {
  if (error instanceof AppError && error.code === 'server.unavailable') return undefined
  throw error
}
