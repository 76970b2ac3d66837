import { hash } from 'node:crypto'
import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { type ParsedJwt, parseJwt } from '../../../platform/jwt/parse.ts'
import { verifySignature } from '../../../platform/jwt/verify.ts'
import { readProofKey } from './proof-key.ts'
import type { ImportProofKey } from './proof-keys.ts'
import { namesTarget } from './target-uri.ts'

/** What a proof must be about. */
export interface ProofDemand {
  method: string
  /** `targetUriOf`. */
  target: string
  /** As sent. */
  accessToken: string
  /** `cnf.jkt` of the token. */
  thumbprint: string
  /** Throws when the nonce is not good. */
  checkNonce(nonce: unknown): void
  importKey: ImportProofKey
  nowSeconds: number
}

/** How far `iat` may be from the gateway's clock, in seconds either way. */
export const proofSeconds = 60

/** In characters: a key of RSA with 4096 bits and its signature take 2 000. */
const maxProofLength = 8_192
const maxJtiLength = 256

const bad = (message: string) => new JwtError('claims', message)

/**
 * The checks of RFC 9449 §4.3 and §7.1, the cheap ones first: one signature is verified, and only for a proof that is
 * right in everything else. Whether it was used before is for the caller. Returns `jti` and `iat` (seconds). Throws
 * `JwtError`.
 */
export const verifyProof = (proof: string, demand: ProofDemand): { jti: string; iat: number } => {
  if (proof.length > maxProofLength) throw new JwtError('malformed', 'The DPoP proof is too long.')
  const jwt = parsed(proof)
  const { typ, alg, jwk } = jwt.header
  if (typ !== 'dpop+jwt') throw new JwtError('type', 'The DPoP proof is not of the type dpop+jwt.')
  const key = readProofKey(jwk, alg)
  if (!key) throw new JwtError('algorithm', 'The DPoP proof has no public key for an algorithm that is accepted.')
  if (key.thumbprint !== demand.thumbprint) {
    throw new JwtError('unknown_key', 'The DPoP proof is of another key than the one that the token is bound to.')
  }
  const { jti, htm, htu, iat, ath, nonce, exp, nbf } = jwt.claims
  if (typeof jti !== 'string' || jti === '' || jti.length > maxJtiLength) {
    throw bad(`The DPoP proof has no jti of up to ${maxJtiLength} characters.`)
  }
  if (htm !== demand.method) throw bad('The DPoP proof is for another method.')
  if (typeof htu !== 'string' || !namesTarget(htu, demand.target)) throw bad('The DPoP proof is for another address.')
  const { nowSeconds: now } = demand
  if (typeof iat !== 'number' || !(Math.abs(now - iat) <= proofSeconds)) {
    throw bad('The DPoP proof was not made just now, or the clock of the client is wrong.')
  }
  // Not of RFC 9449, but whoever says it means it (RFC 7519 §4.1.4, §4.1.5).
  if (exp !== undefined && !(typeof exp === 'number' && now < exp)) throw bad('The DPoP proof has expired.')
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= now + proofSeconds)) {
    throw bad('The DPoP proof is not valid yet.')
  }
  if (ath !== hash('sha256', demand.accessToken, 'base64url')) throw bad('The DPoP proof is for another token.')
  demand.checkNonce(nonce)
  const verificationKey = demand.importKey(key, alg)
  if (!verificationKey || !verifySignature(jwt, verificationKey)) {
    throw new JwtError('signature', 'The signature of the DPoP proof is not valid.')
  }
  return { jti, iat }
}

const parsed = (proof: string): ParsedJwt => {
  try {
    return parseJwt(proof)
  } catch {
    throw new JwtError('malformed', 'The DPoP proof cannot be read as a JWT.')
  }
}
