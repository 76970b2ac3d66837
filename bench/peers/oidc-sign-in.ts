import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { verify } from '@node-rs/argon2'
import { type Client, type Context, errors, type Grant, Provider, type ResourceServerInfo } from 'oidc-provider'
import type { Connection } from '../harness/database-store.ts'
import { passwordMicros } from '../harness/password-cost.ts'
import { listen, runServer } from '../harness/server.ts'
import { createPeerStore, type PeerStore } from './oidc-store.ts'
import { grantedScope } from './oidc-token-exchange.ts'

/**
 * oidc-provider where people sign in, on `node:http`: code flow with PKCE for a public client, sessions, refresh tokens
 * that rotate. Its own pages for development are off. Sign-in is one page with a form; the client is the operator's own
 * and asks for no consent, by the recipe of the library's documentation.
 */
export type SignInPeerSettings = { connection: Connection; privateJwk: object; issuer: string }

runServer(
  ({ connection, privateJwk, issuer }: SignInPeerSettings) => {
    const store = createPeerStore(connection)
    const provider = new Provider(issuer, configuration(store, privateJwk))
    provider.on('server_error', (_context, error) => console.error(error))
    return listen(createServer(listener(provider, store)), store.close)
  },
  { passwordMicros },
)

const lives = { refreshToken: 14 * 86_400, session: 14 * 86_400 }

const configuration = (store: PeerStore, privateJwk: object) => ({
  adapter: store.adapter,
  jwks: { keys: [privateJwk] },
  clientAuthMethods: ['none'],
  enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  cookies: { keys: ['a-key-of-some-length-for-the-signatures-of-cookies'] },
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      getResourceServerInfo: resourceServerInfo(store),
    },
  },
  scopes: ['openid', 'offline_access', 'profile', 'email'],
  claims: {
    openid: ['sub', 'auth_time', 'amr'],
    email: ['email', 'email_verified'],
    profile: ['name', 'updated_at', 'created_at'],
  },
  ttl: {
    AccessToken: (_context: Context, { resourceServer }: { resourceServer?: ResourceServerInfo }) =>
      resourceServer?.accessTokenTTL ?? 3600,
    AuthorizationCode: 60,
    Grant: lives.refreshToken,
    IdToken: 3600,
    Interaction: 3600,
    RefreshToken: lives.refreshToken,
    Session: lives.session,
  },
  findAccount: async (_context: Context, id: string) => {
    const account = await store.findAccount(id)
    return (
      account && {
        accountId: id,
        claims: () => ({
          sub: id,
          email: account.email,
          email_verified: account.emailVerified,
          name: account.name,
          created_at: account.createdAt,
          updated_at: account.updatedAt,
        }),
      }
    )
  },
  loadExistingGrant,
  // The library would ask for consent at each sign-in before it gives `offline_access`.
  issueRefreshToken: () => true,
  expiresWithSession: () => false,
  rotateRefreshToken: true,
  interactions: { url: (_context: Context, { uid }: { uid: string }) => `${interactionPath}${uid}` },
})

/** The recipe "skip consent screen": the operator's own client has what it asks for. */
const loadExistingGrant = async ({ oidc }: Context): Promise<Grant | undefined> => {
  const { provider, client, session, account, result } = oidc
  const known = result?.consent?.grantId ?? session.grantIdFor(client.clientId)
  if (known !== undefined) return provider.Grant.find(known)
  const grant = new provider.Grant({ accountId: account!.accountId, clientId: client.clientId })
  grant.addOIDCScope([...oidc.requestParamOIDCScopes].join(' '))
  for (const [resource, { scopes }] of Object.entries(oidc.resourceServers)) {
    grant.addResourceScope(resource, [...scopes].join(' '))
  }
  await grant.save()
  return grant
}

const resourceServerInfo =
  (store: PeerStore) =>
  async ({ oidc }: Context, resource: string, _client: Client): Promise<ResourceServerInfo> => {
    const access = await store.userAccess(resource, oidc.account?.accountId)
    if (!access) throw new errors.InvalidTarget()
    return {
      scope: grantedScope(access.granted.join(' '), access),
      audience: resource,
      accessTokenTTL: access.ttl,
      accessTokenFormat: 'jwt',
      jwt: { sign: { alg: 'ES256' } },
    }
  }

const interactionPath = '/interaction/'

const listener = (provider: Provider, store: PeerStore): RequestListener => {
  const callback = provider.callback()
  const interact = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { uid } = await provider.interactionDetails(request, response)
    if (request.method !== 'POST') return sendPage(response, 200, uid, '')
    const form = await readForm(request)
    const found = await store.findDigest(form.get('identifier') ?? '')
    if (!found || !(await verify(found.digest, form.get('password') ?? ''))) {
      return sendPage(response, 400, uid, 'Wrong user or password.')
    }
    const login = { accountId: found.id, amr: ['pwd'] }
    await provider.interactionFinished(request, response, { login }, { mergeWithLastSubmission: false })
  }
  return (request, response) => {
    if (!request.url?.startsWith(interactionPath)) return void callback(request, response)
    interact(request, response).catch((error) => {
      console.error(error)
      response.writeHead(500).end()
    })
  }
}

const readForm = async (request: IncomingMessage): Promise<URLSearchParams> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return new URLSearchParams(Buffer.concat(chunks).toString())
}

const sendPage = (response: ServerResponse, status: number, uid: string, problem: string): void => {
  const page = `<!doctype html><html lang="en"><title>Sign in</title><h1>Sign in</h1><p>${problem}</p>
<form action="${interactionPath}${uid}" method="post">
<label>User <input name="identifier" autocomplete="username"></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label>
<button>Sign in</button></form></html>`
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(page),
    'cache-control': 'no-store',
  })
  response.end(page)
}
