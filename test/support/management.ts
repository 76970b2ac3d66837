import { randomBytes, randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { noMessages } from '../../deliveries/messages/settings.ts'
import { eventTypes } from '../../events/catalogue.ts'
import { rehearsal } from '../../issuer/api/dry-run.ts'
import { createManagementApi } from '../../issuer/api/mount.ts'
import { issuerRoutes } from '../../issuer/api/routes.ts'
import { createTokenAudit } from '../../issuer/base/audit/token-audit.ts'
import { createClientAddress } from '../../issuer/base/client-address.ts'
import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import { createIdempotency } from '../../issuer/base/idempotency.ts'
import { createMutate } from '../../issuer/base/mutate.ts'
import { type ManagementRoute, routesFor } from '../../issuer/base/route.ts'
import { createClaimsScriptStore } from '../../issuer/claims/claims-script-store.ts'
import { createClaimsSandbox } from '../../issuer/claims/sandbox/sandbox.ts'
import { createFederation } from '../../issuer/connectors/federation.ts'
import { createEventFeed } from '../../issuer/directory/events/feed.ts'
import { createNotices } from '../../issuer/directory/notices/notices.ts'
import { createSettings } from '../../issuer/directory/sign-in-experience/settings.ts'
import type { PasswordHasher } from '../../issuer/directory/users/password.ts'
import { bootstrap } from '../../issuer/maintenance/bootstrap.ts'
import { createMessages } from '../../issuer/messages/messages.ts'
import { createNotifyOwner } from '../../issuer/messages/owner-notices.ts'
import { createAccessTokenMint, createAccessTokenVerifier } from '../../issuer/tokens/access-token.ts'
import { createSigningKeys } from '../../issuer/tokens/keys/signing-keys.ts'
import { createImpersonationPolicy } from '../../issuer/tokens/subject-tokens/impersonation-policy.ts'
import { systemClock, toSeconds } from '../../platform/clock.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { listen } from '../../platform/http/http-server.ts'
import { createTargetPolicy } from '../../platform/http/outbound.ts'
import { createLogger } from '../../platform/logger.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { noProofs } from './dpop.ts'
import { passwords as cheapPasswords, giveIdTokenKey } from './shared-parts.ts'

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests compare whole bodies
  body: any
  headers: Headers
}

export interface StoredEvent {
  event: string
  version: number
  data: unknown
  [member: string]: unknown
}

export interface ManagementTest {
  /** What the API takes for its own address. */
  baseUrl: string
  /** Where it really listens. */
  url: string
  /** The indicator of the Management API. */
  indicator: string
  database: TestDatabase['database']
  routes: readonly ManagementRoute[]
  /** A signed access token; `scope` default `all`. */
  token(claims?: { scope?: string; aud?: string; sub?: string }): string
  /**
   * Calls with a token of scope `all` unless told otherwise. The body of a success is held against the schema of its
   * route.
   */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>
  /** Calls and expects this status; answers the body. */
  expect(status: number, method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer['body']>
  /** The events recorded since it was last asked, as receivers would get them, held against the catalogue. */
  events(): Promise<StoredEvent[]>
  /** How often the publisher was woken. */
  wakes(): number
  /** Everything logged so far, as text. */
  logged(): string
  close(): Promise<void>
}

export interface CallOptions {
  token?: string | undefined
  headers?: Record<string, string>
}

/** The Management API on a database of its own, with real keys and tokens; no token endpoint, no relay. */
export const startManagement = async ({
  passwords = cheapPasswords,
}: {
  /** Default: those of this process. */
  passwords?: PasswordHasher
} = {}): Promise<ManagementTest> => {
  const { database, close } = await createTestDatabase()
  const baseUrl = 'http://management.test'
  const indicators = [`${baseUrl}/api`, 'https://default.logto.app/api']
  await bootstrap({ database, indicators, clientId: 'bootstrap', clientSecret: 'not used here' })

  const lines: string[] = []
  const logger = createLogger({
    name: 'test',
    level: 'trace',
    destination: { write: (line: string) => void lines.push(line) },
  })
  const envelope = createEnvelope({ current: randomBytes(32) })
  await giveIdTokenKey(database.query, envelope)
  const keys = await createSigningKeys({ database, envelope, algorithm: 'ES256', logger })
  const issuer = `${baseUrl}/oidc`
  const mint = createAccessTokenMint({ keys, issuer })
  const verifier = createAccessTokenVerifier({ keys, issuer })

  const sandbox = createClaimsSandbox()
  const eventFeed = createEventFeed(database)

  let wakes = 0
  const mutate = createMutate({ knex: database.knex, events: { wake: () => void wakes++ } })
  const audit = createTokenAudit({ database, logger })
  const settings = await createSettings({ database, logger })
  const messages = createMessages({
    query: database.query,
    senderOf: settings.sender,
    envelope,
    hmac: await createHmacs(database, envelope),
    config: noMessages,
    baseUrl,
    events: { wake() {} },
  })
  const federation = createFederation({
    ...{ database, envelope, experience: settings.experience, memory: settings.memory, now: systemClock },
    mocks: false,
    outbound: { allowedNetworks: [] },
  })
  // All that the issuer serves (`issuer/main.ts`), so that the tests of every route are of every route.
  const routes = routesFor(
    'management',
    issuerRoutes({
      database,
      mutate,
      indicators,
      now: systemClock,
      audit,
      verifier,
      policy: createImpersonationPolicy({ policies: undefined, logger }),
      passwords,
      hmac: await createHmacs(database, envelope),
      subjectTokenTtl: 600,
      envelope,
      targets: createTargetPolicy({ allowedNetworks: [], allowHttp: false }),
      baseUrl,
      replaysWaiting() {},
      eventFeed,
      notices: createNotices({
        feed: eventFeed,
        hearOutcomes: () => ({ connected: true, onNotify: () => () => {}, close: async () => {} }),
      }),
      claimsScripts: createClaimsScriptStore(envelope),
      sandbox,
      issuer: `${baseUrl}/oidc`,
      keys,
      algorithm: 'ES256',
      settings,
      logger,
      messageConfig: noMessages,
      testMessages: messages,
      federation,
      notifyOwner: createNotifyOwner({ messages, fallbackLanguage: () => 'en', logger }),
    }),
  )
  const app = createManagementApi({
    routes,
    indicators,
    // Any audience: the Management API itself must see to it.
    verify: (token) => verifier.verify(token, { audience: undefined }),
    baseUrl,
    clientAddress: createClientAddress(['127.0.0.1']),
    proofs: noProofs,
    mutate,
    idempotency: createIdempotency({ knex: database.knex, envelope }),
    query: database.query,
    logger,
  })
  const server = await listen({ name: 'the API', handler: app, host: '127.0.0.1', port: 0, setting: 'PORT' })

  const token: ManagementTest['token'] = ({ scope = 'all', aud = indicators[0]!, sub = 'bootstrap' } = {}) => {
    const now = toSeconds(new Date())
    return mint({ jti: randomUUID(), sub, aud, clientId: sub, scope, iat: now, exp: now + 600 })
  }
  const everything = token()

  const call: ManagementTest['call'] = async (method, path, body, options = {}) => {
    const bearer = 'token' in options ? options.token : everything
    const response = await fetch(`${server.url}/api${path}`, {
      method,
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    // A stream has no end.
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (isStream) await response.body?.cancel()
    const text = isStream ? '' : await response.text()
    const answer = {
      status: response.status,
      body: text === '' ? undefined : JSON.parse(text),
      headers: response.headers,
    }
    if (response.ok) holdAgainstSchema(routes, method, path, answer)
    return answer
  }

  let seen = 0
  return {
    baseUrl,
    url: server.url,
    indicator: indicators[0]!,
    database,
    routes,
    token,
    call,
    async expect(status, method, path, body, options) {
      const answer = await call(method, path, body, options)
      expect({ status: answer.status, body: answer.body }).toEqual({ status, body: answer.body })
      return answer.body
    },
    async events() {
      const { rows } = await database.pool.query<{ seq: number; payload: Buffer }>(
        'SELECT seq, payload FROM outbox WHERE seq > $1 ORDER BY seq',
        [seen],
      )
      seen = rows.at(-1)?.seq ?? seen
      const events = rows.map(({ payload }) => JSON.parse(payload.toString()) as StoredEvent)
      for (const { event, data } of events) eventTypes.get(event)!.data.parse(data)
      return events
    },
    wakes: () => wakes,
    logged: () => lines.join(''),
    async close() {
      await server.close(0)
      await federation.close()
      await audit.close()
      await sandbox.close()
      await keys.close()
      await settings.close()
      await close()
    },
  }
}

const holdAgainstSchema = (
  routes: readonly ManagementRoute[],
  method: string,
  path: string,
  { status, body }: Answer,
) => {
  const pathname = path.split('?', 1)[0]!
  const route = routes.find(
    (one) =>
      (one.method === method || (method === 'HEAD' && one.method === 'GET')) &&
      new RegExp(`^${one.path.replace(/:\w+/g, '[^/]+')}$`).test(pathname),
  )
  if (route === undefined) throw new Error(`${method} ${path} is no route`)
  if (method === 'DELETE' && path.includes('dryRun=true')) {
    rehearsal.parse(body)
    return
  }
  if (!(status === 201 && route.mayCreate)) expect(status).toBe(route.status)
  if (method === 'HEAD' || route.response === undefined) expect(body).toBeUndefined()
  else route.response.parse(body)
}
