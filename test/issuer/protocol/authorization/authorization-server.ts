import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClientAddress } from '../../../../issuer/base/client-address.ts'
import { createCookies } from '../../../../issuer/base/cookies.ts'
import { OAuthError } from '../../../../issuer/base/errors/problems.ts'
import { createLimits, rateLimitDefaults } from '../../../../issuer/base/rate-limits/rate-limits.ts'
import { createSettings } from '../../../../issuer/directory/sign-in-experience/settings.ts'
import type { AuthorizationRequest } from '../../../../issuer/interaction/authorization-request.ts'
import type { Begun } from '../../../../issuer/interaction/interactions.ts'
import { createBrandings, pickLocale } from '../../../../issuer/pages/index.ts'
import { createAuthorizationEndpoint } from '../../../../issuer/protocol/authorization/authorization-endpoint.ts'
import { createCheckRequest } from '../../../../issuer/protocol/authorization/checks.ts'
import { createPushedAuthorizationEndpoint } from '../../../../issuer/protocol/authorization/pushed-authorization-endpoint.ts'
import { createPushedRequests } from '../../../../issuer/protocol/authorization/pushed-requests.ts'
import { createAuthenticateClient } from '../../../../issuer/protocol/clients/authenticate-client.ts'
import { nearestIndicator } from '../../../../issuer/protocol/clients/token-request-store.ts'
import { createIdTokenHintVerifier } from '../../../../issuer/tokens/id-token-hint.ts'
import { createSigningKeys, type SigningKeys } from '../../../../issuer/tokens/keys/signing-keys.ts'
import { systemClock } from '../../../../platform/clock.ts'
import type { Query } from '../../../../platform/database/database.ts'
import { createEnvelope } from '../../../../platform/envelope.ts'
import { createMetrics } from '../../../../platform/metrics.ts'
import { capturedLogger } from '../../../support/captured-logger.ts'
import { noProofs } from '../../../support/dpop.ts'
import {
  type Answer,
  type FormValues,
  formOf,
  request,
  startTestIssuer,
  type TestIssuer,
} from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

export const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

/** The endpoints around database and keys of an issuer; what a checked request leads to is up to the test. */
export interface AuthorizationServer {
  issuer: TestIssuer
  keys: SigningKeys
  url: string
  /** The checked requests so far. */
  begun: { request: AuthorizationRequest; clientId: string; browser: string | undefined }[]
  /** What the next ones lead to. Default: a page. */
  leadTo(next: Begun | Error): void
  /** Names of the statements since the last call. */
  statements(): string[]
  logged(): string
  get(parameters: FormValues, headers?: Record<string, string>): Promise<Answer>
  post(body: FormValues | string, headers?: Record<string, string>): Promise<Answer>
  push(client: TestApplication, parameters: FormValues, headers?: Record<string, string>): Promise<Answer>
  createClient(options?: ClientOptions): Promise<TestApplication>
  close(): Promise<void>
}

export interface ClientOptions {
  type?: 'Native' | 'SPA' | 'Traditional' | 'MachineToMachine' | 'Protected'
  name?: string
  redirectUris?: string[]
  custom?: Record<string, unknown>
}

const aPage: Begun = { kind: 'page', location: '/sign-in/1', setCookies: ['surrogate_browser=b; Path=/'] }

export const startAuthorizationServer = async (): Promise<AuthorizationServer> => {
  const keyEncryptionKey = randomBytes(32)
  const issuer = await startTestIssuer({ config: { keyEncryptionKey } })
  const { logger, lines } = capturedLogger('debug')
  const settings = await createSettings({ database: issuer.database, logger })
  const keys = await createSigningKeys({
    database: issuer.database,
    envelope: createEnvelope({ current: keyEncryptionKey }),
    algorithm: 'ES256',
    logger,
  })
  let names: string[] = []
  const query: Query = (statement, values) => {
    names.push(statement.name)
    return issuer.database.query(statement, values)
  }
  const begun: AuthorizationServer['begun'] = []
  let next: Begun | Error = aPage
  const cookies = createCookies({ secure: false })
  const addressOf = createClientAddress([])
  const checkRequest = createCheckRequest({
    verifyIdTokenHint: createIdTokenHintVerifier({ keys, issuer: issuer.issuer }),
    nearestIndicator: (indicator) => nearestIndicator(query, indicator),
  })
  const pushedRequests = createPushedRequests({ query })
  const limits = createLimits({ query, limits: rateLimitDefaults, now: systemClock, metrics: createMetrics() })
  const authorization = createAuthorizationEndpoint({
    query,
    localeOf: pickLocale,
    checkRequest,
    pushedRequests,
    interactions: {
      async begin(asked, client, { browser }) {
        begun.push({ request: asked, clientId: client.id, browser })
        if (next instanceof Error) throw next
        return next
      },
    },
    visitorOf: (incoming) => ({
      session: cookies.read(incoming, 'session'),
      browser: cookies.read(incoming, 'browser'),
      device: cookies.read(incoming, 'device'),
      origin: { ip: addressOf(incoming), userAgent: undefined },
      acceptLanguage: incoming.headers['accept-language'],
      isEmbedded: false,
      signInContext: {},
    }),
    brandings: createBrandings({ settings, logger }),
    cookies,
    limits,
    issuer: issuer.issuer,
    logger,
    metrics: createMetrics(),
  })
  const pushed = createPushedAuthorizationEndpoint({
    query,
    authenticateClient: createAuthenticateClient({
      query,
      issuer: issuer.issuer,
      limits,
      addressOf,
      now: systemClock,
    }),
    checkRequest,
    pushedRequests,
    limits,
    proofs: noProofs,
    addressOf,
    logger,
  })
  const server = createServer((incoming, response) => {
    const endpoint = incoming.url!.startsWith('/oidc/request') ? pushed : authorization
    void endpoint(incoming, response, 'request-7')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  return {
    issuer,
    keys,
    url,
    begun,
    leadTo(what) {
      next = what
    },
    statements() {
      const all = names
      names = []
      return all
    },
    logged: () => JSON.stringify(lines),
    get: (parameters, headers = {}) => request(`${url}/oidc/auth?${formOf(parameters)}`, { headers }),
    post: (body, headers = {}) =>
      request(`${url}/oidc/auth`, {
        method: 'POST',
        body: typeof body === 'string' ? body : formOf(body),
        headers,
      }),
    push: (client, parameters, headers = {}) =>
      request(`${url}/oidc/request`, {
        method: 'POST',
        headers,
        body: formOf({
          client_id: client.id,
          ...(client.secret === undefined ? {} : { client_secret: client.secret }),
          ...parameters,
        }),
      }),
    async createClient({
      type = 'Traditional',
      name = 'A shop',
      redirectUris = ['https://shop.test/cb'],
      custom = {},
    } = {}) {
      const client = await issuer.createApplication({ type, name })
      await issuer.sql(
        'UPDATE applications SET oidc_client_metadata = $2::jsonb, custom_client_metadata = $3::jsonb WHERE id = $1',
        [client.id, JSON.stringify({ redirectUris }), JSON.stringify(custom)],
      )
      return client
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await keys.close()
      await settings.close()
      await issuer.close()
    },
  }
}

/** A request that is right. */
export const rightRequest = (client: TestApplication, more: FormValues = {}): FormValues => ({
  client_id: client.id,
  redirect_uri: 'https://shop.test/cb',
  response_type: 'code',
  scope: 'openid',
  state: 'a-state',
  code_challenge: challenge,
  code_challenge_method: 'S256',
  ...more,
})

export const tooManyInteractions = () =>
  new OAuthError('temporarily_unavailable', 'Too many.', { status: 429, headers: { 'Retry-After': '60' } })

export const newBrowser = () => randomBytes(32).toString('base64url')

/** The parameters with which a client is answered. */
export const answered = (answer: Answer): Record<string, string> => {
  const location = new URL(answer.headers.get('location')!)
  return Object.fromEntries(new URLSearchParams(location.hash === '' ? location.search : location.hash.slice(1)))
}
