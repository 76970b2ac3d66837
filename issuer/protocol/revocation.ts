import type { IncomingMessage } from 'node:http'
import { recordEvent } from '../../events/outbox.ts'
import type { Database, Query } from '../../platform/database/database.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import type { VerifiedClaims } from '../../platform/jwt/verify.ts'
import type { Logger } from '../../platform/logger.ts'
import { insertLog } from '../base/audit/log-store.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { OAuthError } from '../base/errors/problems.ts'
import type { AccessTokenVerifier } from '../tokens/access-token.ts'
import { endSession } from '../tokens/impersonations/impersonation-store.ts'
import { sessionEnded, sessionRevocation } from '../tokens/impersonations/operations.ts'
import { revokeOpaqueToken } from '../tokens/opaque-token-store.ts'
import { type NewRevocation, revoke } from '../tokens/revocations/revocation-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'
import type { AuthenticatedClient, AuthenticateRequest } from './clients/registered-client.ts'
import { formEndpoint, requiredToken } from './form-endpoint.ts'

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
 * `POST /oidc/token/revocation` (RFC 7009): a client gives up an access token of its own, opaque or JWT. An
 * impersonation session has one token, so it ends with it. What is not a token of this client's is answered 200 all the
 * same, without effect: the answer tells nothing about it. When nothing could be stored: 503, the token still counts.
 */
export const createRevocationEndpoint = (dependencies: RevocationDependencies) => {
  const { database, authenticate, verifier, events, originOf, logger } = dependencies

  /** With the session of the token, if it has one: its event, then the revocations (see `revoke`). */
  const record = async (
    query: Query,
    client: AuthenticatedClient,
    origin: RequestOrigin,
    token: { userId: string; sid: string | null | undefined; jti?: string | undefined },
    revocations: readonly NewRevocation[],
  ) => {
    const ended = token.sid ? await endSession(query, token.sid, client.id) : undefined
    if (ended) await recordEvent(query, { ...sessionEnded(ended), request: { ...revocationRequest, ...origin } })
    await insertLog(query, {
      key: 'RevokeToken',
      result: 'Success',
      applicationId: client.id,
      userId: token.userId === client.id ? undefined : token.userId,
      payload: { ...origin, tokenId: token.jti, sessionId: token.sid ?? undefined },
    })
    await revoke(query, [...(ended ? [sessionRevocation(ended)] : []), ...revocations])
  }

  const revokeJwt = async (token: string, client: AuthenticatedClient, origin: RequestOrigin) => {
    const claims = await verifiedClaims(token, verifier)
    if (claims?.jti === undefined || claims.client_id !== client.id) return
    const { jti, sub, sid, exp } = claims
    await database.transaction((query) =>
      record(query, client, origin, { userId: sub, sid, jti }, [
        { kind: 'jti', value: jti, expiresAt: new Date(exp * 1000) },
      ]),
    )
  }

  const revokeOpaque = (token: string, client: AuthenticatedClient, origin: RequestOrigin) =>
    database.transaction(async (query) => {
      const revoked = await revokeOpaqueToken(query, tokenDigest('opaque-token', token), client.id)
      if (revoked) await record(query, client, origin, { userId: revoked.userId, sid: revoked.sessionId }, [])
    })

  return formEndpoint({ logger, failure: unavailable }, async (request, parameters) => {
    const client = await authenticate(request, parameters)
    const token = requiredToken(parameters)
    await (token.includes('.') ? revokeJwt : revokeOpaque)(token, client, originOf(request))
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
