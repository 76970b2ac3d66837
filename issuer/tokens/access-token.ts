import { randomUUID } from 'node:crypto'
import { type Clock, systemClock } from '../../platform/clock.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import { parseJwt } from '../../platform/jwt/parse.ts'
import { type VerifiedClaims, verifyJwt } from '../../platform/jwt/verify.ts'
import type { Confirmation } from './dpop/confirmation.ts'
import { signingAlgorithmNames } from './keys/signing-algorithms.ts'
import type { SigningKeys } from './keys/signing-keys.ts'

/** RFC 8693 §4.1. The outermost object is who acts now. */
export interface Act {
  sub: string
  act?: Act
}

/**
 * The claims of an access token for a resource (RFC 9068 §2.2); times in seconds. `mint` adds `iss` and `jti` stands in
 * the audit trail.
 */
export interface AccessTokenClaims {
  jti: string
  sub: string
  /** The resource indicator. */
  aud: string
  clientId: string
  /** Space-separated; empty when nothing was granted. */
  scope: string
  iat: number
  exp: number
  sid?: string | undefined
  act?: Act | undefined
  /** Where the subject is a member and the scopes count. */
  organizationId?: string | undefined
  /** RFC 9068 §2.2.1.1: how the subject was authenticated, where that says less than signing in. */
  amr?: readonly string[] | undefined
  /** RFC 9068 §2.2.1: of the person who signed in, when and how well; in seconds. Never in a token of an exchange. */
  authTime?: number | undefined
  acr?: string | undefined
  /** The key that the token is bound to (RFC 9449 §6.1). */
  cnf?: Confirmation | undefined
  /** `read`: it only reads, in a token of an impersonation. Gateways enforce it. */
  access?: 'read' | undefined
  /** What a script added (`issuer/claims`); never one of the others. */
  custom?: Readonly<Record<string, unknown>> | undefined
}

/** The `amr` of a token that a personal access token was exchanged for. */
export const personalAccessTokenAmr = 'pat'

export const cameFromPersonalAccessToken = ({ amr }: VerifiedClaims): boolean =>
  Array.isArray(amr) && amr.includes(personalAccessTokenAmr)

/** 122 random bits. */
export const newTokenId = (): string => randomUUID()

export type MintAccessToken = (claims: AccessTokenClaims) => string

/** As they stand in the token. Members without a value (`sid`, `act`, …) are left out by JSON.stringify. */
export const accessTokenPayload = (
  { clientId, organizationId, sid, act, authTime, acr, access, custom, ...claims }: AccessTokenClaims,
  issuer: string,
): Record<string, unknown> => ({
  // First: whatever has the same name stands.
  ...custom,
  iss: issuer,
  ...claims,
  client_id: clientId,
  organization_id: organizationId,
  sid,
  act,
  auth_time: authTime,
  acr,
  access,
})

/** Signs JWT access tokens of type `at+jwt` (RFC 9068) with the active key. */
export const createAccessTokenMint =
  ({ keys, issuer }: { keys: SigningKeys; issuer: string }): MintAccessToken =>
  (claims) => {
    const { headers, sign } = keys.active()
    const payload = JSON.stringify(accessTokenPayload(claims, issuer))
    const input = `${headers.access}.${Buffer.from(payload).toString('base64url')}`
    return `${input}.${sign(input).toString('base64url')}`
  }

export interface AccessTokenVerifier {
  /** The claims of an access token of this issuer. Throws `JwtError`. `audience` undefined accepts every resource. */
  verify(token: string, options: { audience: readonly string[] | undefined }): Promise<VerifiedClaims>
}

/**
 * Verifies this issuer's own JWT access tokens: those of the Management API's callers and those presented for exchange.
 */
export const createAccessTokenVerifier = ({
  keys,
  issuer,
  now = systemClock,
}: {
  keys: SigningKeys
  issuer: string
  now?: Clock
}): AccessTokenVerifier => ({
  async verify(token, { audience }) {
    const jwt = parseJwt(token)
    const key = await keys.find(jwt.header.kid)
    if (!key) throw new JwtError('unknown_key', 'The token is not signed with a key of this issuer.')
    return verifyJwt(jwt, key, {
      issuer,
      audience,
      algorithms: signingAlgorithmNames,
      typ: ['at+jwt'],
      // Our own clocks: instances whose clocks differ by more have another problem.
      clockSkewSeconds: 5,
      now: now(),
    })
  },
})
