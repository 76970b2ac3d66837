import type { IncomingMessage } from 'node:http'
import { recordEvent } from '../../events/outbox.ts'
import type { Database, Query } from '../../platform/database/database.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import { isImpersonationSid } from '../../platform/jwt/sid.ts'
import type { VerifiedClaims } from '../../platform/jwt/verify.ts'
import type { Logger } from '../../platform/logger.ts'
import { insertLog } from '../base/audit/log-store.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { OAuthError } from '../base/errors/problems.ts'
import type { Recording } from '../base/recording.ts'
import type { AccessTokenVerifier } from '../tokens/access-token.ts'
import { endAuthorizations } from '../tokens/authorizations/end.ts'
import { endSession } from '../tokens/impersonations/impersonation-store.ts'
import { sessionEnded, sessionRevocation } from '../tokens/impersonations/operations.ts'
import { revokeOpaqueToken } from '../tokens/opaque-token-store.ts'
import { type NewRevocation, revoke } from '../tokens/revocations/revocation-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import type { AuthenticatedClient, AuthenticateRequest } from './clients/registered-client.ts'
import { formEndpoint, requiredToken } from './form-endpoint.ts'
import { giveUpRefreshToken, isAuthorizationOf } from './revocation-store.ts'

export interface RevocationDependencies {
  database: Pick<Database, 'transaction'>
  authenticate: AuthenticateRequest
  verifier: AccessTokenVerifier
  /** The publisher of the outbox. */
  events: { wake(): void }
  originOf(request: IncomingMessage): RequestOrigin
  logger: Logger
}

/**
 * `POST /oidc/token/revocation` (RFC 7009): a client gives up a token of its own. A refresh token or an opaque access
 * token takes the authorization along that it came of, with all its tokens; a JWT goes alone. An impersonation session
 * has one token, so it ends with it. What is not a token of this client's is answered 200 all the same, without effect:
 * the answer tells nothing about it. When nothing could be stored: 503, the token still counts.
 */
export const createRevocationEndpoint = (dependencies: RevocationDependencies) => {
  const { database, authenticate, verifier, events, originOf, logger } = dependencies

  const note = (
    query: Query,
    client: AuthenticatedClient,
    origin: RequestOrigin,
    token: { userId: string; sid: string | null | undefined; jti?: string | undefined },
  ) =>
    insertLog(query, {
      key: 'RevokeToken',
      result: 'Success',
      applicationId: client.id,
      userId: token.userId === client.id ? undefined : token.userId,
      payload: { ...origin, tokenId: token.jti, sessionId: token.sid ?? undefined },
    })

  /** Ends the impersonation of the token, if it is of one: the events. The revocations are for the caller to write. */
  const endImpersonation = async (
    query: Query,
    client: AuthenticatedClient,
    origin: RequestOrigin,
    sid: string | null | undefined,
  ): Promise<NewRevocation[]> => {
    const ended = isImpersonationSid(sid) ? await endSession(query, sid, client.id) : []
    for (const session of ended) await recordingOf(query, origin).record(sessionEnded(session))
    return ended.map(sessionRevocation)
  }

  const revokeJwt = async (token: string, client: AuthenticatedClient, origin: RequestOrigin) => {
    const claims = await verifiedClaims(token, verifier)
    if (claims?.jti === undefined || claims.client_id !== client.id) return
    const { jti, sub, sid, exp } = claims
    await database.transaction(async (query) => {
      const ended = await endImpersonation(query, client, origin, sid)
      await note(query, client, origin, { userId: sub, sid, jti })
      await revoke(query, [...ended, { kind: 'jti', value: jti, expiresAt: new Date(exp * 1000) }])
    })
  }

  const revokeOpaque = async (query: Query, token: string, client: AuthenticatedClient, origin: RequestOrigin) => {
    const revoked = await revokeOpaqueToken(query, tokenDigest('opaque-token', token), client.id)
    if (!revoked) return
    const { userId, sessionId: sid } = revoked
    const ended = await endImpersonation(query, client, origin, sid)
    await note(query, client, origin, { userId, sid })
    // What a person's token was exchanged for keeps its `sid`: then the authorization may be another client's.
    const isOwn = sid !== null && (await isAuthorizationOf(query, sid, client.id))
    if (isOwn) await endAuthorizations(recordingOf(query, origin), { ids: [sid] }, 'revoked_by_client', client.id)
    else await revoke(query, ended)
  }

  /** False when it is no refresh token of this client's. */
  const revokeRefresh = async (query: Query, token: string, client: AuthenticatedClient, origin: RequestOrigin) => {
    const given = await giveUpRefreshToken(query, tokenDigest('refresh-token', token), client.id)
    if (!given) return false
    await note(query, client, origin, { userId: given.userId, sid: given.authorizationId })
    const which = { ids: [given.authorizationId] }
    await endAuthorizations(recordingOf(query, origin), which, 'revoked_by_client', client.id)
    return true
  }

  const revokeStored = (token: string, client: AuthenticatedClient, origin: RequestOrigin) =>
    database.transaction(async (query) => {
      if (!(await revokeRefresh(query, token, client, origin))) await revokeOpaque(query, token, client, origin)
    })

  return formEndpoint({ logger, failure: unavailable }, async (request, parameters) => {
    const client = await authenticate(request, parameters)
    const token = requiredToken(parameters)
    await (token.includes('.') ? revokeJwt : revokeStored)(token, client, originOf(request))
    events.wake()
    // Existing SDKs parse the answer.
    return {}
  })
}

// RFC 7009 §2.2: "invalid tokens do not cause an error response".
const verifiedClaims = (token: string, verifier: AccessTokenVerifier): Promise<VerifiedClaims | undefined> =>
  verifier.verify(token, { audience: undefined }).catch((error: unknown) => {
    if (error instanceof JwtError) return undefined
    throw error
  })

// RFC 7009 §2.2.1: with 503 "the client must assume the token still exists and may retry after a reasonable delay".
const unavailable = (cause: unknown) =>
  new OAuthError('temporarily_unavailable', 'The token could not be revoked now; it may still be valid.', {
    headers: { 'Retry-After': '5' },
    cause,
  })

const revocationRequest = {
  method: 'POST',
  path: '/oidc/token/revocation',
  matchedRoute: '/oidc/token/revocation',
  params: {},
  status: 200,
}

const recordingOf = (trx: Query, origin: RequestOrigin): Recording => ({
  trx,
  record: (event) => recordEvent(trx, { ...event, request: { ...revocationRequest, ...origin } }),
})
