import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { type MessageContent, openMessage } from '../../deliveries/messages/message.ts'
import { noMessages } from '../../deliveries/messages/settings.ts'
import { createTokenAudit } from '../../issuer/base/audit/token-audit.ts'
import { createCookies } from '../../issuer/base/cookies.ts'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import type { CaptchaSettings } from '../../issuer/captcha/captcha-settings.ts'
import { createSettings, type Settings } from '../../issuer/directory/sign-in-experience/settings.ts'
import {
  type SignInExperience,
  signInExperience,
} from '../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import type { PasswordHasher } from '../../issuer/directory/users/password.ts'
import { findAuthorizationClient } from '../../issuer/interaction/authorization-client-store.ts'
import type { AuthorizationRequest } from '../../issuer/interaction/authorization-request.ts'
import { authorizationResponse } from '../../issuer/interaction/authorization-response.ts'
import { redirectBrowser, sendAuthorizationResponse } from '../../issuer/interaction/send-authorization-response.ts'
import { createVisitorOf } from '../../issuer/interaction/visitor.ts'
import { openSignIn } from '../../issuer/open-sign-in.ts'
import { createBrandings, createLocaleOf, findAsset, sendAsset } from '../../issuer/pages/index.ts'
import { sessionDefaults } from '../../issuer/tokens/sessions/session.ts'
import { systemClock } from '../../platform/clock.ts'
import { createDatabase, type Database } from '../../platform/database/database.ts'
import { createEnvelope, type Envelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { createLogger, silentLogger } from '../../platform/logger.ts'
import type { PolicySet } from '../../policies/decide.ts'
import { type Browser, createBrowser, type Visit } from './browser.ts'
import { createTestDatabase } from './database.ts'
import { createFactories, type Factories } from './issuer-data.ts'
import { passwords as hasher } from './shared-parts.ts'
import { createSignInParts } from './sign-in-parts.ts'

export const redirectUri = 'https://shop.example.test/callback'

export interface TestClient {
  id: string
  redirectUri: string
}

export interface TestPerson {
  id: string
  username: string
  email: string
  password: string
}

/** The pages of signing in by themselves, before them an endpoint that takes requests as if they had been checked. */
export interface TestSignIn extends Factories {
  url: string
  urls: readonly string[]
  database: Database
  issuer: string
  /** How often a password was held against a digest. */
  verified: { count: number }
  /** What signing in is set to. Assign to change it. */
  settings: SignInExperience
  envelope: Envelope
  /** Every instance sees what was changed behind its back. */
  refreshed(): Promise<unknown>
  /** Messages that wait to be sent, opened, in order. None with `sends: 'connectors'`, whose relay takes them. */
  messages(): Promise<(MessageContent & { type: string })[]>
  /** The code of the last message to this address. */
  lastCode(to: string): Promise<string>
  logged(): string
  createClient(options?: {
    type?: string
    isThirdParty?: boolean
    redirectUris?: readonly string[]
    name?: string
  }): Promise<TestClient>
  createPerson(options?: { username?: string; email?: string; phone?: string }): Promise<TestPerson>
  browser(instance?: number): Browser
  /** A request of this client, checked. */
  request(client: TestClient): AuthorizationRequest
  /** Begins a request in a browser: the answer, redirects within the issuer followed. */
  authorize(browser: Browser, client: TestClient, request?: Partial<AuthorizationRequest>): Promise<Visit>
  /** The same, and signs in on the page. */
  signIn(
    browser: Browser,
    client: TestClient,
    person: TestPerson,
    request?: Partial<AuthorizationRequest>,
  ): Promise<Visit>
  events(type: string): Promise<Record<string, unknown>[]>
  close(): Promise<void>
}

/** Defaults, with these members. */
export const experienceWith = (members: Record<string, unknown>): SignInExperience =>
  signInExperience.schema.parse(members)

export const startTestSignIn = async ({
  instances = 1,
  interactionsPerAddress = 0,
  settings: given = {},
  sends = 'nothing',
  policies,
  captcha,
  allowedNetworks = [],
  host = '127.0.0.1',
}: {
  instances?: number
  interactionsPerAddress?: number
  /** Of `/api/sign-in-exp`, beside the defaults. */
  settings?: Record<string, unknown>
  /** `outbox`: codes wait for `messages()`. `connectors`: a relay sends what connectors can. */
  sends?: 'nothing' | 'outbox' | 'connectors'
  /** Of the operator. Default: the shipped rules decide. */
  policies?: PolicySet
  /** Default: one whose work is little. */
  captcha?: CaptchaSettings
  /** Where identity providers may be although it is not public. */
  allowedNetworks?: readonly string[]
  /** In the addresses that browsers use. */
  host?: string
} = {}): Promise<TestSignIn> => {
  const test = await createTestDatabase()
  const current = { settings: experienceWith(given) }
  const envelope = createEnvelope({ current: randomBytes(32) })
  const cookies = createCookies({ secure: false })
  const lines: string[] = []
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const logger = createLogger({ name: 'issuer', level: 'debug', destination })
  const verified = { count: 0 }
  const passwords: PasswordHasher = {
    ...hasher,
    verify(password, digest) {
      verified.count++
      return hasher.verify(password, digest)
    },
  }
  const closings: (() => Promise<void>)[] = []
  const memories: Settings[] = []
  const urls: string[] = []
  for (let count = instances; count > 0; count--) {
    const isFirst = urls.length === 0
    const database = isFirst ? test.database : createDatabase({ connection: test.connection, logger: silentLogger })
    const hmac = await createHmacs(database, envelope)
    const audit = createTokenAudit({ database, logger })
    // On a busy machine a connection would be closed just as its next request comes.
    const server = createServer({ keepAliveTimeout: 0 })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = `http://${host}:${(server.address() as AddressInfo).port}`
    urls.push(url)
    const baseUrl = urls[0]!
    const issuer = `${baseUrl}/oidc`
    const originOf = (request: { headers: Record<string, unknown> }) => ({
      ip: String(request.headers['x-test-address'] ?? '203.0.113.7'),
      userAgent: 'a browser',
    })
    const visitorOf = createVisitorOf({ cookies, originOf, isFromProxy: () => false })
    const events = { wake() {} }
    const settings = await createSettings({ database, logger })
    closings.push(() => settings.close())
    memories.push(settings)
    const parts = await createSignInParts({
      ...{ database, envelope, hmac, audit, events, baseUrl, logger, policies, captcha },
      config: { ...noMessages, allowedNetworks, outbox: sends === 'outbox' ? 'not written' : undefined },
      senderOf: settings.sender,
      experience: () => current.settings,
    })
    const { interactions, signInEndpoint } = await openSignIn({
      ...{
        database,
        envelope,
        events,
        cookies,
        hmac,
        localeOf: createLocaleOf(settings.experience),
        settings: () => current.settings,
        now: systemClock,
        passwords,
        audit,
        visitorOf,
        issuer,
        baseUrl,
        interactionsPerAddress,
        brandings: createBrandings({ settings, logger }),
        logger,
        ...parts,
      },
      sessionLimits: async () => sessionDefaults,
    })
    server.on('request', (request, response) => {
      const answer = async () => {
        const asked = new URL(request.url ?? '/', url)
        const asset = findAsset(asked.pathname)
        if (asset) return sendAsset(response, asset)
        if (asked.pathname.startsWith('/sign-in')) return signInEndpoint(request, response, newId())
        const parsed = JSON.parse(asked.searchParams.get('request') ?? '{}') as AuthorizationRequest
        const client = await findAuthorizationClient(database.query, parsed.clientId)
        const begun = await interactions.begin(parsed, client!, visitorOf(request))
        if (begun.kind === 'page') return redirectBrowser(response, begun.location, begun)
        sendAuthorizationResponse(response, authorizationResponse(parsed, begun, issuer), begun)
      }
      answer().catch((error) => response.writeHead(error.status ?? 500).end(String(error)))
    })
    closings.push(async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await audit.close()
      if (!isFirst) await database.close()
    })
  }
  const factories = createFactories(test.database)
  const { sql } = factories

  const createPerson: TestSignIn['createPerson'] = async ({ username, email, phone } = {}) => {
    const { id } = await factories.createUser({ name: 'Ada Lovelace' })
    const name = username ?? `ada_${id}`
    const address = email ?? `${id}@example.test`
    const password = `right password of ${id}`
    const { digest, algorithm } = await hasher.hash(password)
    await sql(
      `UPDATE users SET username = $2, primary_email = $3, primary_phone = $4, password_digest = $5, password_algorithm = $6
       WHERE id = $1`,
      [id, name, address, phone ?? null, digest, algorithm],
    )
    return { id, username: name, email: address, password }
  }

  const requestOf: TestSignIn['request'] = (client) => ({
    clientId: client.id,
    redirectUri: client.redirectUri,
    responseMode: 'query',
    state: 'the state',
    codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    scopes: ['openid', 'profile'],
    resourceScopes: {},
    resources: [],
    prompts: [],
    uiLocales: [],
    acrValues: [],
    wantsOfflineAccess: false,
  })

  const authorize: TestSignIn['authorize'] = (browser, client, request = {}) => {
    const asked: AuthorizationRequest = { ...requestOf(client), ...request }
    return browser.get(`/oidc/auth?request=${encodeURIComponent(JSON.stringify(asked))}`)
  }

  const messages: TestSignIn['messages'] = async () => {
    const rows = await sql<{ id: string; type: string; sealed: Buffer }>(
      'SELECT id, type, sealed FROM messages WHERE sealed IS NOT NULL ORDER BY created_at, id',
    )
    return rows.map(({ id, type, sealed }) => ({ type, ...openMessage(envelope, id, sealed) }))
  }

  return {
    ...factories,
    ...{ envelope, messages },
    refreshed: () => Promise.all(memories.map((settings) => settings.refreshed())),
    get settings() {
      return current.settings
    },
    set settings(settings) {
      current.settings = settings
    },
    async lastCode(to) {
      const code = (await messages()).findLast((message) => message.to === to)?.variables['code']
      if (code === undefined) throw new Error(`no code was sent to ${to}`)
      return code
    },
    url: urls[0]!,
    urls,
    database: test.database,
    issuer: `${urls[0]}/oidc`,
    verified,
    logged: () => lines.join(''),
    async createClient({ type = 'SPA', isThirdParty = false, redirectUris = [redirectUri], name = 'Shop' } = {}) {
      const { id } = await factories.createApplication({ type: type as 'SPA', isThirdParty, name })
      await sql('UPDATE applications SET oidc_client_metadata = $2 WHERE id = $1', [
        id,
        JSON.stringify({ redirectUris }),
      ])
      return { id, redirectUri: redirectUris[0]! }
    },
    createPerson,
    request: requestOf,
    browser: (instance = 0) => createBrowser(urls[instance]!),
    authorize,
    async signIn(browser, client, person, request) {
      const page = await authorize(browser, client, request)
      return browser.submit(page, { identifier: person.username, password: person.password, choice: 'sign_in' })
    },
    async events(type) {
      const rows = await sql<{ payload: Buffer }>('SELECT payload FROM outbox WHERE type = $1 ORDER BY seq', [type])
      return rows.map(({ payload }) => JSON.parse(payload.toString()))
    },
    async close() {
      for (const close of closings.toReversed()) await close()
      await test.close()
    },
  }
}

/** The parameters of the redirect to a client. */
export const answerOf = (visit: Visit): Record<string, string> => {
  if (visit.location === undefined) throw new Error(`no redirect: ${visit.status}\n${visit.text}`)
  return Object.fromEntries(new URL(visit.location).searchParams)
}
