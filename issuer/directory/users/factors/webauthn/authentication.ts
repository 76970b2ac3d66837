import { sha256 } from '../../../../../platform/secret.ts'
import { readAuthenticatorData, requireRelyingParty, requireVerifiedUser } from './authenticator-data.ts'
import { type Expected, type RelyingParty, requireClientData } from './client-data.ts'
import { isSignedBy, type PublicKey } from './cose-key.ts'
import { type AuthenticationCredential, bytesOf, credentialIdOf } from './credential-json.ts'
import { ceremonyTimeout, type KnownCredential, toDescriptor } from './descriptors.ts'
import { type Judgement, judge, requireThat } from './refusal.ts'

/** What is known of the credential that answers. */
export interface StoredCredential extends PublicKey {
  credentialId: Buffer
  /** `webauthn_handle` of its user. */
  userHandle: Buffer
  signCount: number
  isBackupEligible: boolean
}

/** What an answer tells of its credential. */
export interface Assertion {
  signCount: number
  isBackedUp: boolean
  /**
   * The counter did not increase, of a credential that may live on several devices: they count each for themselves. For
   * the audit.
   */
  isCounterBehind: boolean
}

/**
 * What `PublicKeyCredential.parseRequestOptionsFromJSON` takes. Without `allowed` any passkey of this issuer that the
 * browser has may answer, which so says who it is.
 */
export const authenticationOptions = (
  { id }: Pick<RelyingParty, 'id'>,
  challenge: string,
  allowed: readonly KnownCredential[] = [],
) => ({
  challenge,
  rpId: id,
  timeout: ceremonyTimeout,
  allowCredentials: allowed.map(toDescriptor),
  userVerification: 'required' as const,
})

export type AuthenticationOptions = ReturnType<typeof authenticationOptions>

/**
 * WebAuthn §7.2. Whoever calls has used the challenge up before, and keeps what the answer tells
 * (`recordPasskeyUse`), which settles what happens at the same time. `identified` is the handle of the person who it
 * has to be; without, the credential must say whose it is.
 *
 * Nothing that the authenticator says is looked at before its signature is known to be right, but for what it is
 * signed for.
 */
export const verifyAuthentication = (
  credential: AuthenticationCredential,
  expected: Expected,
  stored: StoredCredential,
  identified?: Buffer,
): Judgement<Assertion> =>
  judge(() => {
    const { response } = credential
    requireThat(credentialIdOf(credential).equals(stored.credentialId), 'wrong_credential')
    requireUser(response.userHandle, stored.userHandle, identified)
    const clientData = bytesOf(response.clientDataJSON)
    requireClientData(clientData, 'webauthn.get', expected)
    const signed = bytesOf(response.authenticatorData)
    const data = readAuthenticatorData(signed)
    requireRelyingParty(data, expected.relyingParty.id)
    const isSigned = isSignedBy(stored, Buffer.concat([signed, sha256(clientData)]), bytesOf(response.signature))
    requireThat(isSigned, 'wrong_signature')
    requireVerifiedUser(data)
    requireThat(data.isBackupEligible === stored.isBackupEligible, 'backup_eligibility_changed')
    const isCounterBehind = isBehind(data.signCount, stored.signCount)
    requireThat(!isCounterBehind || stored.isBackupEligible, 'counter_not_increased')
    return { signCount: data.signCount, isBackedUp: data.isBackedUp, isCounterBehind }
  })

/** WebAuthn §7.2, step 6: in both cases it is the owner of the credential. */
const requireUser = (said: string | null | undefined, owner: Buffer, identified: Buffer | undefined) => {
  requireThat(identified === undefined || identified.equals(owner), 'wrong_user')
  if (said == null) requireThat(identified !== undefined, 'wrong_user')
  else requireThat(bytesOf(said).equals(owner), 'wrong_user')
}

/** WebAuthn §6.1.1. Authenticators that do not count say 0 always. */
const isBehind = (now: number, before: number): boolean => now <= before && (now !== 0 || before !== 0)
