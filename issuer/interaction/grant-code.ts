import type { Query } from '../../platform/database/database.ts'
import { type GrantedCode, insertAuthorization } from '../tokens/authorizations/authorization-store.ts'
import type { Consent } from '../tokens/consents/consent.ts'
import { newSignInSid } from '../tokens/sid.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { grantsOfflineAccess, scopesToGrant } from './consent.ts'

const daySeconds = 86_400

/** `code` is good for a request that nothing is missing for. False when the session has ended meanwhile. */
export const grantCode = async (
  query: Query,
  {
    code,
    request,
    client,
    consent,
    session,
  }: {
    code: GrantedCode
    request: AuthorizationRequest
    client: AuthorizationClient
    /** That there was before. */
    consent: Consent | undefined
    session: { id: string; userId: string }
  },
): Promise<boolean> => {
  const question = { request, client, consent }
  return insertAuthorization(query, {
    id: newSignInSid(),
    sessionId: session.id,
    userId: session.userId,
    clientId: client.id,
    scopes: scopesToGrant(question),
    resources: request.resources,
    organizationId: request.organizationId,
    isOffline: grantsOfflineAccess(question),
    refreshTtl: client.refreshTokenTtlInDays * daySeconds,
    code,
    redirectUri: request.redirectUri,
    codeChallenge: request.codeChallenge,
    nonce: request.nonce,
    jkt: request.dpopJkt,
  })
}
