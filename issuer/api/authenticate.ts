import { type Clock, systemClock, toSeconds } from '../../platform/clock.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import { AppError } from '../../platform/problem.ts'
import { freshProofSeconds } from '../base/authorization.ts'
import { consoleClientId } from '../base/console-roles.ts'
import { OAuthError, problem } from '../base/errors/problems.ts'
import type { Caller, CallingPerson } from '../base/route.ts'
import { fitsScheme } from '../tokens/dpop/confirmation.ts'
import { invalidToken, type PresentedToken } from '../tokens/dpop/presented-token.ts'
import { dpopChallenge } from '../tokens/dpop/proofs.ts'

/** The claims of an access token of this issuer, as far as the Management API reads them. */
export interface ManagementClaims {
  sub?: string | undefined
  client_id?: string | undefined
  scope?: string | undefined
  aud?: string | readonly string[] | undefined
  cnf?: unknown
  sid?: string | undefined
  auth_time?: unknown
}

/**
 * Verifies signature, `iss`, `exp` and `typ`. Rejects with `JwtError`, or `AppError`/`OAuthError` of status 4xx, when
 * the token is not valid; anything else is our fault.
 */
export type VerifyManagementToken = (token: string) => Promise<ManagementClaims>

export interface AuthenticateOptions {
  verify: VerifyManagementToken
  /** The indicators of the Management API resource; one of them must be in `aud`. */
  indicators: readonly string[]
  now?: Clock
}

const isRefusal = (error: unknown) =>
  error instanceof JwtError || ((error instanceof AppError || error instanceof OAuthError) && error.status < 500)

const intended = ({ aud }: ManagementClaims, indicators: readonly string[]) =>
  (typeof aud === 'string' ? [aud] : (aud ?? [])).some((audience) => indicators.includes(audience))

/** Without a time nobody has proven anything lately. */
const personOf = (userId: string, { sid, auth_time: authTime }: ManagementClaims, now: Date): CallingPerson => ({
  userId,
  sid,
  isFresh: typeof authTime === 'number' && toSeconds(now) - authTime <= freshProofSeconds,
})

/** From an access token to the caller; every failure is 401. */
export const createAuthenticate = ({ verify, indicators, now = systemClock }: AuthenticateOptions) => {
  const claimsOf = async (token: string): Promise<ManagementClaims> => {
    const claims = await verify(token).catch((cause: unknown) => {
      if (!isRefusal(cause)) throw cause
      throw problem('auth.unauthorized', { headers: invalidToken, cause })
    })
    if (intended(claims, indicators)) return claims
    throw problem('auth.unauthorized', { detail: 'The access token is for another audience.', headers: invalidToken })
  }

  return async ({ token, proof }: PresentedToken): Promise<Caller> => {
    const claims = await claimsOf(token)
    // RFC 9449 §7.1: a token that is bound to a key is no bearer token, and the other way round.
    if (!fitsScheme(claims.cnf, proof?.thumbprint)) {
      throw problem('auth.unauthorized', {
        detail: 'The access token is bound to another key than the request proves, or to none.',
        headers: { 'WWW-Authenticate': `${dpopChallenge}, error="invalid_token"` },
      })
    }
    if (!claims.sub) throw problem('auth.jwt_sub_missing', { headers: invalidToken })
    await proof?.use()
    return {
      subject: claims.sub,
      clientId: claims.client_id ?? claims.sub,
      scopes: scopesOf(claims),
      scopesNow: async () => scopesOf(await claimsOf(token)),
      ...(claims.client_id === consoleClientId && { person: personOf(claims.sub, claims, now()) }),
    }
  }
}

const scopesOf = ({ scope }: ManagementClaims) => new Set(scope?.split(' ').filter(Boolean))
