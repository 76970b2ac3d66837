import { describe, expect, test } from 'vitest'
import {
  authenticationCredential,
  type NewCredential,
  registrationCredential,
  relyingPartyOf,
  verifyAuthentication,
  verifyRegistration,
} from '../../../../../issuer/directory/users/factors/index.ts'
import { readAuthenticatorData } from '../../../../../issuer/directory/users/factors/webauthn/authenticator-data.ts'
import { asMap, decode } from '../../../../../issuer/directory/users/factors/webauthn/cbor.ts'
import { isSignedBy, readCoseKey } from '../../../../../issuer/directory/users/factors/webauthn/cose-key.ts'
import { sha256 } from '../../../../../platform/secret.ts'
import { type Vector, vectors } from './w3c-vectors.ts'

/**
 * The published examples. Most were made without verifying the user, which is refused here, but only after everything
 * else was found right: so these tell something too.
 */

const relyingParty = relyingPartyOf('https://example.org')
const bytes = (text: string) => Buffer.from(text, 'hex')
const base64url = (text: string) => bytes(text).toString('base64url')

const attestedOf = ({ registration: { attestationObject } }: Vector) => {
  const authData = asMap(decode(bytes(attestationObject))).get('authData') as Buffer
  const { attested, ...data } = readAuthenticatorData(authData)
  return { ...data, credentialId: attested!.credentialId, ...readCoseKey(attested!.key) }
}

const idOf = (vector: Vector) => attestedOf(vector).credentialId.toString('base64url')

const register = (vector: Vector) => {
  const { challenge, clientDataJSON, attestationObject } = vector.registration
  const id = idOf(vector)
  const response = { clientDataJSON: base64url(clientDataJSON), attestationObject: base64url(attestationObject) }
  const credential = registrationCredential.parse({ id, rawId: id, type: 'public-key', response })
  return verifyRegistration(credential, { challenge: base64url(challenge), relyingParty })
}

const userHandle = Buffer.alloc(32, 1)

const authenticate = (vector: Vector, change: Partial<NewCredential> = {}) => {
  const { challenge, clientDataJSON, authenticatorData, signature } = vector.authentication
  const id = idOf(vector)
  const response = {
    clientDataJSON: base64url(clientDataJSON),
    authenticatorData: base64url(authenticatorData),
    signature: base64url(signature),
  }
  const credential = authenticationCredential.parse({ id, rawId: id, type: 'public-key', response })
  const stored = { ...attestedOf(vector), userHandle, ...change }
  return verifyAuthentication(credential, { challenge: base64url(challenge), relyingParty }, stored, userHandle)
}

const accepted = 'accepted'
const outcomeOf = ({ refused = accepted }: { refused?: string | undefined }) => refused

const outcomes: Record<string, [registration: string, authentication: string]> = {
  'none.ES256': ['user_not_verified', 'user_not_verified'],
  'packed-self.ES256': [accepted, 'user_not_verified'],
  'none.ES256.crossOrigin': ['cross_origin', 'cross_origin'],
  'none.ES256.topOrigin': ['cross_origin', 'cross_origin'],
  'packed.ES256': [accepted, accepted],
  'packed.RS256': [accepted, 'user_not_verified'],
  'packed.EdDSA': ['user_not_verified', 'user_not_verified'],
}

describe.each(vectors)('$section $name', (vector) => {
  const { authenticatorData, clientDataJSON, signature } = vector.authentication
  const signed = Buffer.concat([bytes(authenticatorData), sha256(bytes(clientDataJSON))])

  test('is accepted but for what is refused on purpose', () => {
    expect([outcomeOf(register(vector)), outcomeOf(authenticate(vector))]).toEqual(outcomes[vector.name])
  })

  test('its signature is right, and with any bit changed wrong', () => {
    const key = attestedOf(vector)
    expect(isSignedBy(key, signed, bytes(signature))).toBe(true)
    for (const place of [0, 32, 36, 68]) {
      const changed = Buffer.from(signed)
      changed.writeUInt8(changed[place]! ^ 0x20, place)
      expect(isSignedBy(key, changed, bytes(signature))).toBe(false)
    }
  })
})

test('the key of one example does not accept the signature of another', () => {
  const [first, second] = [vectors[0]!, vectors[1]!]
  const { publicKey } = attestedOf(second)
  expect(authenticate(first, { publicKey })).toEqual({ refused: 'wrong_signature' })
})
