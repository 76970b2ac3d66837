import type { Query } from '../../platform/database/database.ts'
import { issueTime } from '../tokens/revocations/issue-time.ts'
import type { TokenRequestFacts } from './clients/token-request-store.ts'
import type { RequestedTarget, TokenRequest } from './grants/grant.ts'
import { targetOf } from './target.ts'

/** What a grant gets of a request, once it is known who asks. */
export const tokenRequestOf = (
  query: Query,
  asked: RequestedTarget & Pick<TokenRequest, 'organizationId' | 'origin' | 'jkt' | 'now'>,
  facts: TokenRequestFacts,
): TokenRequest => {
  const { resource, scopes, organizationId, now } = asked
  return {
    ...asked,
    client: facts.client,
    clientScopes: facts.clientScopes,
    claimsScripts: facts.claimsScripts,
    target: targetOf(query, { requested: resource, scopes, organizationId }, facts) as TokenRequest['target'],
    now: issueTime(now, facts.clientRevokedUntil),
  }
}
