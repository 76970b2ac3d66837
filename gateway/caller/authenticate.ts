import type { Clock } from '../../platform/clock.ts'
import { type JwksClient, KeysUnavailable } from '../../platform/jwt/jwks-client.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import type { VerificationKey } from '../../platform/jwt/keys.ts'
import { type ParsedJwt, parseJwt } from '../../platform/jwt/parse.ts'
import { verifyJwt } from '../../platform/jwt/verify.ts'
import type { AppError } from '../../platform/problem.ts'
import { PolicyError } from '../../policies/decide.ts'
import type { Route } from '../config/route.ts'
import { invalidToken } from '../refusals/challenges.ts'
import { problem } from '../refusals/problems.ts'
import { principalOf } from '../request/principal.ts'
import type { RoutedRequest, Stage } from '../request/request-context.ts'
import { accessTokenOf } from './access-token.ts'
import { tokenKey, type VerifiedTokenCache } from './verified-token-cache.ts'

/** An issuer whose tokens are accepted, and the keys that only its tokens are verified with. */
export interface TrustedIssuer {
  readonly issuer: string
  readonly keys: JwksClient
  readonly algorithms: readonly string[]
  readonly typ: readonly string[]
  readonly clockSkewSeconds: number
}

export interface AuthenticateParts {
  issuers: readonly TrustedIssuer[]
  cache: VerifiedTokenCache
  now: Clock
}

const notAccepted = 'The token is from an issuer that is not accepted here.'

/**
 * Who is asking: 401 without a good token for this route, 503 when the issuer's keys cannot be had. A token that was
 * verified before costs a hash and a look-up; its issuer and audience are compared on every request, since routes
 * differ in theirs.
 */
export const createAuthenticate = (options: AuthenticateParts): Stage<RoutedRequest> => {
  const { cache, now } = options
  const issuers = new Map(options.issuers.map((issuer) => [issuer.issuer, issuer]))

  /** Reads what the token says of itself, as far as that decides which key it must be signed with. */
  const readUnverified = (token: string, route: Route): { jwt: ParsedJwt; issuer: TrustedIssuer; kid: string } => {
    const jwt = parseJwt(token)
    const issuer = issuers.get(jwt.claims['iss'] as string)
    // Another one that is trusted elsewhere does not vouch for this route, and is not asked for keys.
    if (!issuer || !route.issuers.includes(issuer.issuer)) throw new JwtError('issuer', notAccepted)
    const { alg, kid } = jwt.header
    // Before the key is asked for: a token that cannot be good must not cause a fetch.
    if (!issuer.algorithms.includes(alg)) {
      throw new JwtError('algorithm', 'The token is signed with an algorithm that is not accepted.')
    }
    if (kid === undefined) throw new JwtError('unknown_key', 'The token does not name its key.')
    return { jwt, issuer, kid }
  }

  /** At once when the key is in memory, which it is but for the first token of a new one. */
  const verifyUncached = (context: RoutedRequest, token: string, cacheKey: string): void | Promise<void> => {
    const accept = (jwt: ParsedJwt, issuer: TrustedIssuer, key: VerificationKey | undefined): void => {
      if (!key) throw new JwtError('unknown_key', 'The token is signed with a key that its issuer does not publish.')
      const { issuer: iss, keys, algorithms, typ, clockSkewSeconds } = issuer
      const { audience } = context.route
      const principal = principalOf(
        verifyJwt(jwt, key, { issuer: iss, audience, algorithms, typ, clockSkewSeconds, now: now() }),
      )
      const expiresAt = principal.claims.exp * 1000
      cache.set(cacheKey, { principal, keys, generation: keys.generation, expiresAt, size: token.length })
      context.principal = principal
    }
    try {
      const { jwt, issuer, kid } = readUnverified(token, context.route)
      const key = issuer.keys.peek(kid)
      if (key) return accept(jwt, issuer, key)
      return issuer.keys
        .get(kid)
        .then((found) => accept(jwt, issuer, found))
        .catch((error: unknown) => {
          throw refusal(error)
        })
    } catch (error) {
      throw refusal(error)
    }
  }

  return (context) => {
    const route = context.route
    if (route.auth === 'none') return
    const { token } = accessTokenOf(context.headers.authorization, route)
    const key = tokenKey(token)
    const principal = cache.get(key, now().getTime())
    if (!principal) return verifyUncached(context, token, key)
    if (!route.issuers.includes(principal.claims.iss)) throw invalidToken(notAccepted)
    if (!principal.audience.some((one) => route.audience.includes(one))) {
      throw invalidToken('The token is for another audience.')
    }
    context.principal = principal
  }
}

/** Of a key that may be brand-new: not 401, which would tell the client that its token is bad. */
const keysUnavailable = (cause: KeysUnavailable): AppError => {
  const { retryAfterMs } = cause
  if (retryAfterMs === undefined) return problem('keys_unavailable', { cause })
  return problem('keys_unavailable', {
    detail: 'The token is signed with a key that is not known yet.',
    headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1000))) },
  })
}

const refusal = (error: unknown): AppError => {
  if (error instanceof JwtError) return invalidToken(error.message)
  if (error instanceof PolicyError) return invalidToken('The token holds a claim that cannot be read.')
  if (error instanceof KeysUnavailable) return keysUnavailable(error)
  return problem('server.error', { cause: error })
}
