import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { Meter } from '../base/meter.ts'
import { objectOf, refuse, unlessRefused } from '../values/operands.ts'
import { integerOf, type RegoObject, type Value } from '../values/value.ts'
import { childrenOf, context, type Element, oidOf, onlyElement, tags } from './der.ts'

export type PrivateKeyForm = 'pkcs8' | 'pkcs1' | 'sec1'

const unitsForKey = 5_000
const unitsForPoint = 240_000

/** Pays for reading a private key: that of an elliptic curve may lack its public point, which is then computed. */
export const payForPrivateKey = (der: Buffer, { spend }: Meter): void =>
  spend(unlessRefused(() => lacksPoint(onlyElement(der))) ? unitsForPoint : unitsForKey)

const ellipticCurve = '1.2.840.10045.2.1'

/** RFC 5915 §3, and the same within RFC 5208 §5. */
const lacksPoint = (key: Element): boolean => {
  const [, second, third, ...others] = childrenOf(key)
  if (second?.tag === tags.octetString) {
    return ![third, ...others].some((part) => part?.tag === context(1, { constructed: true }))
  }
  const isElliptic = second?.tag === tags.sequence && oidOf(childrenOf(second)[0]).join('.') === ellipticCurve
  return isElliptic && third !== undefined && lacksPoint(onlyElement(third.content))
}

export const readPrivateKey = (der: Buffer, form: PrivateKeyForm): KeyObject => {
  try {
    return createPrivateKey({ key: der, format: 'der', type: form })
  } catch {
    return refuse('not a private key')
  }
}

/** Whatever of these it is. */
export const readAnyPrivateKey = (der: Buffer): KeyObject => {
  for (const type of ['pkcs1', 'pkcs8', 'sec1'] as const) {
    try {
      return createPrivateKey({ key: der, format: 'der', type })
    } catch {}
  }
  return refuse('not a private key')
}

const bytesOf = (part: string | undefined): Buffer => Buffer.from(part ?? '', 'base64url')

const number = (part: string | undefined): Value => integerOf(BigInt(`0x${bytesOf(part).toString('hex') || '0'}`))

/** As JSON of Go's keys: `rsa.PrivateKey`, `ecdsa.PrivateKey`, `ed25519.PrivateKey`. */
export const goPrivateKey = (key: KeyObject): Value => {
  const jwk = key.export({ format: 'jwk' })
  if (jwk.kty === 'EC') return objectOf({ Curve: new Map(), D: number(jwk.d), X: number(jwk.x), Y: number(jwk.y) })
  if (jwk.kty === 'OKP') return Buffer.concat([bytesOf(jwk.d), bytesOf(jwk.x)]).toString('base64')
  if (jwk.kty !== 'RSA') return refuse('unsupported kind of key')
  return objectOf({
    N: number(jwk.n),
    E: number(jwk.e),
    D: number(jwk.d),
    Primes: [number(jwk.p), number(jwk.q)],
    Precomputed: objectOf({ Dp: number(jwk.dp), Dq: number(jwk.dq), Qinv: number(jwk.qi), CRTValues: [] }),
  })
}

export const jwkOf = (key: KeyObject): RegoObject => objectOf(key.export({ format: 'jwk' }) as Record<string, string>)

/**
 * Whether the private key is that of the certificate. By their DER: `equals` of keys of different kinds leaves an error
 * behind in OpenSSL, at which the next key that is read fails.
 */
export const isPair = (key: KeyObject, certificateKey: KeyObject): boolean => {
  const der = (publicKey: KeyObject) => publicKey.export({ format: 'der', type: 'spki' })
  return der(createPublicKey(key)).equals(der(certificateKey))
}
