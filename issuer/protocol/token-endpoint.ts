import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../platform/clock.ts'
import type { Database } from '../../platform/database/database.ts'
import { JwtError } from '../../platform/jwt/jwt-error.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { RequestOrigin } from '../base/client-address.ts'
import { OAuthError } from '../base/errors/problems.ts'
import type { Limits } from '../base/rate-limits/rate-limits.ts'
import type { MintAccessToken } from '../tokens/access-token.ts'
import type { Proofs } from '../tokens/dpop/proofs.ts'
import type { MintIdToken } from '../tokens/id-token.ts'
import { issueTime } from '../tokens/revocations/issue-time.ts'
import { sendError, sendJson } from './answers.ts'
import type { AuthenticateClient } from './clients/authenticate-client.ts'
import { provenKeyOfToken } from './clients/proven-key.ts'
import { findTokenRequestFacts } from './clients/token-request-store.ts'
import type { PreparedToken, Redeemed, RequestedTarget, TokenRequest } from './grants/grant.ts'
import type { Grants } from './grants.ts'
import { type Parameters, parseParameters, refuseParametersInUrl } from './requests/parameters.ts'
import { readBody } from './requests/request-body.ts'
import { organizationsResource } from './requests/resource.ts'
import { isOidcOnly, parseScope } from './requests/scope.ts'
import { targetOf } from './target.ts'

export interface TokenEndpointDependencies {
  database: Pick<Database, 'query' | 'transaction'>
  grants: Grants
  authenticateClient: AuthenticateClient
  limits: Pick<Limits, 'tokenRequestFrom' | 'tokenRequestBy'>
  proofs: Pick<Proofs, 'forNewToken'>
  mint: MintAccessToken
  mintIdToken: MintIdToken
  originOf(request: IncomingMessage): RequestOrigin
  now: Clock
  logger: Logger
  metrics: Metrics
}

/** `POST /oidc/token`: parse → authenticate the client → its grant → prepare → sign → redeem → 200. */
export const createTokenEndpoint = (dependencies: TokenEndpointDependencies) => {
  const { database, grants, authenticateClient, limits, proofs, mint, mintIdToken, originOf, now, logger, metrics } =
    dependencies
  const counter = metrics.counter('surrogate_token_requests_total', 'Token requests by grant and outcome.', [
    'grant',
    'outcome',
  ])

  const issue = async (request: IncomingMessage, response: ServerResponse, progress: { grant: string }) => {
    refuseParametersInUrl(request.url ?? '')
    const parameters = parseParameters(await readBody(request), request.headers['content-type'])
    const origin = originOf(request)
    await limits.tokenRequestFrom?.(origin.ip)
    // Before the client uses up what proves it: with another nonce it comes again.
    const proof = proofs.forNewToken(request, response, '/oidc/token')
    const scopes = parseScope(parameters.get('scope'))
    const organizationId = parameters.get('organization_id')
    const resource = resourceOf(parameters)
    const asked: RequestedTarget = {
      resource,
      useDefaultResource: organizationId === undefined && !isOidcOnly(scopes),
      scopes,
    }
    const wanted = readGrant(parameters)
    let ahead: Promise<unknown> | undefined
    const facts = await authenticateClient(request, parameters, (clientId) => {
      // In the same turn as the client's own facts. Should it fail, and the client be refused, nobody is waiting for
      // it.
      if (!wanted.refusal) ahead = wanted.grant?.readAhead?.(wanted.input, asked)
      ahead?.catch(() => {})
      return findTokenRequestFacts(database.query, { clientId, ...asked })
    })
    const { client } = facts
    await limits.tokenRequestBy?.(client.id)
    const { grantType, grant } = requireGrant(wanted)
    progress.grant = grantType
    if (!grant.allows(client)) {
      grant.forbidden?.(client, origin)
      throw new OAuthError('unauthorized_client', 'This client may not use this grant.')
    }
    if (wanted.refusal) throw wanted.refusal
    const jkt = await provenKeyOfToken(client, proof)
    const tokenRequest: TokenRequest = {
      ...asked,
      client,
      clientScopes: facts.clientScopes,
      claimsScripts: facts.claimsScripts,
      organizationId,
      target: targetOf(
        database.query,
        { requested: resource, scopes, organizationId },
        facts,
      ) as TokenRequest['target'],
      origin,
      jkt,
      now: issueTime(now(), facts.clientRevokedUntil),
    }
    const prepared = await grant.prepare(wanted.input, tokenRequest, ahead)
    // Signed first: what `redeem` uses up is never lost to a failure of ours.
    const signed = sign(prepared, jkt)
    const redeemed = await grant.redeem?.(database, prepared)
    grant.issued?.(prepared, tokenRequest)
    return answerOf(prepared, { ...signed, tokenType: jkt === undefined ? 'Bearer' : 'DPoP' }, redeemed ?? {})
  }

  /** The requested resource. Undefined for the organizations resource when the request also names an organization. */
  const resourceOf = (parameters: Parameters): string | undefined => {
    const resource = parameters.get('resource')
    return resource === organizationsResource && parameters.has('organization_id') ? undefined : resource
  }

  /**
   * The grant that is asked for, with its own parameters. What is wrong with them is told once it is known who asks.
   */
  const readGrant = (parameters: Parameters) => {
    const grantType = parameters.get('grant_type')
    const grant = grantType === undefined ? undefined : grants.get(grantType)
    try {
      return { grantType, grant, input: grant?.read(parameters) }
    } catch (refusal) {
      return { grantType, grant, refusal }
    }
  }

  const requireGrant = ({ grantType, grant }: ReturnType<typeof readGrant>) => {
    if (grantType === undefined) throw new OAuthError('invalid_request', 'Missing required parameter: grant_type.')
    if (!grant) throw new OAuthError('unsupported_grant_type', 'This grant type is not supported.')
    return { grantType, grant }
  }

  const sign = ({ token, idToken }: PreparedToken, jkt: string | undefined) => ({
    accessToken:
      'claims' in token ? mint({ ...token.claims, cnf: jkt === undefined ? undefined : { jkt } }) : token.opaque,
    idToken: idToken && mintIdToken(idToken.claims, idToken.algorithm),
  })

  // Members without a value are left out by JSON.stringify.
  const answerOf = (
    prepared: PreparedToken,
    { accessToken, tokenType, idToken }: ReturnType<typeof sign> & { tokenType: 'Bearer' | 'DPoP' },
    { refreshToken }: Redeemed,
  ) => ({
    access_token: accessToken,
    issued_token_type: prepared.issuedTokenType,
    token_type: tokenType,
    expires_in: prepared.expiresIn,
    refresh_token: refreshToken,
    id_token: idToken,
    scope: prepared.scope,
  })

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
