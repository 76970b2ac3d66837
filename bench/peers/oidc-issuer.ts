import { createServer } from 'node:http'
import { type AccessToken, type Client, type Context, errors, Provider, type ResourceServerInfo } from 'oidc-provider'
import type { Connection } from '../harness/database-store.ts'
import { listen, runServer } from '../harness/server.ts'
import { createPeerStore, type PeerStore } from './oidc-store.ts'
import { grantedScope, tokenExchange, tokenExchangeGrant, tokenExchangeParameters } from './oidc-token-exchange.ts'

/**
 * oidc-provider on `node:http` (no framework around it), its clients in Postgres, ES256, JWT access tokens for
 * resources. Scopes come from roles in the database, one query a request, as in any service whose roles change at run
 * time.
 */
export type IssuerSettings = { connection: Connection; privateJwk: object }

runServer(({ connection, privateJwk }: IssuerSettings) => {
  const store = createPeerStore(connection)
  const provider = new Provider('http://localhost:3001/oidc', configuration(store, privateJwk))
  provider.registerGrantType(tokenExchangeGrant, tokenExchange({ provider, store }), tokenExchangeParameters)
  provider.on('server_error', (_context, error) => console.error(error))
  return listen(createServer(provider.callback()), store.close)
})

const configuration = (store: PeerStore, privateJwk: object) => ({
  adapter: store.adapter,
  jwks: { keys: [privateJwk] },
  clientAuthMethods: ['client_secret_basic'],
  enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  cookies: { keys: ['only-browser-flows-use-cookies'] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      getResourceServerInfo: resourceServerInfo(store),
    },
  },
  ttl: { AccessToken: tokenLife, ClientCredentials: tokenLife },
  extraTokenClaims: ({ state }: Context) => state['claims'],
})

const tokenLife = (_context: Context, { resourceServer }: AccessToken): number => resourceServer?.accessTokenTTL ?? 3600

const resourceServerInfo =
  (store: PeerStore) =>
  async ({ oidc }: Context, resource: string, client: Client): Promise<ResourceServerInfo> => {
    const access = await store.clientAccess(resource, client.clientId)
    if (!access) throw new errors.InvalidTarget()
    return {
      scope: grantedScope(oidc.params['scope'] ?? '', access),
      audience: resource,
      accessTokenTTL: access.ttl,
      accessTokenFormat: 'jwt',
      jwt: { sign: { alg: 'ES256' } },
    }
  }
