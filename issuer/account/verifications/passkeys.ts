import { newId } from '../../../platform/ids.ts'
import { problem } from '../../base/errors/problems.ts'
import {
  type AuthenticationCredential,
  type AuthenticationOptions,
  authenticationOptions,
  findPasskey,
  findUserHandle,
  listCredentials,
  newUserHandle,
  presentedCredentialId,
  type RegistrationCredential,
  type RegistrationOptions,
  registrationOptions,
  relyingPartyOf,
  verifyAuthentication,
  verifyRegistration,
} from '../../directory/users/factors/index.ts'
import { lockoutKeys } from '../../directory/users/lockout/lockout-keys.ts'
import { lockoutDefaults } from '../../directory/users/lockout/lockout-policy.ts'
import { openFactor, pendingPasskey, sealFactor, toPendingCredential } from '../../interaction/bindings.ts'
import { findAccount } from '../../interaction/person-store.ts'
import { noLongerSignedIn } from '../change.ts'
import type { AccountContext, AccountPerson } from '../person.ts'
import { reauthenticationSeconds } from '../reauthentication.ts'
import {
  beginVerification,
  completeVerification,
  takeVerificationTry,
  type VerificationId,
  type VerificationPurpose,
} from '../verification-store.ts'
import type { VerificationDependencies } from './dependencies.ts'
import { requireFactorEnabled } from './factor-settings.ts'

export interface PasskeyVerifications {
  /** Options for the browser: it asks for a passkey of the person, to prove who it is. */
  authentication(context: AccountContext): Promise<VerificationId & { options: AuthenticationOptions }>
  verifyAuthentication(
    context: AccountContext,
    answer: { id: string; credential: AuthenticationCredential },
  ): Promise<VerificationId>
  /** Options to make a new one. */
  registration(context: AccountContext): Promise<VerificationId & { options: RegistrationOptions }>
  /** The new one waits to be bound. */
  verifyRegistration(
    context: AccountContext,
    answer: { id: string; credential: RegistrationCredential },
  ): Promise<VerificationId>
}

/** How long a challenge may be answered, in seconds. */
const challengeSeconds = 300

const failed = () => problem('session.mfa.webauthn_verification_failed')

export const createPasskeyVerifications = ({
  database: { query },
  attempts,
  envelope,
  hmac,
  factors,
  settings,
  baseUrl,
}: VerificationDependencies): PasskeyVerifications => {
  const relyingParty = relyingPartyOf(baseUrl)
  /** Made of an id that is random and used once: the database holds no challenge. */
  const challengeOf = (id: string) => hmac('verification-codes', 'challenge', id).toString('base64url')

  const begin = async (person: AccountPerson, purpose: VerificationPurpose, id: string, data: object) => {
    const begun = await beginVerification(query, {
      ...{ id, person, kind: 'passkey', purpose, data, seconds: challengeSeconds },
    })
    if (!begun) throw noLongerSignedIn()
    return begun
  }

  /** Used up by the first answer, whatever it is. */
  const takeChallenge = async (person: AccountPerson, id: string, purpose: VerificationPurpose) => {
    const taken = await takeVerificationTry(query, person, { id, kinds: ['passkey'], most: 1 })
    if (taken === undefined || taken === 'exceeded' || taken.purpose !== purpose)
      throw problem('verification_record.not_found')
    return { ...taken, challenge: challengeOf(id) }
  }

  const complete = async (person: AccountPerson, id: string, data: object): Promise<VerificationId> => {
    const done = await completeVerification(query, person, { id, data, seconds: reauthenticationSeconds })
    if (!done) throw problem('verification_record.not_found')
    return done
  }

  return {
    async authentication({ person }) {
      requireFactorEnabled(settings.experience(), 'WebAuthn')
      const id = newId()
      const begun = await begin(person, 'reauth', id, {})
      const held = await listCredentials(query, person.userId)
      return { ...begun, options: authenticationOptions(relyingParty, challengeOf(id), held) }
    },

    async verifyAuthentication(context, { id, credential }) {
      const { person } = context
      requireFactorEnabled(settings.experience(), 'WebAuthn')
      const { challenge } = await takeChallenge(person, id, 'reauth')
      const attempt = {
        // Nobody guesses a signature: it locks nobody out, and only the address counts.
        ...({ kind: 'passkey', account: lockoutKeys(hmac).passkeys(person.ip) } as const),
        ...{ policy: { ...lockoutDefaults, attempts: 1_000 }, wrong: failed },
      }
      return attempts.attempt(context, attempt, async () => {
        const passkey = await findPasskey(query, presentedCredentialId(credential))
        if (passkey?.userId !== person.userId) return undefined
        const expected = { challenge, relyingParty }
        const { verified } = verifyAuthentication(credential, expected, passkey, passkey.userHandle)
        if (!verified || !(await factors.usePasskey(query, passkey.id, verified))) return undefined
        return complete(person, id, { factorId: passkey.id })
      })
    },

    async registration({ person }) {
      requireFactorEnabled(settings.experience(), 'WebAuthn')
      const { userId } = person
      const account = await findAccount(query, userId)
      if (!account) throw noLongerSignedIn()
      const handle = (await findUserHandle(query, userId)) ?? newUserHandle()
      const id = newId()
      const factor = sealFactor(envelope, id, { userHandle: handle.toString('base64url') })
      const begun = await begin(person, 'bind', id, { factor })
      const owner = { handle, name: account.identifier, displayName: account.name }
      const existing = await listCredentials(query, userId)
      return { ...begun, options: registrationOptions(relyingParty, challengeOf(id), owner, existing) }
    },

    async verifyRegistration({ person }, { id, credential }) {
      requireFactorEnabled(settings.experience(), 'WebAuthn')
      const taken = await takeChallenge(person, id, 'bind')
      const { userHandle } = openFactor(envelope, pendingPasskey, taken)
      const { verified } = verifyRegistration(credential, { challenge: taken.challenge, relyingParty })
      if (!verified) throw failed()
      const factor = { userHandle, credential: toPendingCredential(verified), agent: person.userAgent }
      return complete(person, id, { factor: sealFactor(envelope, id, factor) })
    },
  }
}
