import { toSeconds } from '../../../../platform/clock.ts'
import { newId, randomToken } from '../../../../platform/ids.ts'
import type { AuditEntry } from '../../../base/audit/log-store.ts'
import type { CustomClaims } from '../../../claims/claims.ts'
import { idTokenClaims } from '../../../directory/users/userinfo-claims.ts'
import { newTokenId } from '../../../tokens/access-token.ts'
import type { GrantType } from '../../../tokens/grant-types.ts'
import { parseIdTokenSettings } from '../../../tokens/id-tokens/id-token-settings-store.ts'
import { issueTime } from '../../../tokens/revocations/issue-time.ts'
import { tokenDigest } from '../../../tokens/token-digest.ts'
import type { PreparedToken, TokenRequest } from '../grant.ts'
import { type Attempt, issuedEntry } from './audit.ts'
import type { AuthorizationFacts } from './authorization-facts-store.ts'
import { refused } from './refusal.ts'
import { oidcScopes, type Target } from './target.ts'

/** The tokens of an authorization, and what is written when they are issued. */
export interface PreparedIssue extends PreparedToken {
  issue: {
    authorizationId: string
    userId: string
    clientId: string
    /** A token to store, by its digest. */
    opaque: { digest: Buffer; scope: string; expiresAt: Date } | undefined
    /** Of the key that its tokens are bound to. */
    jkt: string | undefined
    log: { id: string; entry: AuditEntry }
  }
}

/** Of an opaque token, in seconds; with an audience, that says. */
const opaqueTokenTtl = 3600

/** Throws what a script of custom claims throws. */
export const planTokens = async (
  claims: CustomClaims,
  attempt: Attempt & { facts: AuthorizationFacts },
  { target, inForce, nonce }: { target: Target; inForce: readonly string[]; nonce: string | undefined },
): Promise<PreparedIssue> => {
  const { request, facts, grantType } = attempt
  const { audience, scopes } = target
  const iat = toSeconds(issueTime(request.now, facts.userRevokedUntil))
  const exp = Math.min(iat + (audience?.accessTokenTtl ?? opaqueTokenTtl), latestExpiry(facts))
  if (exp <= iat) throw refused('session_ended')
  const jti = newTokenId()
  const scope = scopes.join(' ')
  const { authorizationId: sid, userId: sub, authTime, acr } = facts
  const clientId = request.client.id
  const { organizationId } = request
  const said = { jti, sub, clientId, scope, iat, exp, organizationId, sid }
  const custom = await claims.of(request.claimsScripts, () => scripted(said, audience?.indicator, grantType, facts))
  const token: PreparedToken['token'] = audience
    ? { claims: { ...said, aud: audience.indicator, authTime, acr, ...(custom && { custom }) } }
    : { opaque: randomToken() }

  return {
    token,
    scope,
    expiresIn: exp - iat,
    idToken: idTokenOf(request, facts, {
      scopes: oidcScopes(inForce, facts, request.client.isThirdParty),
      iat,
      nonce,
    }),
    issue: {
      authorizationId: sid,
      userId: sub,
      clientId,
      opaque:
        'opaque' in token
          ? { digest: tokenDigest('opaque-token', token.opaque), scope, expiresAt: new Date(exp * 1000) }
          : undefined,
      jkt: request.jkt,
      log: { id: newId(), entry: issuedEntry(attempt, { scope, tokenId: jti }) },
    },
  }
}

/** Without offline access no token outlives the session. */
const latestExpiry = ({ isOffline, sessionExpiresAt }: AuthorizationFacts): number =>
  isOffline ? Number.POSITIVE_INFINITY : (sessionExpiresAt ?? 0)

const scripted = <Said extends object>(
  said: Said,
  aud: string | undefined,
  gty: GrantType,
  { interaction }: AuthorizationFacts,
) => ({ kind: 'access-token' as const, ...said, aud, gty, interaction })

const idTokenOf = (
  { client }: TokenRequest,
  { user, idTokenSettings, authorizationId, authTime, amr, acr }: AuthorizationFacts,
  { scopes, iat, nonce }: { scopes: readonly string[]; iat: number; nonce: string | undefined },
): PreparedToken['idToken'] =>
  user && scopes.includes('openid')
    ? {
        algorithm: client.idTokenSignedResponseAlg,
        claims: {
          sub: user.id,
          clientId: client.id,
          iat,
          exp: iat + client.idTokenTtl,
          authTime,
          amr,
          acr,
          sid: authorizationId,
          nonce,
          about: idTokenClaims(user, scopes, parseIdTokenSettings(idTokenSettings).enabledExtendedClaims),
        },
      }
    : undefined
