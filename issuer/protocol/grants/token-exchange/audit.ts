import type { AuditEntry } from '../../../base/audit/log-store.ts'
import type { RequestOrigin } from '../../../base/client-address.ts'
import type { OAuthError } from '../../../base/errors/problems.ts'
import { grantTypes } from '../../../tokens/grant-types.ts'
import { type Client, isPublic } from '../../clients/client.ts'
import { secretOf } from '../audited-secret.ts'
import type { TokenRequest } from '../grant.ts'
import type { Actor } from './actor.ts'
import type { ExchangeFacts } from './exchange-facts-store.ts'
import type { ExchangeRequest } from './request.ts'

/** An exchange as far as it came: what is known of it when it is refused. */
export interface ExchangeSoFar {
  input: ExchangeRequest
  request: TokenRequest
  facts?: ExchangeFacts
  actor?: Actor | undefined
}

const key = 'ExchangeTokenBy.TokenExchange'

/** Who acts as whom, through which client, on whose request. Never the tokens themselves. */
const entryOf = (
  { input, request, facts, actor }: ExchangeSoFar,
  result: AuditEntry['result'],
  particulars: Record<string, unknown>,
): AuditEntry => ({
  key,
  result,
  applicationId: request.client.id,
  userId: facts?.subjectId ?? undefined,
  payload: {
    ...request.origin,
    params: {
      grant_type: grantTypes.tokenExchange,
      subject_token_type: input.subjectTokenType,
      resource: request.resource,
      organization_id: request.organizationId,
      scope: request.scopes.join(' '),
    },
    actorId: actor?.id ?? facts?.actorId ?? undefined,
    creatorId: facts?.creatorId ?? undefined,
    personalAccessToken: facts?.personalAccessToken?.name,
    ...secretOf(request.client),
    ...particulars,
  },
})

export const issuedEntry = (
  attempt: ExchangeSoFar,
  issued: { scope: string; tokenId: string; sessionId: string | undefined },
): AuditEntry => entryOf(attempt, 'Success', issued)

/**
 * The row of a refused exchange: there is no session then, so it also says why the subject token had been asked for.
 * Undefined for what anybody can send without knowing anything, a public client's id and nonsense: such rows would only
 * bury the others.
 */
export const refusedEntry = (attempt: ExchangeSoFar, error: OAuthError): AuditEntry | undefined => {
  const { request, facts } = attempt
  if (isPublic(request.client) && !facts?.subjectId) return undefined
  return entryOf(attempt, 'Error', {
    error: { code: error.error, reason: error.reason, message: error.message },
    reason: facts?.reason ?? undefined,
    ticket: facts?.ticket ?? undefined,
  })
}

/** A client that may not exchange tried to. */
export const forbiddenEntry = (client: Client, origin: RequestOrigin): AuditEntry => ({
  key,
  result: 'Error',
  applicationId: client.id,
  payload: { ...origin, params: { grant_type: grantTypes.tokenExchange }, error: { code: 'unauthorized_client' } },
})
