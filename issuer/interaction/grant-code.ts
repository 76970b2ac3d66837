import type { Query } from '../../platform/database/database.ts'
import { randomToken } from '../../platform/ids.ts'
import { insertAuthorization } from '../tokens/authorizations/authorization-store.ts'
import type { Consent } from '../tokens/consents/consent.ts'
import { newSignInSid } from '../tokens/sid.ts'
import type { AuthorizationClient } from './authorization-client.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { grantsOfflineAccess, scopesToGrant } from './consent.ts'

const daySeconds = 86_400

/** The code for a request that nothing is missing for. Undefined when the session has ended meanwhile. */
export const grantCode = async (
  query: Query,
  {
    request,
    client,
    consent,
    session,
  }: {
    request: AuthorizationRequest
    client: AuthorizationClient
    /** That there was before. */
    consent: Consent | undefined
    session: { id: string; userId: string }
  },
): Promise<string | undefined> => {
  const code = randomToken()
  const question = { request, client, consent }
  const isMade = await insertAuthorization(query, {
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
  })
  return isMade ? code : undefined
}
