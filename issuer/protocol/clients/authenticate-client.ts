import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../../platform/clock.ts'
import type { Query } from '../../../platform/database/database.ts'
import { OAuthError } from '../../base/errors/problems.ts'
import type { Limits } from '../../base/rate-limits/rate-limits.ts'
import type { Parameters } from '../requests/parameters.ts'
import { useAssertion } from './client-assertion-store.ts'
import { type ClientCredentials, checkClient, invalidClient, readClientCredentials } from './client-authentication.ts'
import type { TokenRequestFacts } from './token-request-store.ts'

/**
 * Who calls, proven, at every endpoint that authenticates clients: read the credentials → look the client up → check
 * its proof → use up what proves only once. `find` reads the client and whatever else the endpoint needs to know, in
 * one round trip. Failures are counted; throws `invalid_client`, `invalid_request` for two proofs at once, or 429.
 */
export type AuthenticateClient = (
  request: IncomingMessage,
  parameters: Parameters,
  find: (clientId: string) => Promise<TokenRequestFacts | undefined>,
) => Promise<TokenRequestFacts>

export interface AuthenticateClientDependencies {
  query: Query
  /** Of tokens and of discovery. */
  issuer: string
  limits: Pick<Limits, 'refuseGuessing' | 'countSuccess' | 'countFailure'>
  addressOf(request: IncomingMessage): string
  now: Clock
}

export const createAuthenticateClient = (dependencies: AuthenticateClientDependencies): AuthenticateClient => {
  const { query, issuer, limits, addressOf, now } = dependencies

  const prove = async (credentials: ClientCredentials, facts: TokenRequestFacts | undefined) => {
    const { assertion, secretName } = checkClient(credentials, facts?.client, { issuer, now: now() })
    // Last: what does not hold uses nothing up.
    if (assertion && !(await useAssertion(query, { clientId: credentials.clientId, ...assertion })))
      throw invalidClient()
    if (facts === undefined) throw invalidClient()
    return { ...facts, client: { ...facts.client, secretName } }
  }

  return async (request, parameters, find) => {
    const address = addressOf(request)
    let clientId: string | undefined
    try {
      const credentials = readClientCredentials(request.headers.authorization, parameters)
      clientId = credentials.clientId
      limits.refuseGuessing(address, clientId)
      const facts = await prove(credentials, await find(clientId))
      limits.countSuccess(address, clientId)
      return facts
    } catch (error) {
      const isFailure = error instanceof OAuthError && error.error === 'invalid_client'
      if (isFailure) await limits.countFailure(address, clientId)
      throw error
    }
  }
}
