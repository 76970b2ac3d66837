import type { IncomingMessage, ServerResponse } from 'node:http'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import type { Limits } from '../base/rate-limits/rate-limits.ts'
import type { Proofs } from '../tokens/dpop/proofs.ts'
import { sendError, sendJson } from './answers.ts'
import type { AuthenticateClient } from './clients/authenticate-client.ts'
import type { IssuedTokens, IssueTokens } from './issue-tokens.ts'
import { parseParameters, refuseParametersInUrl } from './requests/parameters.ts'
import { readBody } from './requests/request-body.ts'

export interface TokenEndpointDependencies {
  issueTokens: IssueTokens
  authenticateClient: AuthenticateClient
  limits: Pick<Limits, 'tokenRequestFrom' | 'tokenRequestBy'>
  proofs: Pick<Proofs, 'forNewToken'>
  originOf(request: IncomingMessage): RequestOrigin
  logger: Logger
  metrics: Metrics
}

/** `POST /oidc/token`: parse → limit → issue (`issue-tokens.ts`) → 200. */
export const createTokenEndpoint = (dependencies: TokenEndpointDependencies) => {
  const { issueTokens, authenticateClient, limits, proofs, originOf, logger, metrics } = dependencies
  const counter = metrics.counter('surrogate_token_requests_total', 'Token requests by grant and outcome.', [
    'grant',
    'outcome',
  ])

  const issue = async (
    request: IncomingMessage,
    response: ServerResponse,
    progress: { grant: string },
  ): Promise<IssuedTokens> => {
    refuseParametersInUrl(request.url ?? '')
    const parameters = parseParameters(await readBody(request), request.headers['content-type'])
    const origin = originOf(request)
    await limits.tokenRequestFrom?.(origin.ip)
    return issueTokens({
      parameters,
      origin,
      // Before the client uses up what proves it: with another nonce it comes again.
      proof: proofs.forNewToken(request, response, '/oidc/token'),
      async authenticate(find) {
        const facts = await authenticateClient(request, parameters, find)
        await limits.tokenRequestBy?.(facts.client.id)
        return facts
      },
      onGrant(grantType) {
        progress.grant = grantType
      },
    })
  }

  return async (request: IncomingMessage, response: ServerResponse, requestId: string): Promise<void> => {
    const progress = { grant: 'none' }
    try {
      sendJson(response, 200, await issue(request, response, progress))
      counter.inc({ grant: progress.grant, outcome: 'issued' })
      logger.debug({ requestId, grant: progress.grant }, 'token issued')
    } catch (cause) {
      const { error, reason, cause: inner } = sendError(response, cause, logger, requestId)
      counter.inc({ grant: progress.grant, outcome: error })
      // What the client is not told: why its assertion was refused.
      const because = inner instanceof JwtError ? inner.message : undefined
      logger.debug({ requestId, grant: progress.grant, error, reason, because }, 'token request refused')
    }
  }
}
