import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Query } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { Limits } from '../../base/rate-limits/rate-limits.ts'
import type { Proofs } from '../../tokens/dpop/proofs.ts'
import { type Endpoint, sendError, sendJson } from '../answers.ts'
import type { AuthenticateClient } from '../clients/authenticate-client.ts'
import { provenKey } from '../clients/proven-key.ts'
import { findTokenRequestFacts } from '../clients/token-request-store.ts'
import { refuseParametersInUrl } from '../requests/parameters.ts'
import { findAuthorizationFacts } from './authorization-facts-store.ts'
import { type AuthorizationParameters, onlyValueOf, readAuthorizationParameters } from './authorization-parameters.ts'
import type { CheckRequest } from './checks.ts'
import { eachOnce } from './each-once.ts'
import { type PushedRequests, pushedRequestTtl } from './pushed-requests.ts'
import { likelyResources, likelyScopes } from './target-checks.ts'

export interface PushedAuthorizationDependencies {
  query: Query
  authenticateClient: AuthenticateClient
  checkRequest: CheckRequest
  pushedRequests: PushedRequests
  limits: Pick<Limits, 'storedRequestFrom'>
  proofs: Pick<Proofs, 'forNewToken'>
  addressOf(request: IncomingMessage): string
  logger: Logger
}

/**
 * `POST /oidc/request` (RFC 9126): a client sends its authorization request ahead, proves who it is as at the token
 * endpoint, and gets a `request_uri` for the browser. What is wrong with the request it is told at once.
 */
export const createPushedAuthorizationEndpoint = (dependencies: PushedAuthorizationDependencies): Endpoint => {
  const { query, authenticateClient, checkRequest, pushedRequests, limits, proofs, addressOf, logger } = dependencies

  const push = async (request: IncomingMessage, response: ServerResponse) => {
    refuseParametersInUrl(request.url ?? '')
    const sent = await readAuthorizationParameters(request)
    const single = eachOnce(sent)
    const proof = proofs.forNewToken(request, response, '/oidc/request')
    const found = { resources: likelyResources(sent), scopes: likelyScopes(sent) }
    let ahead: ReturnType<typeof findAuthorizationFacts> | undefined
    const { client } = await authenticateClient(request, single, (clientId) => {
      // In the same turn as the client's own facts. Should the client be refused, nobody is waiting for it.
      ahead = findAuthorizationFacts(query, { clientId, ...found })
      ahead.catch(() => {})
      return findTokenRequestFacts(query, { clientId, resource: undefined, useDefaultResource: false, scopes: [] })
    })
    await limits.storedRequestFrom?.(addressOf(request))
    // RFC 9126 §2.1
    if (single.has('request_uri')) throw new OAuthError('invalid_request', 'A request_uri cannot be sent ahead.')
    const parameters = boundTo(await provenKey(client, proof), withoutProof(sent, client.id))
    const { client: asking, ...facts } = await ahead!
    // Deleted in between.
    if (!asking) throw new OAuthError('invalid_client', 'Client authentication failed.')
    const checked = await checkRequest({ parameters, client: asking, facts, isPushed: true })
    if ('error' in checked) throw checked.error
    return { request_uri: await pushedRequests.push(client.id, parameters), expires_in: pushedRequestTtl }
  }

  return async (request, response, requestId) => {
    try {
      sendJson(response, 201, await push(request, response))
    } catch (cause) {
      const { error } = sendError(response, cause, logger, requestId)
      logger.debug({ requestId, error }, 'pushed authorization request refused')
    }
  }
}

const proof = new Set(['client_secret', 'client_assertion', 'client_assertion_type'])

/** What is kept: how the client proved itself is not part of it. */
const withoutProof = (parameters: AuthorizationParameters, clientId: string): AuthorizationParameters =>
  new Map([...[...parameters].filter(([name]) => !proof.has(name)), ['client_id', [clientId]]])

/** RFC 9449 §10.1: a proof means what a `dpop_jkt` means; of two keys neither counts. */
const boundTo = (jkt: string | undefined, parameters: AuthorizationParameters): AuthorizationParameters => {
  if (jkt === undefined) return parameters
  const named = onlyValueOf(parameters, 'dpop_jkt')
  if (named !== undefined && named !== jkt)
    throw new OAuthError('invalid_request', 'The dpop_jkt is of another key than the DPoP proof.')
  return new Map([...parameters, ['dpop_jkt', [jkt]]])
}
