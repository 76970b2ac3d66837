import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { VerifiedClaims } from '../platform/jwt/verify.ts'
import { createLogger, type Logger } from '../platform/logger.ts'
import { AppError } from '../platform/problem.ts'
import type { Decision } from '../policies/decide.ts'
import { canonicalTarget } from './canonical-target.ts'
import { parseGatewayConfig } from './config.ts'
import { type Exchange, newExchange } from './exchange.ts'
import { createGateway, type Gateway } from './main.ts'
import { createFail, guardStages } from './pipeline.ts'

/** Members mean what they mean in `gateway.yaml`, durations and defaults too. */
export interface ProtectOptions {
  /** The exact `iss`. */
  issuer: string
  /** Any of them. */
  audience: string | readonly string[]
  /** All of them. */
  scopes?: readonly string[]
  /** A folder of rules or a bundle file, relative to the working directory. Default: the policies that come with the package. */
  policies?: string
  entrypoint?: string
  jwksUri?: string
  algorithms?: readonly string[]
  typ?: readonly string[]
  clockSkew?: string
  impersonation?: 'allow' | 'read-only' | 'deny'
  policyHeaders?: readonly string[]
  context?: Record<string, unknown>
  insufficientScopeStatus?: 401 | 403
  trustedProxies?: readonly string[]
  logger?: Logger
}

/** Who is asking, for the handlers behind a guard. */
export interface RequestAuth {
  claims: VerifiedClaims
  decision: Decision
}

type GuardedRequest = IncomingMessage & { originalUrl?: string; auth?: RequestAuth }

export interface Guard {
  (request: GuardedRequest, response: ServerResponse, next: (error?: unknown) => void): void
  /** Resolves when keys and policies are loaded; rejects when the options or policies cannot be used. Until then requests wait. */
  ready: Promise<void>
  close(): Promise<void>
}

/**
 * Middleware for Express and everything that calls handlers the same way: the gateway's pipeline with the next handler in the place of the
 * upstream. A refused request is answered as the gateway answers it. What gets through has `request.auth`, the canonical URL, `x-auth-*`
 * fields that can be believed, and no others of that kind; `x-forwarded-*` are left to the framework's own trust setting. Throws
 * `StartupError` for options that cannot be right.
 */
export const protect = (options: ProtectOptions): Guard => {
  const logger = options.logger ?? createLogger({ name: 'surrogate', level: 'warn' })
  const fail = createFail({ logger })
  const opening = createGateway({ config: configOf(options), logger, stages: guardStages })
  let gateway: Gateway | undefined
  const opened = opening.then((made) => {
    gateway = made
  })
  const ready = opened.then(() => gateway!.ready)
  // Told to whoever awaits it; requests are refused all the same.
  ready.catch((error: unknown) => logger.error({ err: error }, 'the guard cannot start'))

  const guard = (request: GuardedRequest, response: ServerResponse, next: (error?: unknown) => void): void => {
    const exchange = newExchange(request, response, request.originalUrl, (passed) => {
      admit(request, passed)
      next()
    })
    if (gateway) gateway.start(exchange)
    else {
      opened.then(
        () => gateway!.start(exchange),
        (cause: unknown) => fail(exchange, new AppError('server.unavailable', { cause })),
      )
    }
  }
  return Object.assign(guard, { ready, close: async () => (await opening).close() })
}

const configOf = ({ issuer, audience, policies, logger: _, ...options }: ProtectOptions) => {
  const { jwksUri, algorithms, typ, clockSkew, trustedProxies, ...route } = options
  const file = {
    version: 1,
    trustedProxies,
    issuers: [{ issuer, jwksUri, algorithms, typ, clockSkew }],
    policies: { path: policies },
    // Documents at well-known paths are the application's own.
    resourceMetadata: false,
    // Named because a route must; nothing is sent there.
    upstreams: { next: { url: 'http://localhost' } },
    routes: [{ ...route, id: 'protected', path: '/**', audience: [audience].flat(), upstream: 'next' }],
  }
  return parseGatewayConfig(JSON.stringify(file), { file: join(process.cwd(), 'protect'), env: {} })
}

/** Fields that stay although the gateway would make them anew: frameworks and handlers need those of this very request. */
const kept = new Set([
  ...[
    'host',
    'authorization',
    'connection',
    'content-length',
    'transfer-encoding',
    'expect',
    'upgrade',
    'via',
    'x-request-id',
  ],
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port'],
])

/** Gives the handlers behind the guard the request that was decided on. */
const admit = (request: GuardedRequest, exchange: Exchange): void => {
  const { path, query } = exchange.request!
  const { principal, decision, headers } = exchange
  request.originalUrl = path + query
  const rest = canonicalTarget(request.url!)
  request.url = rest.path + rest.query
  if (principal && decision) request.auth = { claims: principal.claims, decision }

  const { rawHeaders, headers: fields } = request
  const forwardable = new Set(headers!.forwardable.filter((_, index) => index % 2 === 0))
  const raw: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase()
    if (forwardable.has(name) || kept.has(name)) raw.push(rawHeaders[index]!, rawHeaders[index + 1]!)
    else delete fields[name]
  }
  const ours = [...(principal?.identityHeaders ?? []), ...Object.entries(decision?.headers ?? {}).flat()]
  for (let index = 0; index < ours.length; index += 2) {
    fields[ours[index]!] = ours[index + 1]!
    raw.push(ours[index]!, ours[index + 1]!)
  }
  request.rawHeaders = raw
}
