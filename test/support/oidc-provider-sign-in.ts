import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { exportJWK } from 'jose'
import { type Adapter, errors, Provider } from 'oidc-provider'
import { generateClientKey } from './client-keys.ts'
import { createProviderMemory, type ProviderMemory } from './oidc-provider-memory.ts'

/** oidc-provider, with people who sign in by name alone. */
export interface ReferenceProvider extends Pick<ProviderMemory, 'age'> {
  url: string
  close(): Promise<void>
}

export interface ReferenceProviderOptions {
  /** Client metadata as RFC 7591 names it. */
  clients: readonly object[]
  /** The claims of each person, by the name that stands in the field `login`. */
  people: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Where it keeps what it keeps. Default: in memory. */
  adapter?: (model: string) => Adapter
}

const claimsByScope = {
  profile: [
    ...['name', 'family_name', 'given_name', 'middle_name', 'nickname', 'preferred_username', 'profile', 'picture'],
    ...['website', 'gender', 'birthdate', 'zoneinfo', 'locale', 'updated_at'],
  ],
  email: ['email', 'email_verified'],
  address: ['address'],
  phone: ['phone_number', 'phone_number_verified'],
}

export const startReferenceProvider = async ({
  clients,
  people,
  adapter,
}: ReferenceProviderOptions): Promise<ReferenceProvider> => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const memory = createProviderMemory()

  const provider = new Provider(url, {
    adapter: adapter ?? memory.adapter,
    clients,
    jwks: { keys: [await signingKey('RS256'), await signingKey('ES256')] },
    findAccount: (_context: unknown, login: string) => {
      const claims = people[login]
      return claims && { accountId: login, claims: () => ({ ...claims, sub: login }) }
    },
    claims: { openid: ['sub'], ...claimsByScope },
    scopes: ['openid', 'offline_access', ...Object.keys(claimsByScope)],
    clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'none'],
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256'] },
    // POST from other sites, which it allows only when its cookies come with them.
    enableHttpPostMethods: true,
    cookies: { keys: ['signs-the-cookies-of-one-run'], long: { httpOnly: true, sameSite: 'none' } },
    routes: {
      authorization: '/oidc/auth',
      token: '/oidc/token',
      userinfo: '/oidc/me',
      end_session: '/oidc/session/end',
    },
    // It would not reach this machine with the dispatcher that it chooses.
    fetch: (address: string, { dispatcher: _, ...rest }: RequestInit & { dispatcher?: unknown }) =>
      fetch(address, rest),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => false },
    features: {
      devInteractions: { enabled: false },
      claimsParameter: { enabled: true },
      backchannelLogout: { enabled: true },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => {
          throw new errors.InvalidTarget()
        },
      },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context: { body: unknown }, form: string) => {
          context.body = form.replace('</form>', '<button name="logout" value="yes">Sign out</button></form>')
        },
        postLogoutSuccessSource: (context: { body: unknown }) => {
          context.body = signedOut
        },
      },
    },
    renderError: (context: { type: string; body: unknown }, { error }: { error: string }) => {
      context.type = 'html'
      context.body = `<p>${error}</p>`
    },
    ttl: {
      ...{ AccessToken: 3600, AuthorizationCode: 60, IdToken: 3600, RefreshToken: 14 * 86_400 },
      ...{ Grant: 14 * 86_400, Interaction: 3600, Session: 14 * 86_400 },
    },
  })

  const interact = async (request: IncomingMessage, response: ServerResponse) => {
    const { prompt, params, session } = await provider.interactionDetails(request, response)
    if (request.method !== 'POST') {
      response.setHeader('content-type', 'text/html')
      response.end(`<form method="post"><input name="${prompt.name}"></form>`)
      return
    }
    const login = new URLSearchParams(await text(request)).get('login')
    const accountId = login ?? session!.accountId
    const grant = new provider.Grant({ accountId, clientId: String(params['client_id']) })
    grant.addOIDCScope(String(params['scope']))
    grant.addOIDCClaims(requestedClaims(params['claims']))
    const result = { ...(login === null ? {} : { login: { accountId } }), consent: { grantId: await grant.save() } }
    await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
  }
  const answer = provider.callback()
  server.on('request', (request, response) =>
    request.url?.startsWith('/interaction/') ? void interact(request, response) : void answer(request, response),
  )

  return {
    url,
    age: memory.age,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const signedOut = '<p>You are signed out.</p>'

const signingKey = async (alg: string) => {
  const { privateKey, jwk } = await generateClientKey(alg)
  return { ...jwk, ...(await exportJWK(privateKey)), use: 'sig' }
}

/** OpenID Connect Core §5.5. */
const requestedClaims = (parameter: unknown = '{}'): string[] =>
  Object.values(JSON.parse(String(parameter)) as Record<string, object>).flatMap((members) => Object.keys(members))
