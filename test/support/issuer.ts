import { randomBytes } from 'node:crypto'
import { Writable } from 'node:stream'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { IssuerConfig } from '../../issuer/config.ts'
import type { Gateway } from '../../issuer/console/gateways/gateways.ts'
import { type RunningIssuer, startIssuer } from '../../issuer/main.ts'
import type { Clock } from '../../platform/clock.ts'
import { createDatabase, type Database } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { createHealth } from '../../platform/health.ts'
import { newId } from '../../platform/ids.ts'
import { createLogger, silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { Secret } from '../../platform/secret.ts'
import type { PolicySet } from '../../policies/policy-set.ts'
import { createTestDatabase, type PostgresConnection, type TestDatabase } from './database.ts'
import { createFactories, type Factories, type TestApplication } from './issuer-data.ts'
import { giveIdTokenKey, passwords, shipped } from './shared-parts.ts'

/** An answer, read whole. */
export interface Answer {
  status: number
  headers: Headers
  // Tests look into bodies; what they find there is what they assert.
  // biome-ignore lint/suspicious/noExplicitAny: JSON of any shape
  body: any
}

export type FormValues = Record<string, string | string[] | undefined>

export const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

export interface TestIssuer extends Factories {
  /** Where the first instance listens; `urls` has all. */
  url: string
  urls: readonly string[]
  baseUrl: string
  /** The `iss` of tokens. */
  issuer: string
  /** The indicator of the Management API. */
  managementResource: string
  /** The machine-to-machine application that holds `all`. */
  bootstrap: TestApplication
  database: Database
  instances: readonly RunningIssuer[]
  /** Everything logged so far, at level debug. */
  logged(): string

  /** `POST /oidc/token`; the client authenticates by Basic when it has a secret. `instance` counts from 0. */
  token(client: TestApplication | undefined, form: FormValues, options?: { instance?: number }): Promise<Answer>
  /** The access token of a client-credentials request that must succeed. */
  clientToken(client: TestApplication, resource: string, scope: string): Promise<string>
  /** A token of the bootstrap application for the Management API. Default scope `all`. */
  managementToken(scope?: string): Promise<string>
  /** A Management API call; `token` defaults to one with scope `all` that is kept, null sends none. */
  api(
    method: string,
    path: string,
    body?: unknown,
    options?: { token?: string | null; instance?: number; headers?: Record<string, string> },
  ): Promise<Answer>
  /** A subject token for a user; must succeed. */
  subjectToken(userId: string, members?: Record<string, unknown>): Promise<string>
  /** Exchanges a subject token, with the form members of `form` beside it. */
  exchange(
    client: TestApplication,
    subjectToken: string,
    form?: FormValues,
    options?: { instance?: number },
  ): Promise<Answer>
  /** An opaque access token of the user with scope `openid`, as an acting party holds it. */
  actorToken(client: TestApplication, userId: string): Promise<string>
  /** The claims of a JWT, verified with the published keys (by jose). Throws when it is not valid. */
  verify(token: string, audience: string): Promise<JWTPayload>
  close(): Promise<void>
}

export interface TestIssuerOptions {
  /** On one database, with one base URL. Default 1. */
  instances?: number
  /** Instead of a new one, with the current schema; closed with the issuer. */
  test?: TestDatabase
  config?: Partial<IssuerConfig>
  policies?: { current(): PolicySet }
  /** Where the built console is. */
  consoleFolder?: string
  /** Gateways that the console asks, besides those of `config`. */
  consoleGateways?: () => readonly Gateway[]
  now?: Clock
  /** Hashes passwords by itself, as in production. Default: `shared-parts.ts` does. */
  hashes?: boolean
  events?: { wake(): void }
  /** How the instances reach the database, when something stands between. */
  through?: (connection: PostgresConnection) => Promise<PostgresConnection>
}

export const request = async (url: string, init?: RequestInit): Promise<Answer> => {
  const response = await fetch(url, { redirect: 'manual', ...init })
  const text = await response.text()
  const isJson = /[/+]json\b/.test(response.headers.get('content-type') ?? '')
  return { status: response.status, headers: response.headers, body: isJson && text !== '' ? JSON.parse(text) : text }
}

export const basic = ({ id, secret }: TestApplication): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret ?? '')}`).toString('base64')}`

export const formOf = (values: FormValues): URLSearchParams => {
  const form = new URLSearchParams()
  for (const [name, value = []] of Object.entries(values)) for (const item of [value].flat()) form.append(name, item)
  return form
}

/** An issuer with its own database, listening on free ports of 127.0.0.1. `close()` it. */
export const startTestIssuer = async (options: TestIssuerOptions = {}): Promise<TestIssuer> => {
  const test = options.test ?? (await createTestDatabase())
  const lines: string[] = []
  const destination = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  })
  const logger = createLogger({ name: 'issuer', level: 'debug', destination })
  const bootstrap = { id: newId(), secret: randomBytes(32).toString('base64url') }
  const config: IssuerConfig = {
    host: '127.0.0.1',
    port: 0,
    baseUrl: undefined,
    trustedProxies: [],
    keyEncryptionKey: randomBytes(32),
    previousKeyEncryptionKey: undefined,
    signingAlgorithm: 'ES256',
    subjectTokenTtl: 600,
    refreshTokenLeeway: 10,
    interactionsPerAddress: 0,
    managementApiIndicators: [],
    bootstrapClientId: bootstrap.id,
    bootstrapClientSecret: new Secret(bootstrap.secret),
    webhookTargets: { allowedNetworks: [], allowHttp: false },
    ...options.config,
  }
  const { keyEncryptionKey: current, signingAlgorithm } = config
  if (signingAlgorithm !== 'RS256') await giveIdTokenKey(test.database.query, createEnvelope({ current }))
  const running: { issuer: RunningIssuer; database: Database }[] = []
  const connection = (await options.through?.(test.connection)) ?? test.connection
  const startInstance = async () => {
    const sharesOurs = running.length === 0 && connection === test.connection
    const database = sharesOurs ? test.database : createDatabase({ connection, logger: silentLogger })
    const baseUrl = config.baseUrl ?? running[0]?.issuer.baseUrl
    const issuer = await startIssuer({
      config: { ...config, baseUrl },
      database,
      events: options.events ?? { wake() {} },
      logger,
      ...(options.hashes ? {} : { passwords }),
      shippedPolicies: await shipped(),
      metrics: createMetrics(),
      health: createHealth(),
      ...(options.now ? { now: options.now } : {}),
      ...(options.policies ? { policies: options.policies } : {}),
      console: { folder: options.consoleFolder, gateways: options.consoleGateways ?? (() => []) },
    })
    running.push({ issuer, database })
  }
  for (let count = options.instances ?? 1; count > 0; count--) await startInstance()

  const first = running[0]!.issuer
  const urls = running.map(({ issuer }) => issuer.url)
  const managementResource = `${first.baseUrl}/api`
  const keys = createRemoteJWKSet(new URL(`${first.url}/oidc/jwks`))

  const token: TestIssuer['token'] = (client, form, { instance = 0 } = {}) =>
    request(`${urls[instance]}/oidc/token`, {
      method: 'POST',
      headers: client?.secret === undefined ? {} : { authorization: basic(client) },
      body: formOf({ ...(client && client.secret === undefined ? { client_id: client.id } : {}), ...form }),
    })
  const accessTokenOf = (answer: Answer): string => {
    if (answer.status !== 200) throw new Error(`no token: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body.access_token
  }
  const clientToken: TestIssuer['clientToken'] = async (client, resource, scope) =>
    accessTokenOf(await token(client, { grant_type: 'client_credentials', resource, scope }))
  const managementToken = (scope = 'all') => clientToken(bootstrap, managementResource, scope)
  let known: string | undefined
  const api: TestIssuer['api'] = async (method, path, body, { token: own, instance = 0, headers } = {}) => {
    const call = (bearer: string | null) =>
      request(`${urls[instance]}/api${path}`, {
        method,
        headers: {
          ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    if (own !== undefined) return call(own)
    known ??= await managementToken()
    const answer = await call(known)
    if (answer.status !== 401) return answer
    // Its time is over, or its key is gone.
    known = await managementToken()
    return call(known)
  }
  const subjectToken: TestIssuer['subjectToken'] = async (userId, members) => {
    const answer = await api('POST', '/subject-tokens', { userId, ...members })
    if (answer.status !== 201) throw new Error(`no subject token: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body.subjectToken
  }
  const exchange: TestIssuer['exchange'] = (client, subject, form, instance) =>
    token(
      client,
      {
        grant_type: tokenExchange,
        client_id: client.id,
        subject_token: subject,
        subject_token_type: accessTokenType,
        ...form,
      },
      instance,
    )

  const factories = createFactories(test.database)

  return {
    ...factories,
    url: first.url,
    urls,
    baseUrl: first.baseUrl,
    issuer: `${first.baseUrl}/oidc`,
    managementResource,
    bootstrap,
    database: test.database,
    instances: running.map(({ issuer }) => issuer),
    logged: () => lines.join(''),
    token,
    clientToken,
    managementToken,
    api,
    subjectToken,
    exchange,
    async actorToken(client, userId) {
      const token = accessTokenOf(await exchange(client, await subjectToken(userId), { scope: 'openid' }))
      // What is opened with it ends with it: so that this never comes first.
      await factories.sql(`UPDATE opaque_tokens SET expires_at = expires_at + interval '1 hour' WHERE user_id = $1`, [
        userId,
      ])
      return token
    },
    verify: async (jwt, audience) =>
      (await jwtVerify(jwt, keys, { issuer: `${first.baseUrl}/oidc`, audience, typ: 'at+jwt' })).payload,
    async close() {
      for (const { issuer } of running.toReversed()) await issuer.close()
      for (const { database } of running) if (database !== test.database) await database.close()
      await test.close()
    },
  }
}
