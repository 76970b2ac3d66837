import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { z } from 'zod'
import type { VerifiedClaims } from '../platform/jwt/verify.ts'
import { createLogger, type Logger } from '../platform/logger.ts'
import { createMetrics, type Metrics } from '../platform/metrics.ts'
import { StartupError } from '../platform/startup-error.ts'
import type { Decision, PolicyInput } from '../policies/decide.ts'
import { isAddress } from '../policies/origin.ts'
import { parseGatewayConfig } from './config/load.ts'
import type { gatewayFile } from './config/settings/file.ts'
import { issuer as issuerSettings } from './config/settings/issuer.ts'
import type { access } from './config/settings/route.ts'
import { type GuardedRequest, rewriteRequest, targetOf } from './express-request.ts'
import { createGateway, type Gateway } from './gateway.ts'
import { createFail, guardStages } from './pipeline.ts'
import { problem } from './refusals/problems.ts'
import { newRequestContext } from './request/request-context.ts'
import { createSharedParts } from './shared-parts.ts'

type ConfigurationFile = z.input<typeof gatewayFile>
type UpstreamMembers = NonNullable<ConfigurationFile['upstreams']>[string]
/** The settings of a route that are about who may ask: each is an option of a guard. */
type AccessMembers = z.input<z.ZodObject<typeof access>>

/** Options are only read, so lists may be constants (`as const`). */
type ReadOnlyLists<Members> = { [Name in keyof Members]: ReadOnlyList<Members[Name]> }
type ReadOnlyList<Value> = Value extends (infer Item)[] ? readonly Item[] : Value

/** An entry of `issuers:` in `gateway.yaml`. */
export type IssuerOptions = NonNullable<ConfigurationFile['issuers']>[number]

/**
 * What may differ from one guard to another of the same application. Members mean what they mean for a route of
 * `gateway.yaml`.
 */
export interface RouteOptions extends Omit<ReadOnlyLists<AccessMembers>, 'audience'> {
  /** For logs, metrics and policies. Default `protected`. */
  id?: string
  /** Any of them. */
  audience: string | readonly string[]
  /** What the application takes for the same, for `folded` of the policy's input. Default: what Express does. */
  pathEquality?: UpstreamMembers['pathEquality']
}

/**
 * Members mean what they mean in `gateway.yaml`, durations and defaults too. Paths are relative to the working
 * directory.
 */
export interface ProtectOptions extends RouteOptions, Partial<Omit<IssuerOptions, 'issuer'>> {
  /**
   * The exact `iss`, or several issuers. What is set for one issuer beside it (`jwksUri`, `client`, …) holds for each
   * of a list.
   */
  issuer: string | readonly (string | IssuerOptions)[]
  /**
   * A folder of rules, a bundle file or its address, or all members of `policies:`. Default: the policies that come
   * with the package.
   */
  policies?: string | ConfigurationFile['policies']
  decisionLog?: ConfigurationFile['decisionLog']
  accessLog?: ConfigurationFile['accessLog']
  limits?: ConfigurationFile['limits']
  trustedProxies?: readonly string[]
  forwardedBy?: ConfigurationFile['forwardedBy']
  /** Insecure settings that are meant, by name. */
  allowInsecure?: ConfigurationFile['allowInsecure']
  /** Default: warnings and errors as JSON lines on stdout. */
  logger?: Logger
  /** Where the guard's metrics are counted. Default: nowhere that could be read. */
  metrics?: Metrics
}

/**
 * Who is asking, for the handlers behind a guard: the members of the policy input that come from the token, and the
 * decision.
 */
export interface RequestAuth extends Required<Pick<PolicyInput, 'token' | 'subject'>> {
  /** Who acts for the subject; absent when nobody does. */
  actor?: PolicyInput['actor']
  client?: PolicyInput['client']
  organization?: PolicyInput['organization']
  claims: VerifiedClaims
  decision: Decision
}

declare global {
  namespace Express {
    interface Request {
      /** Set by a guard of `surrogate/gateway`. */
      auth?: RequestAuth
    }
  }
}

export interface Guard {
  (request: GuardedRequest, response: ServerResponse, next: (error?: unknown) => void): void
  /**
   * Resolves when keys, revocations and policies are loaded; rejects when the policies cannot be used. Until then
   * requests wait, 5 s at most.
   */
  ready: Promise<void>
  /** Another guard for the same issuers: keys, revocations and policies are shared. Closed with this one. */
  with(options: Partial<RouteOptions>): Guard
  /** What a readiness check would ask, by name. Empty until the policies are loaded. */
  checks(): Record<string, { ok: boolean; detail?: string }>
  /** Opens the files of logs anew, after they were moved away. */
  reopenLogs(): void
  close(): Promise<void>
}

/** How long requests wait for the guard to be ready, in ms. After that they are served with what has loaded. */
const longestWait = 5_000

/**
 * Middleware for Express and everything that calls handlers the same way: the gateway's pipeline with the next handler
 * in the place of the upstream. A refused request is answered as the gateway answers it. What gets through has
 * `request.auth`, the canonical URL, `x-auth-*` fields that can be believed, and no others of that kind;
 * `x-forwarded-*` are left to the framework's own trust setting. Throws `StartupError` for options that cannot be
 * right.
 */
export const protect = (options: ProtectOptions): Guard => {
  const { logger = createLogger({ name: 'surrogate', level: 'warn' }), metrics = createMetrics() } = options
  const shared = createSharedParts()
  const fail = createFail({ logger })

  const guardWith = (wanted: ProtectOptions): Guard => {
    const derived: Guard[] = []
    let gateway: Gateway | undefined
    /** Set once requests need not wait. */
    let serving: Gateway | undefined
    const opening = createGateway({ config: configOf(wanted), logger, metrics, shared, stages: guardStages })
    const ready = opening.then((made) => {
      gateway = made
      return made.ready
    })
    // Whoever awaits `ready` gets the error too; requests are refused.
    ready.catch((error: unknown) => logger.error({ err: error }, 'the guard cannot start'))
    const begun = opening.then(async (made) => {
      await Promise.race([made.ready.catch(() => {}), delay(longestWait, undefined, { ref: false })])
      serving = made
      return made
    })
    begun.catch(() => {})

    const guard = (request: GuardedRequest, response: ServerResponse, next: (error?: unknown) => void): void => {
      const context = newRequestContext(request, response, targetOf(request), (passed) => {
        rewriteRequest(request, passed)
        next()
      })
      if (serving) serving.start(context)
      else {
        begun.then(
          (made) => made.start(context),
          (cause: unknown) => fail(context, problem('server.unavailable', { cause })),
        )
      }
    }
    return Object.assign(guard, {
      ready,
      with(changes: Partial<RouteOptions>) {
        const other = guardWith({ ...wanted, ...changes })
        derived.push(other)
        return other
      },
      checks: () => {
        const checks = Object.entries(gateway?.checks ?? {})
        return Object.fromEntries(checks.map(([name, check]) => [name, check()]))
      },
      reopenLogs: () => {
        gateway?.reopenLogs()
        for (const other of derived) other.reopenLogs()
      },
      async close() {
        await Promise.all([...derived.map((other) => other.close()), opening.then((made) => made.close())])
      },
    })
  }
  return guardWith(options)
}

/** Its defaults: `case sensitive routing` and `strict routing` are off. */
const asExpress = { case: 'insensitive', trailingSlash: 'ignore' } as const

/** Members of the file that are options by themselves. */
const ofFile = ['decisionLog', 'accessLog', 'limits', 'trustedProxies', 'forwardedBy', 'allowInsecure'] as const

const configOf = (options: ProtectOptions) => {
  const { issuer, audience, policies, pathEquality, logger: _logger, metrics: _metrics, ...members } = options
  const [forEach, others] = divided(members, Object.keys(issuerSettings.shape))
  refuseProxySettings(members)
  // What is no option at all is left among the members of the route, where it is refused.
  const [more, route] = divided(others, ofFile)
  const issuers = [issuer].flat().map((one) => ({ ...forEach, ...(typeof one === 'string' ? { issuer: one } : one) }))
  const file = {
    version: 1,
    ...more,
    issuers,
    policies: typeof policies === 'string' ? { [isAddress(policies) ? 'bundle' : 'path']: policies } : policies,
    // Documents at well-known paths are the application's own.
    resourceMetadata: false,
    // A route must name an upstream; nothing is sent to this one.
    upstreams: { next: { url: 'http://localhost', pathEquality: { ...asExpress, ...pathEquality } } },
    // A guard is one route, and `issuer` says whose tokens it takes.
    routes: [
      {
        id: 'protected',
        issuers: issuers.map((one) => one.issuer),
        ...route,
        path: '/**',
        audience: [audience].flat(),
        upstream: 'next',
      },
    ],
  }
  return parseGatewayConfig(JSON.stringify(file), { file: join(process.cwd(), 'protect'), env: {} })
}

/** Whoever is behind the guard reads the body itself, before or after it. */
const refuseProxySettings = (members: object): void => {
  if (!Object.hasOwn(members, 'policyBody')) return
  throw new StartupError('protect: policyBody is a setting of the gateway as a proxy.', {
    hint: 'Check the body in the handler, or run surrogate gateway before the application.',
  })
}

/** The members of these names, and the others. */
const divided = (members: object, names: readonly string[]): [object, object] => {
  const isNamed = ([name]: [string, unknown]) => names.includes(name)
  const all = Object.entries(members)
  return [Object.fromEntries(all.filter(isNamed)), Object.fromEntries(all.filter((entry) => !isNamed(entry)))]
}
