import type { IncomingMessage, ServerResponse } from 'node:http'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import { AppError } from '../../platform/problem.ts'
import { OAuthError, problem } from '../base/errors/problems.ts'
import type { Caller } from '../base/route.ts'
import { fitsScheme } from '../tokens/dpop/confirmation.ts'
import { dpopChallenge, type Proof, type Proofs } from '../tokens/dpop/proofs.ts'

/** The claims of an access token of this issuer, as far as the Management API reads them. */
export interface ManagementClaims {
  sub?: string | undefined
  client_id?: string | undefined
  scope?: string | undefined
  aud?: string | readonly string[] | undefined
  cnf?: unknown
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
  /** For tokens that are bound to a key (RFC 9449). */
  proofs: Pick<Proofs, 'forToken'>
}

// RFC 6750 §2.1, RFC 9449 §7.1: the scheme is case-insensitive (RFC 9110 §11.1), the token is b64token.
const presented = /^(bearer|dpop) +([\w\-.~+/]+=*)$/i
const challenge = { 'WWW-Authenticate': 'Bearer' }
const invalidToken = { 'WWW-Authenticate': 'Bearer error="invalid_token"' }

const isRefusal = (error: unknown) =>
  error instanceof JwtError || ((error instanceof AppError || error instanceof OAuthError) && error.status < 500)

const intended = ({ aud }: ManagementClaims, indicators: readonly string[]) =>
  (typeof aud === 'string' ? [aud] : (aud ?? [])).some((audience) => indicators.includes(audience))

/** The request as it came: within a router its `url` is shorter. */
type ApiRequest = IncomingMessage & { originalUrl: string }

/** From the `Authorization` header to the caller; every failure is 401. */
export const createAuthenticate = ({ verify, indicators, proofs }: AuthenticateOptions) => {
  /** Undefined: the token is sent as a bearer token. */
  const proofOf = (request: ApiRequest, response: ServerResponse, scheme: string, token: string): Proof | undefined => {
    if (scheme.toLowerCase() !== 'dpop') return undefined
    return asProblem(() => proofs.forToken(request, response, request.originalUrl.split('?', 1)[0]!, token))
  }

  return async (request: ApiRequest, response: ServerResponse): Promise<Caller> => {
    const { authorization: header } = request.headers
    if (header === undefined) throw problem('auth.authorization_header_missing', { headers: challenge })
    if (!/^(bearer|dpop)( |$)/i.test(header)) {
      throw problem('auth.authorization_token_type_not_supported', {
        detail: 'Use "Authorization: Bearer <access token>".',
        headers: challenge,
      })
    }
    const [, scheme = '', token] = presented.exec(header) ?? []
    if (token === undefined) throw problem('auth.unauthorized', { headers: invalidToken })
    const proof = proofOf(request, response, scheme, token)
    const claims = await verify(token).catch((cause: unknown) => {
      if (!isRefusal(cause)) throw cause
      throw problem('auth.unauthorized', { headers: invalidToken, cause })
    })
    if (!intended(claims, indicators)) {
      throw problem('auth.unauthorized', {
        detail: 'The access token is for another audience.',
        headers: invalidToken,
      })
    }
    // RFC 9449 §7.1: a token that is bound to a key is no bearer token, and the other way round.
    if (!fitsScheme(claims.cnf, proof?.thumbprint)) {
      throw problem('auth.unauthorized', {
        detail: 'The access token is bound to another key than the request proves, or to none.',
        headers: { 'WWW-Authenticate': `${dpopChallenge}, error="invalid_token"` },
      })
    }
    if (!claims.sub) throw problem('auth.jwt_sub_missing', { headers: invalidToken })
    await proof?.use().catch(refuseAsProblem)
    return {
      subject: claims.sub,
      clientId: claims.client_id ?? claims.sub,
      scopes: new Set(claims.scope?.split(' ').filter(Boolean)),
    }
  }
}

const asProblem = <Result>(read: () => Result): Result => {
  try {
    return read()
  } catch (error) {
    return refuseAsProblem(error)
  }
}

/** What is wrong with a proof, in the words of this API. */
const refuseAsProblem = (error: unknown): never => {
  if (!(error instanceof OAuthError)) throw error
  throw problem('auth.unauthorized', { detail: error.message, headers: error.headers })
}
