import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK } from 'jose'
import { type Client, type Context, errors, Provider } from 'oidc-provider'
import { generateClientKey } from './client-keys.ts'
import { createProviderMemory } from './oidc-provider-memory.ts'

/** An independent, certified implementation to compare answers with: oidc-provider, in memory, with our routes. */
export interface ReferenceIssuer {
  url: string
  /** The `iss` of its tokens. */
  issuer: string
  close(): Promise<void>
}

export interface ReferenceOptions {
  /** Client metadata as RFC 7591 names it. */
  clients: readonly object[]
  /** Of each resource: the scopes it defines. Every client holds those of `granted`. */
  resources: Readonly<Record<string, readonly string[]>>
  granted: readonly string[]
  defaultResource?: string
  /** Default: JWTs. */
  accessTokenFormat?: 'jwt' | 'opaque'
}

export const startReferenceIssuer = async (options: ReferenceOptions): Promise<ReferenceIssuer> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { privateKey, jwk } = await generateClientKey()
  const signing = { ...jwk, ...(await exportJWK(privateKey)), use: 'sig' }

  const resourceServer = (_context: Context, resource: string, _client: Client) => {
    const defined = options.resources[resource]
    if (!defined) throw new errors.InvalidTarget()
    return {
      scope: defined.filter((name) => options.granted.includes(name)).join(' '),
      audience: resource,
      accessTokenTTL: 3600,
      accessTokenFormat: options.accessTokenFormat ?? 'jwt',
      jwt: { sign: { alg: 'ES256' } },
    }
  }
  const provider = new Provider(url, {
    adapter: createProviderMemory().adapter,
    clients: options.clients,
    jwks: { keys: [signing] },
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
    enabledJWA: {
      idTokenSigningAlgValues: ['ES256'],
      clientAuthSigningAlgValues: ['ES256'],
    },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: { keys: ['only-browser-flows-use-cookies'] },
    routes: {
      token: '/oidc/token',
      introspection: '/oidc/token/introspection',
      revocation: '/oidc/token/revocation',
      userinfo: '/oidc/me',
      jwks: '/oidc/jwks',
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => options.defaultResource,
        getResourceServerInfo: resourceServer,
      },
    },
    ttl: { ClientCredentials: 3600 },
  })
  const answer = provider.callback()
  server.on('request', (request, response) => void answer(request, response))
  return {
    url,
    issuer: url,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
