import { generateKeyPairSync } from 'node:crypto'
import { toSeconds } from '../../../platform/clock.ts'
import { supportedAlgorithms } from '../../../platform/jwt/algorithms.ts'
import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { importJwks, type VerificationKey } from '../../../platform/jwt/keys.ts'
import { type ParsedJwt, parseJwt } from '../../../platform/jwt/parse.ts'
import { verifySignature } from '../../../platform/jwt/verify.ts'
import { fapi2Algorithms } from '../../base/fapi2.ts'
import type { SecurityProfile } from './client.ts'

/**
 * `private_key_jwt`: a client proves who it is with a JWT that it signed itself (RFC 7523 §2.2, §3; OpenID Connect Core
 * §9).
 */
export const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** Asymmetric ones only. */
export const assertionAlgorithms = supportedAlgorithms

/** What an assertion that holds says of itself. */
export interface Assertion {
  jti: string
  /** From then on it is refused, and need not be remembered. */
  expiresAt: Date
}

/** An assertion lives at most so long, in seconds: so long its `jti` is remembered. */
const maxLifeSeconds = 300
/** How far the clocks of clients may differ from ours. */
const skewSeconds = 10
const maxJtiLength = 512

/** Takes it apart; who it says to be (`sub`) is not proven by that. Throws `JwtError`. */
export const readAssertion = (text: string): { assertion: ParsedJwt; clientId: string } => {
  const assertion = parseJwt(text)
  const { sub } = assertion.claims
  // Postgres text cannot hold NUL; JSON can spell what UTF-8 cannot.
  if (typeof sub !== 'string' || sub === '' || sub.includes('\0') || !sub.isWellFormed())
    throw new JwtError('claims', 'The assertion has no usable sub.')
  return { assertion, clientId: sub }
}

// What an assertion is verified with when its client has no key for it, so that it takes as long as a wrong signature.
const decoy: VerificationKey = {
  kid: '',
  alg: 'ES256',
  key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey,
}

// RFC 9864 gives EdDSA over Curve25519 the name Ed25519.
const sameAlgorithm = (left: string, right: string) =>
  left === right || [left, right].every((name) => name === 'EdDSA' || name === 'Ed25519')

const checkSignature = (assertion: ParsedJwt, jwks: string | null) => {
  const { alg, kid, typ } = assertion.header
  const named = [...keysOf(jwks).values()].filter((key) => kid === undefined || key.kid === kid)
  const candidates = named.filter((key) => sameAlgorithm(key.alg, alg))
  // The key's own algorithm counts: the header chooses among keys, not what is done with them (RFC 8725 §3.1).
  const valid = (candidates.length > 0 ? candidates : [decoy]).some(
    (key) => verifySignature(assertion, key) && key !== decoy,
  )
  if (!valid) throw new JwtError('signature', 'The assertion is not signed with a key of the client.')
  // RFC 8725 §3.11: no token of another kind. Most clients send no type; a draft names one.
  const type = typ?.toLowerCase().replace(/^application\//, '')
  if (type !== undefined && type !== 'jwt' && type !== 'client-authentication+jwt')
    throw new JwtError('type', 'The assertion is of another type.')
}

const isTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 && value <= 253_402_300_799

const checkTimes = ({ exp, nbf, iat }: Readonly<Record<string, unknown>>, now: number): number => {
  if (!isTime(exp)) throw new JwtError('claims', 'The assertion has no usable exp.')
  if (now >= exp + skewSeconds) throw new JwtError('expired', 'The assertion has expired.')
  if (exp > now + maxLifeSeconds + skewSeconds)
    throw new JwtError('claims', 'The exp of the assertion is too far ahead.')
  for (const time of [nbf, iat]) {
    if (time !== undefined && !isTime(time)) throw new JwtError('claims', 'A time of the assertion is no time.')
    if (time !== undefined && time > now + skewSeconds)
      throw new JwtError('not_yet_valid', 'The assertion is not valid yet.')
  }
  return exp
}

/**
 * Exactly one audience: an assertion that somebody else could use too is one somebody else could have got
 * (CVE-2025-27370).
 */
const checkAudience = (aud: unknown, { issuer, securityProfile }: AssertionExpectations) => {
  const [only, ...others] = [aud].flat()
  // FAPI 2.0 §5.3.2.1: "shall accept its issuer identifier value … as a string in the aud claim", and nothing else.
  const isMeant = securityProfile === 'fapi2' ? aud === issuer : [issuer, `${issuer}/token`].includes(only as string)
  if (others.length > 0 || !isMeant) throw new JwtError('audience', 'The assertion is for another audience.')
}

/**
 * Verifies an assertion of the client `clientId` with its registered keys: signature first, then `iss` = `sub` = the
 * client, `aud` the issuer or its token endpoint and nothing else, `exp` at most five minutes ahead, `jti`. Whether it
 * was used before is for the database to say. Throws `JwtError`.
 */
export const verifyAssertion = (assertion: ParsedJwt, expected: AssertionExpectations): Assertion => {
  const { clientId, jwks, securityProfile, now } = expected
  checkSignature(assertion, jwks)
  if (securityProfile === 'fapi2' && !fapi2Algorithms.includes(assertion.header.alg))
    throw new JwtError('algorithm', 'The algorithm of the assertion is not one of the FAPI 2.0 Security Profile.')
  const { iss, sub, aud, jti } = assertion.claims
  if (iss !== clientId || sub !== clientId) throw new JwtError('issuer', 'The assertion is of another client.')
  checkAudience(aud, expected)
  const exp = checkTimes(assertion.claims, toSeconds(now))
  if (typeof jti !== 'string' || jti === '' || jti.length > maxJtiLength)
    throw new JwtError('claims', 'The assertion has no usable jti.')
  return { jti, expiresAt: new Date((exp + skewSeconds) * 1000) }
}

export interface AssertionExpectations {
  clientId: string
  /** The client's registered JWK Set as JSON; null: it has none. */
  jwks: string | null
  issuer: string
  /** `fapi2`: only the issuer as `aud`, as a string, and not every algorithm. */
  securityProfile: SecurityProfile | undefined
  now: Date
}

const noKeys: ReadonlyMap<string, VerificationKey> = new Map()
const importedKeys = new Map<string, ReadonlyMap<string, VerificationKey>>()
const maxImported = 1_000

/** Importing a key takes as long as half a verification, so sets are kept by what they say. */
const keysOf = (jwks: string | null): ReadonlyMap<string, VerificationKey> => {
  if (jwks === null) return noKeys
  const known = importedKeys.get(jwks)
  if (known) return known
  const keys = importJwks(JSON.parse(jwks))
  if (importedKeys.size >= maxImported) importedKeys.delete(importedKeys.keys().next().value!)
  importedKeys.set(jwks, keys)
  return keys
}
