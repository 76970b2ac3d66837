import { verify } from 'node:crypto'
import { toSeconds } from '../clock.ts'
import { algorithms } from './algorithms.ts'
import { JwtError } from './jwt-error.ts'
import type { VerificationKey } from './keys.ts'
import type { ParsedJwt } from './parse.ts'

export interface VerifyOptions {
  /** The only `iss` accepted, compared byte for byte. */
  issuer: string
  /** Any one of them must be in `aud`. `undefined` leaves the audience to the caller. */
  audience: readonly string[] | undefined
  algorithms: readonly string[]
  /**
   * Header types accepted, e.g. `['at+jwt']` (RFC 9068 §4). With `JWT`, ID tokens (`nonce`, `at_hash`) are refused and
   * `audience` must be given.
   */
  typ: readonly string[]
  clockSkewSeconds: number
  now: Date
}

export type ClaimsOptions = Pick<VerifyOptions, 'issuer' | 'audience' | 'clockSkewSeconds' | 'now'>

/** RFC 8693 §4.1. The outermost object is who acts now. */
export interface ActClaim {
  readonly sub: string
  readonly act?: ActClaim
  readonly [member: string]: unknown
}

/** The claims of a verified token; the named members have been checked for their type. Times in seconds. */
export interface VerifiedClaims {
  readonly iss: string
  readonly sub: string
  readonly aud: string | readonly string[]
  readonly exp: number
  readonly iat: number
  readonly nbf?: number
  readonly jti?: string
  readonly client_id?: string
  readonly scope?: string
  readonly sid?: string
  readonly organization_id?: string
  readonly act?: ActClaim
  readonly [claim: string]: unknown
}

/** Every `act` object counts. */
export const maxActDepth = 4

/** The last second of the year 9999: a time beyond it is a mistake or an attempt to overflow something. */
const lastSecond = 253_402_300_799

const bad = (message: string) => new JwtError('claims', message)

const mediaType = (typ: string): string => typ.toLowerCase().replace(/^application\//, '')

const checkType = ({ header, claims }: ParsedJwt, options: VerifyOptions) => {
  // RFC 7515 §4.1.9: compared without case, `application/` may be left out. RFC 8725 §3.11: explicit typing.
  const typ = header.typ === undefined ? undefined : mediaType(header.typ)
  if (typ === undefined || !options.typ.some((accepted) => mediaType(accepted) === typ)) {
    throw new JwtError('type', 'The token is not of an accepted type.')
  }
  if (typ !== 'jwt') return
  if (options.audience === undefined) throw new JwtError('audience', 'A token of type JWT needs an audience to check.')
  if ('nonce' in claims || 'at_hash' in claims) throw new JwtError('type', 'An ID token is not an access token.')
}

/**
 * Whether the signature holds with this key, by the key's own algorithm. Whether the header names that one is for the
 * caller to check.
 */
export const verifySignature = ({ signingInput, signature }: ParsedJwt, { alg, key }: VerificationKey): boolean => {
  const { digest, signatureLength, toOpenSsl, options } = algorithms[alg]!
  if (signatureLength !== undefined && signature.length !== signatureLength) return false
  // A key without options around it is a fifth cheaper.
  return verify(
    digest,
    Buffer.from(signingInput),
    options ? { key, ...options } : key,
    toOpenSsl ? toOpenSsl(signature) : signature,
  )
}

const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= lastSecond

const checkTimes = ({ exp, iat, nbf }: Readonly<Record<string, unknown>>, options: ClaimsOptions) => {
  if (!isTime(exp) || !isTime(iat)) throw bad('The token has no usable exp and iat.')
  if (nbf !== undefined && !isTime(nbf)) throw bad('The nbf of the token is not a time.')
  if (exp <= iat || (nbf !== undefined && exp <= nbf)) throw bad('The token expires before it is valid.')
  const now = toSeconds(options.now)
  // RFC 7519 §4.1.4: "on or after which the JWT MUST NOT be accepted".
  if (now >= exp + options.clockSkewSeconds) throw new JwtError('expired', 'The token has expired.')
  if (iat > now + options.clockSkewSeconds || (nbf !== undefined && nbf > now + options.clockSkewSeconds)) {
    throw new JwtError('not_yet_valid', 'The token is not valid yet.')
  }
}

const checkAudience = (aud: unknown, accepted: readonly string[] | undefined) => {
  const audiences = typeof aud === 'string' ? [aud] : aud
  if (!Array.isArray(audiences) || !audiences.every((one) => typeof one === 'string' && one !== '')) {
    throw bad('The aud of the token is neither a string nor a list of strings.')
  }
  if (audiences.length === 0 || (accepted && !audiences.some((one) => accepted.includes(one)))) {
    throw new JwtError('audience', 'The token is for another audience.')
  }
}

const checkAct = (act: unknown) => {
  let depth = 0
  for (let level = act; level !== undefined; level = (level as { act?: unknown }).act) {
    if (typeof level !== 'object' || level === null || Array.isArray(level))
      throw bad('An act of the token is no object.')
    const { sub } = level as { sub?: unknown }
    if (typeof sub !== 'string' || sub === '') throw bad('An act of the token names no actor.')
    if (++depth > maxActDepth) throw bad(`The token has more than ${maxActDepth} actors.`)
  }
}

const textClaims = ['jti', 'client_id', 'scope', 'sid', 'organization_id'] as const

/**
 * Checks claims that are known to come from their issuer: that of `verifyJwt` after the signature. Throws `JwtError`.
 */
export const verifyClaims = (claims: Readonly<Record<string, unknown>>, options: ClaimsOptions): VerifiedClaims => {
  if (claims['iss'] !== options.issuer) throw new JwtError('issuer', 'The token is from another issuer.')
  if (typeof claims['sub'] !== 'string' || claims['sub'] === '') throw bad('The token has no subject.')
  checkTimes(claims, options)
  checkAudience(claims['aud'], options.audience)
  for (const name of textClaims) {
    if (claims[name] !== undefined && typeof claims[name] !== 'string') throw bad(`The claim ${name} is not a string.`)
  }
  checkAct(claims['act'])
  return claims as VerifiedClaims
}

/**
 * Verifies a parsed token with one key and returns its claims (RFC 7519 §7.2, RFC 9068 §4, RFC 8725). Synchronous:
 * 70–120 µs for ES256. `exp`, `iat`, `sub`, `aud` are required. Throws `JwtError`; the signature is checked before any
 * claim is believed.
 */
export const verifyJwt = (jwt: ParsedJwt, key: VerificationKey, options: VerifyOptions): VerifiedClaims => {
  if (!options.algorithms.includes(jwt.header.alg) || jwt.header.alg !== key.alg) {
    throw new JwtError('algorithm', 'The token is signed with an algorithm that is not accepted.')
  }
  checkType(jwt, options)
  if (!verifySignature(jwt, key)) throw new JwtError('signature', 'The signature of the token is not valid.')
  return verifyClaims(jwt.claims, options)
}
