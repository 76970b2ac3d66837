import { createPublicKey, hash } from 'node:crypto'
import { z } from 'zod'
import { algorithms, isStrong, proofAlgorithms } from '../jwt/algorithms.ts'
import type { VerificationKey } from '../jwt/keys.ts'

/** The public key in the header of a proof, not imported yet. */
export interface ProofKey {
  /** RFC 7638, SHA-256. */
  readonly thumbprint: string
  /** Undefined: it is no key on its curve, or too weak. */
  import(): VerificationKey | undefined
}

const base64url = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(/^[\w-]+$/)

/**
 * The members that RFC 7638 §3.2 wants in a thumbprint, in its order, of lengths that keys in use have: RSA up to 4096
 * bits, exponents up to 32. Larger ones would make one verification take milliseconds.
 */
const requiredMembers = z.discriminatedUnion('kty', [
  z.object({ crv: z.literal('P-256'), kty: z.literal('EC'), x: base64url(43), y: base64url(43) }),
  z.object({ crv: z.literal('Ed25519'), kty: z.literal('OKP'), x: base64url(43) }),
  z.object({ e: base64url(6), kty: z.literal('RSA'), n: base64url(683) }),
])

/** RFC 7517 §4: what the key is for, if it says so. */
const purpose = z.object({
  alg: z.string().optional(),
  use: z.literal('sig').optional(),
  key_ops: z
    .array(z.string())
    .refine((operations) => operations.includes('verify'))
    .optional(),
})

/** RFC 7518 §6: whoever sends one of them has given the key away. */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/** Undefined: not the public key for signatures by `alg`, or that is none of `proofAlgorithms`. */
export const readProofKey = (jwk: unknown, alg: string): ProofKey | undefined => {
  const required = requiredMembers.safeParse(jwk)
  const stated = purpose.safeParse(jwk)
  if (!required.success || !stated.success) return undefined
  if (privateMembers.some((name) => name in (jwk as object))) return undefined
  const row = proofAlgorithms.includes(alg) ? algorithms[alg] : undefined
  const members = required.data
  const crv = 'crv' in members ? members.crv : undefined
  if (row === undefined || row.kty !== members.kty || (row.crv !== undefined && row.crv !== crv)) return undefined
  if (stated.data.alg !== undefined && stated.data.alg !== alg) return undefined
  return {
    thumbprint: hash('sha256', JSON.stringify(members), 'base64url'),
    import() {
      try {
        const key = createPublicKey({ key: members, format: 'jwk' })
        return isStrong(key) ? { kid: '', alg, key } : undefined
      } catch {
        return undefined
      }
    },
  }
}
