import type { IncomingMessage } from 'node:http'
import type { Query } from '../../../platform/database/database.ts'
import type { Parameters } from '../requests/parameters.ts'
import type { AuthenticateClient } from './authenticate-client.ts'
import type { Client } from './client.ts'
import { findTokenRequestFacts } from './token-request-store.ts'

/** The client of a request to an endpoint beside the token endpoint, proven the same way. */
export interface AuthenticatedClient extends Client {
  /** It holds the management permission `revocations` (or `all`): it may see what concerns other clients. */
  mayReadRevocations: boolean
}

export type AuthenticateRequest = (request: IncomingMessage, parameters: Parameters) => Promise<AuthenticatedClient>

const permissions = ['revocations', 'all']

export interface AuthenticateRequestDependencies {
  query: Query
  authenticateClient: AuthenticateClient
  /** Of the Management API. */
  indicator: string
}

/** One round trip. Throws the `invalid_client` of the token endpoint. */
export const createAuthenticateRequest =
  ({ query, authenticateClient, indicator }: AuthenticateRequestDependencies): AuthenticateRequest =>
  async (request, parameters) => {
    const asked = { resource: indicator, useDefaultResource: false, scopes: permissions }
    const { client, clientScopes } = await authenticateClient(request, parameters, (clientId) =>
      findTokenRequestFacts(query, { clientId, ...asked }),
    )
    return { ...client, mayReadRevocations: clientScopes.some((name) => permissions.includes(name)) }
  }
