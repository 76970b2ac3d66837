import type { Query } from '../../../platform/database/database.ts'
import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { isImpersonationSid } from '../../../platform/jwt/sid.ts'
import type { RequestOrigin } from '../../base/client-address.ts'
import { problem } from '../../base/errors/problems.ts'
import type { AccessTokenVerifier } from '../../tokens/access-token.ts'
import { invalidToken, type PresentedToken } from '../../tokens/dpop/presented-token.ts'
import { findOpaqueToken } from '../../tokens/revocations/active-token-store.ts'
import { tokenDigest } from '../../tokens/token-digest.ts'
import type { AccountPerson } from '../person.ts'
import { findTokenAuthorization } from '../person-store.ts'

/** As far as the check reads a request. */
export interface AccountRequest {
  presented: PresentedToken
  headers: { 'accept-language'?: string | undefined; [name: string]: unknown }
  origin: RequestOrigin
}

/** From a request to who has signed in. */
export type AuthenticateAccount = (request: AccountRequest) => Promise<AccountPerson>

const unauthorized = (cause?: unknown) => problem('auth.unauthorized', { headers: invalidToken, cause })

/**
 * Opaque access tokens with `openid` that a first-party application got when the person signed in. Throws 401 for a
 * token that does not count, and for a JWT, which is for the API that it names; 403 for tokens of third parties, of
 * exchanges, without `openid`; 403 `impersonation.not_allowed` for those of somebody who acts for the person.
 */
export const createAuthenticateAccount = ({
  query,
  verifier,
}: {
  query: Query
  verifier: AccessTokenVerifier
}): AuthenticateAccount => {
  const refuseJwt = async (token: string): Promise<never> => {
    const claims = await verifier.verify(token, { audience: undefined }).catch((error: unknown) => {
      if (error instanceof JwtError) throw unauthorized(error)
      throw error
    })
    throw claims['act'] !== undefined || isImpersonationSid(claims.sid)
      ? problem('impersonation.not_allowed')
      : unauthorized()
  }

  return async ({ presented: { token, proof }, headers, origin }) => {
    if (token.includes('.')) return refuseJwt(token)
    const digest = tokenDigest('opaque-token', token)
    const found = await findOpaqueToken(query, digest, proof?.thumbprint)
    if (!found) throw unauthorized()
    if (found.act !== null || isImpersonationSid(found.sessionId)) throw problem('impersonation.not_allowed')
    const authorization = await findTokenAuthorization(query, digest)
    const scopes = new Set(found.scope.split(' '))
    if (!authorization || found.sessionId === null || authorization.isExchanged || authorization.isThirdParty)
      throw problem('auth.forbidden')
    if (!scopes.has('openid')) {
      const challenge = 'Bearer error="insufficient_scope", scope="openid"'
      throw problem('auth.forbidden', { headers: { 'WWW-Authenticate': challenge } })
    }
    await proof?.use()
    const { sessionId, amr, acr, authTime } = authorization
    const verificationId = headers['logto-verification-id']
    return {
      ...{ userId: found.userId, sessionId, sid: found.sessionId, clientId: found.clientId, scopes },
      ...{ amr, acr, authTime, ...origin },
      acceptLanguage: headers['accept-language'],
      ...(typeof verificationId === 'string' && { verificationId: verificationId.slice(0, 64) }),
    }
  }
}
