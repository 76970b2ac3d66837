import {
  readAuthenticatorData,
  requirePossibleBackup,
  requireRelyingParty,
  requireVerifiedUser,
} from './authenticator-data.ts'
import { asMap, decode } from './cbor.ts'
import { type Expected, type RelyingParty, requireClientData } from './client-data.ts'
import { algorithms, type PublicKey, readCoseKey } from './cose-key.ts'
import { bytesOf, credentialIdOf, type RegistrationCredential } from './credential-json.ts'
import { ceremonyTimeout, type KnownCredential, toDescriptor } from './descriptors.ts'
import { type Judgement, judge, Refused, requireThat } from './refusal.ts'

/** A credential that an authenticator made. */
export interface NewCredential extends PublicKey {
  credentialId: Buffer
  signCount: number
  /** How browsers reach the authenticator: `internal`, `hybrid`, `usb`, … */
  transports: readonly string[]
  isBackupEligible: boolean
  isBackedUp: boolean
}

/** Whose credential is made. */
export interface NewOwner {
  /** 32 random bytes; nothing of the person. */
  handle: Buffer
  /** What tells accounts apart: an address, a user name. */
  name: string
  displayName: string
}

/**
 * What `PublicKeyCredential.parseCreationOptionsFromJSON` takes: a discoverable credential, with verification of the
 * user and without attestation. `existing` are those that the person has: an authenticator makes no second one.
 */
export const registrationOptions = (
  { id, name }: Pick<RelyingParty, 'id' | 'name'>,
  challenge: string,
  owner: NewOwner,
  existing: readonly KnownCredential[],
) => ({
  rp: { id, name },
  user: { id: owner.handle.toString('base64url'), name: owner.name, displayName: owner.displayName },
  challenge,
  pubKeyCredParams: [...algorithms.keys()].map((alg) => ({ type: 'public-key' as const, alg })),
  timeout: ceremonyTimeout,
  excludeCredentials: existing.map(toDescriptor),
  authenticatorSelection: {
    residentKey: 'required' as const,
    requireResidentKey: true,
    userVerification: 'required' as const,
  },
  attestation: 'none' as const,
})

export type RegistrationOptions = ReturnType<typeof registrationOptions>

/**
 * WebAuthn §7.1. Whoever calls has used the challenge up before. The attestation statement is ignored: whose make an
 * authenticator is decides nothing here. That nobody has the credential already is for the database to say.
 * `isConditional`: a password manager may have made it by itself, for somebody who has just given their password; then
 * nobody was seen (Level 3, §5.1.3). Whoever signs in with it is verified all the same.
 */
export const verifyRegistration = (
  credential: RegistrationCredential,
  expected: Expected & { isConditional?: boolean | undefined },
): Judgement<NewCredential> =>
  judge(() => {
    const id = credentialIdOf(credential)
    requireClientData(bytesOf(credential.response.clientDataJSON), 'webauthn.create', expected)
    const data = readAuthenticatorData(authDataOf(bytesOf(credential.response.attestationObject)))
    requireRelyingParty(data, expected.relyingParty.id)
    if (expected.isConditional) requirePossibleBackup(data)
    else requireVerifiedUser(data)
    if (data.attested === undefined) throw new Refused('malformed')
    const { credentialId, key } = data.attested
    requireThat(credentialId.equals(id), 'wrong_credential')
    const { signCount, isBackupEligible, isBackedUp } = data
    const transports = knownTransports(credential.response.transports ?? [])
    return { credentialId: id, ...readCoseKey(key), signCount, transports, isBackupEligible, isBackedUp }
  })

/** WebAuthn §6.5.4 */
const authDataOf = (attestationObject: Buffer): Buffer => {
  const attestation = asMap(decode(attestationObject))
  const authData = attestation.get('authData')
  requireThat(typeof attestation.get('fmt') === 'string', 'malformed')
  if (!Buffer.isBuffer(authData)) throw new Refused('malformed')
  return authData
}

/** WebAuthn §5.8.4. Browsers may come to know others, which then only help less. */
const transportNames: readonly string[] = ['usb', 'nfc', 'ble', 'smart-card', 'hybrid', 'internal']
const knownTransports = (said: readonly string[]) => transportNames.filter((name) => said.includes(name))
