import { sha256 } from '../../../../../platform/secret.ts'
import { asMap, type CborMap, decodeFirst } from './cbor.ts'
import { requireThat } from './refusal.ts'

/** What an authenticator says (WebAuthn §6.1). */
export interface AuthenticatorData {
  rpIdHash: Buffer
  isUserPresent: boolean
  isUserVerified: boolean
  isBackupEligible: boolean
  isBackedUp: boolean
  signCount: number
  /** Of a credential that was just made. */
  attested: { credentialId: Buffer; key: CborMap } | undefined
}

const flags = {
  userPresent: 0x01,
  userVerified: 0x04,
  backupEligible: 0x08,
  backedUp: 0x10,
  attested: 0x40,
  extensions: 0x80,
} as const

/** Of a credential id, in bytes (WebAuthn §4). */
export const longestCredentialId = 1_023

/** Throws `malformed` unless the bytes are this and nothing more. */
export const readAuthenticatorData = (bytes: Buffer): AuthenticatorData => {
  requireThat(bytes.length >= 37, 'malformed')
  const has = (flag: number) => (bytes[32]! & flag) !== 0
  let end = 37

  const readAttested = () => {
    requireThat(bytes.length >= 55, 'malformed')
    // The AAGUID stands before it.
    const length = bytes.readUInt16BE(53)
    requireThat(length > 0 && length <= longestCredentialId && bytes.length > 55 + length, 'malformed')
    const key = decodeFirst(bytes, 55 + length)
    end = key.end
    return { credentialId: bytes.subarray(55, 55 + length), key: asMap(key.value) }
  }

  const attested = has(flags.attested) ? readAttested() : undefined
  if (has(flags.extensions)) {
    const extensions = decodeFirst(bytes, end)
    asMap(extensions.value)
    end = extensions.end
  }
  requireThat(end === bytes.length, 'malformed')
  return {
    rpIdHash: bytes.subarray(0, 32),
    isUserPresent: has(flags.userPresent),
    isUserVerified: has(flags.userVerified),
    isBackupEligible: has(flags.backupEligible),
    isBackedUp: has(flags.backedUp),
    signCount: bytes.readUInt32BE(33),
    attested,
  }
}

/** Throws unless it is said for this relying party. */
export const requireRelyingParty = ({ rpIdHash }: AuthenticatorData, rpId: string): void =>
  requireThat(sha256(rpId).equals(rpIdHash), 'wrong_relying_party')

/** Throws unless its flags make sense. */
export const requirePossibleBackup = ({ isBackupEligible, isBackedUp }: AuthenticatorData): void =>
  requireThat(isBackupEligible || !isBackedUp, 'backup_flags_contradict')

/** Throws unless the authenticator saw the user and knows it was them, and its flags make sense. */
export const requireVerifiedUser = (data: AuthenticatorData): void => {
  requireThat(data.isUserPresent, 'user_not_present')
  requireThat(data.isUserVerified, 'user_not_verified')
  requirePossibleBackup(data)
}
