import type { RequestListener } from 'node:http'
import type { Clock } from '../platform/clock.ts'
import type { Database } from '../platform/database/database.ts'
import type { Health } from '../platform/health.ts'
import { listen } from '../platform/http/http-server.ts'
import { isPlainHttp } from '../platform/http/plain-http.ts'
import { createLifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { PolicySet } from '../policies/policy-set.ts'
import type { SignInShadow } from '../policies/shadow.ts'
import { openSandbox } from './claims/sandbox/open-sandbox.ts'
import type { IssuerConfig } from './config.ts'
import type { Gateway } from './console/gateways/gateways.ts'
import { createPasswordHasher, type PasswordHasher } from './directory/users/password.ts'
import type { BootstrapCredentials } from './maintenance/bootstrap.ts'
import { openEndpoints } from './open-endpoints.ts'
import { sendJson } from './protocol/answers.ts'

export interface IssuerOptions {
  config: IssuerConfig
  /** Migrated. Stays open when the issuer closes. */
  database: Database
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** Runs when something was revoked, here or at another instance. */
  onRevocations?: () => void
  logger: Logger
  metrics: Metrics
  health: Health
  now?: Clock
  /** Default: one of its own, in threads. Stays open when the issuer closes. */
  passwords?: PasswordHasher
  /** Absent: impersonation is the integrator's decision alone. */
  policies?: { current(): PolicySet }
  /** Those that come with Surrogate, where they are loaded already. */
  shippedPolicies?: PolicySet
  /** Where the built console is, and gateways that it asks besides those of the settings. */
  console?: { folder: string | undefined; gateways?: () => readonly Gateway[] }
  /** Rules about signing in that are asked beside the live ones, and not obeyed. Stays open when the issuer closes. */
  signInShadow?: Pick<SignInShadow, 'compare'>
}

export interface RunningIssuer {
  /** Where it listens. */
  url: string
  port: number
  /** Where clients reach it: `BASE_URL`. The `iss` of its tokens is this and `/oidc`. */
  baseUrl: string
  /** Where browsers reach the console: an origin. Undefined: there is none. */
  consoleUrl: string | undefined
  /** Present on the first start when none were configured: to be shown once. */
  bootstrap?: BootstrapCredentials
  close(): Promise<void>
}

/** In ms: a request that has not arrived whole by then is ended (slowloris). */
const timeouts = { requestTimeout: 30_000, headersTimeout: 15_000, keepAliveTimeout: 65_000 }

/** The token issuer and the Management API on one listener. Several may run on one database. */
export const startIssuer = async (options: IssuerOptions): Promise<RunningIssuer> => {
  const { config, database, logger, metrics, health } = options
  const lifecycle = createLifecycle({ logger })
  // Stops after the listener: requests that are under way still need it.
  const sandbox = openSandbox({ settings: config.claims, logger, metrics, onStop: lifecycle.onStop })
  const ownPasswords = createPasswordHasher()
  lifecycle.onStop('password hashing', () => ownPasswords.close())
  const { passwords = ownPasswords } = options
  // The listener comes first: with port 0 nothing can be named before it has one. Until all is ready it answers 503.
  let handler: RequestListener = starting
  const server = await listen({
    name: 'the issuer',
    host: config.host,
    port: config.port,
    setting: 'PORT',
    handler: (request, response) => handler(request, response),
    server: timeouts,
  })
  lifecycle.onStop('issuer listener', () => server.close())

  try {
    const baseUrl = config.baseUrl ?? `http://localhost:${server.port}`
    const opened = await openEndpoints({ ...options, baseUrl, sandbox, passwords, onStop: lifecycle.onStop })
    handler = opened.handler
    if (opened.consoleHandler && config.console?.port !== undefined) {
      const consoleServer = await listen({
        name: 'the console',
        host: config.host,
        port: config.console.port,
        setting: 'CONSOLE',
        handler: opened.consoleHandler,
        server: timeouts,
      })
      lifecycle.onStop('console listener', () => consoleServer.close())
    }
    health.addCheck('database', async () => {
      await database.ping()
      return { ok: true }
    })
    if (isPlainHttp(baseUrl))
      logger.warn({ baseUrl }, 'BASE_URL is plain http: passwords, cookies and tokens cross networks in clear')
    logger.info({ url: server.url, issuer: `${baseUrl}/oidc` }, 'issuer ready')
    return {
      url: server.url,
      port: server.port,
      baseUrl,
      consoleUrl: opened.consoleUrl,
      ...(opened.bootstrap ? { bootstrap: opened.bootstrap } : {}),
      close: () => lifecycle.stop(),
    }
  } catch (error) {
    await lifecycle.stop()
    throw error
  }
}

/** In the words of the token endpoint and of the Management API. */
const starting: RequestListener = (_request, response) => {
  const message = 'The issuer is starting.'
  const body = { error: 'temporarily_unavailable', error_description: message, code: 'server.unavailable', message }
  sendJson(response, 503, body, { 'Retry-After': '1' })
}
