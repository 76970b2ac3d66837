import { hash } from 'node:crypto'
import { JwtError } from '../jwt/jwt-error.ts'
import type { VerificationKey } from '../jwt/keys.ts'
import { type ParsedJwt, parseJwt } from '../jwt/parse.ts'
import { verifySignature } from '../jwt/verify.ts'
import { type ProofKey, readProofKey } from './proof-key.ts'

/** What a proof must be about. */
export interface ProofDemand {
  method: string
  /** The address as its client knows it, without the query. */
  target: string
  /** Whether `htu` is that address, query and fragment ignored (RFC 9449 §4.3). */
  namesTarget(htu: string, target: string): boolean
  /** As sent; undefined where a token is only asked for. */
  accessToken: string | undefined
  /** `cnf.jkt` of the token. Undefined: any key will do. */
  thumbprint: string | undefined
  /** Throws when the nonce is not good. */
  checkNonce(nonce: unknown): void
  importKey(key: ProofKey, alg: string): VerificationKey | undefined
  nowSeconds: number
}

/** How far `iat` may be from our clock, in seconds either way. */
export const proofSeconds = 60

/** In characters: a key of RSA with 4096 bits and its signature take 2 000. */
const maxProofLength = 8_192
const maxJtiLength = 256

const bad = (message: string) => new JwtError('claims', message)

/** A proof that is good, but for having been used before. */
export interface VerifiedProof {
  jti: string
  /** In seconds. */
  iat: number
  /** Of its key (RFC 7638, SHA-256). */
  thumbprint: string
  alg: string
}

/**
 * The checks of RFC 9449 §4.3 and §7.1, the cheap ones first: one signature is verified, and only for a proof that is
 * right in everything else. Whether it was used before is for the caller. Throws `JwtError`.
 */
export const verifyProof = (proof: string, demand: ProofDemand): VerifiedProof => {
  if (proof.length > maxProofLength) throw new JwtError('malformed', 'The DPoP proof is too long.')
  const jwt = parsed(proof)
  const { typ, alg, jwk } = jwt.header
  if (typ !== 'dpop+jwt') throw new JwtError('type', 'The DPoP proof is not of the type dpop+jwt.')
  const key = readProofKey(jwk, alg)
  if (!key) throw new JwtError('algorithm', 'The DPoP proof has no public key for an algorithm that is accepted.')
  if (demand.thumbprint !== undefined && key.thumbprint !== demand.thumbprint) {
    throw new JwtError('unknown_key', 'The DPoP proof is of another key than the one that the token is bound to.')
  }
  const { jti, htm, htu, iat, ath, nonce, exp, nbf } = jwt.claims
  if (typeof jti !== 'string' || jti === '' || jti.length > maxJtiLength) {
    throw bad(`The DPoP proof has no jti of up to ${maxJtiLength} characters.`)
  }
  if (htm !== demand.method) throw bad('The DPoP proof is for another method.')
  if (typeof htu !== 'string' || !demand.namesTarget(htu, demand.target))
    throw bad('The DPoP proof is for another address.')
  const { nowSeconds: now } = demand
  if (typeof iat !== 'number' || !(Math.abs(now - iat) <= proofSeconds)) {
    throw bad('The DPoP proof was not made just now, or the clock of the client is wrong.')
  }
  // Not of RFC 9449, but whoever says it means it (RFC 7519 §4.1.4, §4.1.5).
  if (exp !== undefined && !(typeof exp === 'number' && now < exp)) throw bad('The DPoP proof has expired.')
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= now + proofSeconds)) {
    throw bad('The DPoP proof is not valid yet.')
  }
  if (demand.accessToken !== undefined && ath !== hash('sha256', demand.accessToken, 'base64url')) {
    throw bad('The DPoP proof is for another token.')
  }
  demand.checkNonce(nonce)
  const verificationKey = demand.importKey(key, alg)
  if (!verificationKey || !verifySignature(jwt, verificationKey)) {
    throw new JwtError('signature', 'The signature of the DPoP proof is not valid.')
  }
  return { jti, iat, thumbprint: key.thumbprint, alg }
}

const parsed = (proof: string): ParsedJwt => {
  try {
    return parseJwt(proof)
  } catch {
    throw new JwtError('malformed', 'The DPoP proof cannot be read as a JWT.')
  }
}
