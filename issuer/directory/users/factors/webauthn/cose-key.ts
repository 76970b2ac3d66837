import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto'
import type { CborMap } from './cbor.ts'
import { Refused, requireThat } from './refusal.ts'

/** A public key as it is stored. */
export interface PublicKey {
  /** SubjectPublicKeyInfo, DER. */
  publicKey: Buffer
  /** A COSE algorithm. */
  algorithm: number
}

interface Algorithm {
  /** JOSE's name. */
  name: string
  /** The parameter `kty` (RFC 9053 §7). */
  keyType: number
  /** The curve, where there are several: parameter -1, and what Node.js calls it. */
  curve?: { id: number; name: string | undefined }
  /** Its key as a JWK. */
  jwk(key: CborMap): JsonWebKey
  /** `asymmetricKeyType` of Node.js. */
  type: string
  hash: 'sha256' | null
}

const bytesOf = (key: CborMap, parameter: number, length?: number): string => {
  const value = key.get(parameter)
  if (!Buffer.isBuffer(value) || (length !== undefined && value.length !== length)) throw new Refused('unsupported_key')
  return value.toString('base64url')
}

/** In bits. What is smaller can be broken; what is larger takes long. */
const rsaModulus = { min: 2_048, max: 4_096 }
const usualExponent = Buffer.of(1, 0, 1).toString('base64url')

/** By COSE algorithm, the most wanted first. What is not here is neither offered nor accepted. */
export const algorithms: ReadonlyMap<number, Algorithm> = new Map([
  [
    -7,
    {
      name: 'ES256',
      keyType: 2,
      curve: { id: 1, name: 'prime256v1' },
      // Uncompressed only (WebAuthn §5.8.5), which OpenSSL holds against the curve.
      jwk: (key) => ({ kty: 'EC', crv: 'P-256', x: bytesOf(key, -2, 32), y: bytesOf(key, -3, 32) }),
      type: 'ec',
      hash: 'sha256',
    },
  ],
  [
    -8,
    {
      name: 'EdDSA',
      keyType: 1,
      curve: { id: 6, name: undefined },
      jwk: (key) => ({ kty: 'OKP', crv: 'Ed25519', x: bytesOf(key, -2, 32) }),
      type: 'ed25519',
      hash: null,
    },
  ],
  [
    -257,
    {
      name: 'RS256',
      keyType: 3,
      jwk(key) {
        const exponent = bytesOf(key, -2)
        requireThat(exponent === usualExponent, 'unsupported_key')
        return { kty: 'RSA', n: bytesOf(key, -1), e: exponent }
      },
      type: 'rsa',
      hash: 'sha256',
    },
  ],
] satisfies [number, Algorithm][])

/** A COSE key (RFC 9052 §7). Throws `unsupported_algorithm`, `unsupported_key`. */
export const readCoseKey = (key: CborMap): PublicKey => {
  const algorithm = key.get(3)
  const known = typeof algorithm === 'number' ? algorithms.get(algorithm) : undefined
  if (typeof algorithm !== 'number' || known === undefined) throw new Refused('unsupported_algorithm')
  requireThat(key.get(1) === known.keyType, 'unsupported_key')
  requireThat(known.curve === undefined || key.get(-1) === known.curve.id, 'unsupported_key')
  const publicKey = importKey(() => createPublicKey({ format: 'jwk', key: known.jwk(key) }))
  requireThat(isKeyOf(publicKey, known), 'unsupported_key')
  return { publicKey: publicKey.export({ type: 'spki', format: 'der' }), algorithm }
}

/** Whether this key made the signature, with the algorithm that it is stored with and no other. */
export const isSignedBy = ({ publicKey, algorithm }: PublicKey, data: Buffer, signature: Buffer): boolean => {
  const known = algorithms.get(algorithm)
  if (known === undefined) return false
  const key = importKey(() => createPublicKey({ key: publicKey, type: 'spki', format: 'der' }))
  // ECDSA: OpenSSL takes the one DER encoding of the two numbers only.
  return isKeyOf(key, known) && verify(known.hash, data, key, signature)
}

const importKey = (read: () => KeyObject): KeyObject => {
  try {
    return read()
  } catch (error) {
    if (error instanceof Refused) throw error
    throw new Refused('unsupported_key', { cause: error })
  }
}

const isKeyOf = ({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject, { type, curve }: Algorithm): boolean => {
  const { namedCurve, modulusLength } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType !== type || namedCurve !== curve?.name) return false
  return modulusLength === undefined || (modulusLength >= rsaModulus.min && modulusLength <= rsaModulus.max)
}
