import { generateKeyPair, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import { derToRaw } from '../../../platform/jwt/ecdsa-signature.ts'

/** What the issuer can sign with: how a key pair is made and how it signs. Verification is `platform/jwt`. */
export interface SigningAlgorithm {
  /** Not on the main thread: an RSA key takes some 100 ms. */
  generate(): Promise<{ publicKey: KeyObject; privateKey: KeyObject }>
  /** The members of the public JWK that RFC 7638 §3.2 hashes for the thumbprint, in its order. */
  thumbprintMembers: readonly (keyof JsonWebKey)[]
  sign(input: string, key: KeyObject): Buffer
}

const generate = promisify(generateKeyPair)

// Signing is synchronous: 25 µs for ES256, 30 µs for EdDSA, 315 µs for RS256, less than the hop to a worker thread
// costs.
export const signingAlgorithms = {
  ES256: {
    generate: () => generate('ec', { namedCurve: 'P-256' }),
    thumbprintMembers: ['crv', 'kty', 'x', 'y'],
    sign: (input, key) => derToRaw(sign('sha256', Buffer.from(input), key), 32),
  },
  EdDSA: {
    generate: () => generate('ed25519'),
    thumbprintMembers: ['crv', 'kty', 'x'],
    sign: (input, key) => sign(null, Buffer.from(input), key),
  },
  RS256: {
    generate: () => generate('rsa', { modulusLength: 2048 }),
    thumbprintMembers: ['e', 'kty', 'n'],
    sign: (input, key) => sign('sha256', Buffer.from(input), key),
  },
} satisfies Record<string, SigningAlgorithm>

export type SigningAlgorithmName = keyof typeof signingAlgorithms

export const signingAlgorithmNames = Object.keys(signingAlgorithms) as [SigningAlgorithmName, ...SigningAlgorithmName[]]
