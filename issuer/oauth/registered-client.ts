import type { IncomingMessage } from 'node:http'
import type { Query } from '../../platform/database.ts'
import type { Client } from './client.ts'
import { authenticateClient, readClientCredentials } from './client-authentication.ts'
import type { Parameters } from './parameters.ts'
import { findTokenRequestFacts } from './token-request-store.ts'

/** The client of a request to an endpoint beside the token endpoint, proven the same way. */
export interface AuthenticatedClient extends Client {
  /** It holds the management permission `revocations` (or `all`): it may see what concerns other clients. */
  mayReadRevocations: boolean
}

export type AuthenticateRequest = (request: IncomingMessage, parameters: Parameters) => Promise<AuthenticatedClient>

const permissions = ['revocations', 'all']

/** One round trip. Throws the `invalid_client` of the token endpoint. */
export const createAuthenticateRequest =
  ({ query, indicator }: { query: Query /** Of the Management API. */; indicator: string }): AuthenticateRequest =>
  async (request, parameters) => {
    const credentials = readClientCredentials(request.headers.authorization, parameters)
    const facts = await findTokenRequestFacts(query, {
      clientId: credentials.clientId,
      resource: indicator,
      useDefaultResource: false,
      scopes: permissions,
    })
    const client = authenticateClient(credentials, facts?.client)
    return { ...client, mayReadRevocations: facts!.clientScopes.some((name) => permissions.includes(name)) }
  }
