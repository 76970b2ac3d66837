import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { algorithms, defaultAlgorithm, isStrong } from './algorithms.ts'

/** A public key, bound to the one algorithm that it may verify. */
export interface VerificationKey {
  readonly kid: string
  readonly alg: string
  readonly key: KeyObject
}

const jwkSet = z.object({ keys: z.array(z.unknown()).max(100) })

const publicJwk = z.object({
  kty: z.enum(['EC', 'RSA', 'OKP']),
  kid: z.string().min(1).max(256),
  alg: z.string().optional(),
  crv: z.string().optional(),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
  // A key whose private part is published can be used by anybody.
  d: z.undefined().optional(),
})

const importJwk = (jwk: unknown): VerificationKey | undefined => {
  const parsed = publicJwk.safeParse(jwk)
  if (!parsed.success) return undefined
  const { kid, kty, crv, alg = defaultAlgorithm(kty, crv) } = parsed.data
  const row = alg === undefined ? undefined : algorithms[alg]
  if (alg === undefined || row === undefined || row.kty !== kty || (row.crv !== undefined && row.crv !== crv))
    return undefined
  try {
    const key = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
    return isStrong(key) ? { kid, alg, key } : undefined
  } catch {
    return undefined
  }
}

/**
 * The usable keys of a JWK Set (RFC 7517 §5), by `kid`. Left out, as RFC 7517 §5 asks for what is not understood: keys
 * without `kid`, of unknown type or algorithm, for encryption, with a private part, RSA under 2048 bits, and a `kid`
 * that stands there twice. Throws `TypeError` when it is no JWK Set at all.
 */
export const importJwks = (jwks: unknown): Map<string, VerificationKey> => {
  const parsed = jwkSet.safeParse(jwks)
  if (!parsed.success) throw new TypeError('not a JWK Set')
  const keys = new Map<string, VerificationKey>()
  const repeated = new Set<string>()
  for (const jwk of parsed.data.keys) {
    const key = importJwk(jwk)
    if (!key) continue
    if (keys.has(key.kid)) repeated.add(key.kid)
    keys.set(key.kid, key)
  }
  for (const kid of repeated) keys.delete(kid)
  return keys
}
