import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, systemClock } from '../platform/clock.ts'
import type { Health } from '../platform/health.ts'
import { listen } from '../platform/http-server.ts'
import { createJwksClient } from '../platform/jwt/jwks-client.ts'
import { createLifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import { createMetrics, type Metrics } from '../platform/metrics.ts'
import { StartupError } from '../platform/startup-error.ts'
import { type PolicySet, watchPolicies } from '../policies/decide.ts'
import { createProxyTrust } from './client-address.ts'
import type { GatewayConfig } from './config.ts'
import { createDecisionLog } from './decision-log.ts'
import { type Exchange, newExchange, type Stage } from './exchange.ts'
import { asksForDecision, type ForwardAuthSettings, sendRefusal } from './forward-auth.ts'
import { createIdentityAssertions, readIdentityKeys } from './identity-assertion.ts'
import { createPersonalAccessTokens } from './personal-access-tokens.ts'
import {
  createFail,
  createPipeline,
  forwardAuthStages,
  type PipelineParts,
  proxyStages,
  type StageParts,
} from './pipeline.ts'
import { protectedResourceDocuments } from './protected-resource.ts'
import { createRequestMetrics } from './request-metrics.ts'
import { createRevocations, type Revocations } from './revocations.ts'
import { createRouter } from './routes.ts'
import { refuseConnect, refuseUnreadable } from './unreadable.ts'
import { createUpstream } from './upstreams.ts'
import { createVerifiedTokenCache } from './verified-token-cache.ts'

export { type GatewayConfig, loadGatewayConfig, parseGatewayConfig } from './config.ts'

/** Where decisions come from: a watched folder, or a fixed set behind a function. */
export interface PolicyProvider {
  current(): PolicySet
  status?(): { revision: string; lastError?: string }
  close?(): Promise<void>
}

export interface GatewayOptions {
  config: GatewayConfig
  /** Default: what `config.policies` names, watched for changes; closed with the gateway. */
  policies?: PolicyProvider
  logger: Logger
  metrics?: Metrics
  now?: Clock
  /** The setting OPA_BIN, for rules that must be compiled. */
  opaBin?: string
  /** Default: those of the proxy. */
  stages?: (parts: StageParts) => readonly Stage[]
}

export interface Gateway {
  /** For `http.createServer`; the server's limits are the caller's business (`startGateway` sets them). */
  handler: RequestListener
  /** The same for an exchange that was made elsewhere. */
  start: (exchange: Exchange) => void
  /** Resolves when every issuer's keys are there, and its revocations where they are followed. */
  ready: Promise<void>
  checks: Record<string, () => { ok: boolean; detail?: string }>
  close(): Promise<void>
}

/** Builds a gateway without a listener. Throws `StartupError` when the policies cannot be loaded or lack an entrypoint. */
export const createGateway = async (options: GatewayOptions): Promise<Gateway> => {
  const { config, logger, now = systemClock, metrics = createMetrics() } = options
  const lifecycle = createLifecycle({ logger })
  const policies = options.policies ?? (await loadConfiguredPolicies(options))
  if (!options.policies) lifecycle.onStop('policies', () => policies.close?.())
  requireEntrypoints(config, policies.current())

  // Closed after everything that may still end a request.
  const decisionLog =
    config.decisionLog &&
    createDecisionLog({
      settings: config.decisionLog,
      labels: { app: 'surrogate-gateway', config: config.revision },
      revision: () => policies.current().revision,
      logger,
    })
  if (decisionLog) lifecycle.onStop('decision log', () => decisionLog.close())

  const issuers = config.issuers.map(({ issuer, jwksUri, algorithms, typ, clockSkew }) => {
    const keys = createJwksClient({ issuer, jwksUri, logger, metrics, now })
    lifecycle.onStop(`keys of ${issuer}`, () => keys.close())
    return { issuer, keys, algorithms, typ, clockSkewSeconds: clockSkew / 1000 }
  })
  const revocations = followedFeeds({ config, logger, metrics, now })
  for (const { issuer, close } of revocations) lifecycle.onStop(`revocations of ${issuer}`, close)
  const personalAccessTokens = exchangedAtIssuer({ config, metrics, now })
  if (personalAccessTokens) lifecycle.onStop('personal access tokens', personalAccessTokens.close)
  const upstreams = new Map(
    Object.entries(config.upstreams).map(([name, settings]) => [name, createUpstream(name, settings)]),
  )
  for (const { name, close } of upstreams.values()) lifecycle.onStop(`upstream ${name}`, close)

  metrics.onCollect(() => {
    const gauge = metrics.gauge('surrogate_gateway_upstream_running', 'Requests with an upstream now', ['upstream'])
    for (const { name, running } of upstreams.values()) gauge.set({ upstream: name }, running.size)
  })
  const count = createRequestMetrics(metrics)
  const cache = createVerifiedTokenCache()
  metrics.onCollect(() => metrics.gauge('surrogate_gateway_verified_tokens', 'Cached verified tokens').set(cache.size))

  const identity =
    config.identity &&
    createIdentityAssertions({
      issuer: config.identity.issuer,
      keys: await readIdentityKeys(config.identity.keyFile),
      now,
    })

  const parts: StageParts = {
    documents: [
      ...(config.resourceMetadata ? protectedResourceDocuments(config) : []),
      ...(identity ? [{ path: '/.well-known/surrogate/jwks.json', body: identity.jwks }] : []),
    ],
    identity,
    limits: config.limits,
    trust: createProxyTrust(config.trustedProxies),
    router: createRouter(config.routes),
    personalAccessTokens,
    issuers,
    revocations,
    cache,
    policies,
    upstreams,
    logger,
    now,
    fail: createFail({ logger }),
  }

  const onFinish = (exchange: Exchange) => {
    count(exchange)
    decisionLog?.write(exchange)
  }
  const pass = createPipeline((options.stages ?? proxyStages)(parts), { logger, onFinish })
  const start = config.forwardAuth ? decidingFor(config.forwardAuth, parts, { logger, onFinish }, pass) : pass

  return {
    handler: (incoming, response) => start(newExchange(incoming, response)),
    start,
    ready: Promise.all([...issuers.map(({ keys }) => keys.ready), ...revocations.map(({ ready }) => ready)]).then(
      () => {},
    ),
    checks: {
      ...Object.fromEntries(issuers.map(({ issuer, keys }) => [`keys ${issuer}`, () => keys.status()])),
      ...Object.fromEntries(revocations.map(({ issuer, status }) => [`revocations ${issuer}`, status])),
      policies: () => {
        const { revision, lastError } = policies.status?.() ?? { revision: policies.current().revision }
        return { ok: true, detail: lastError ?? `revision ${revision}` }
      },
    },
    close: () => lifecycle.stop(),
  }
}

/** Requests to the path of forward-auth ask for a decision, all others pass through. */
const decidingFor = (
  settings: ForwardAuthSettings,
  parts: StageParts,
  options: PipelineParts,
  pass: (exchange: Exchange) => void,
) => {
  const asks = asksForDecision(settings)
  const decide = createPipeline(forwardAuthStages(settings, parts), { ...options, send: sendRefusal(settings) })
  return (exchange: Exchange) => (asks(exchange.target) ? decide : pass)(exchange)
}

/** The feeds of the issuers that have one; the configuration is refused when one of them has no client to read it with. */
const followedFeeds = ({ config, ...parts }: Pick<Required<GatewayOptions>, 'config' | 'logger' | 'metrics' | 'now'>) =>
  config.issuers.flatMap(({ issuer, client, revocations }): Revocations[] =>
    revocations?.mode === 'feed' && client ? [createRevocations({ issuer, client, ...revocations, ...parts })] : [],
  )

/** By the first issuer that has a client; undefined when no route accepts them. */
const exchangedAtIssuer = ({ config, ...parts }: Pick<Required<GatewayOptions>, 'config' | 'metrics' | 'now'>) => {
  if (!config.routes.some(({ acceptPersonalAccessTokens }) => acceptPersonalAccessTokens)) return undefined
  const [made] = config.issuers.flatMap(({ issuer, client, tokenEndpoint = `${issuer}/token` }) =>
    client ? [{ client, tokenEndpoint }] : [],
  )
  return made && createPersonalAccessTokens({ ...made, ...parts })
}

const loadConfiguredPolicies = async ({ config, logger, opaBin }: GatewayOptions): Promise<PolicyProvider> => {
  const { path } = config.policies
  try {
    const needed = [...new Set(config.routes.map(({ entrypoint }) => entrypoint))]
    return await watchPolicies({ path, logger, opaBin, needed })
  } catch (cause) {
    throw new StartupError(`The policies at ${path} cannot be used: ${(cause as Error).message}`, {
      hint: 'surrogate policy check shows what is wrong with rules, surrogate policy build makes their bundle.',
      cause,
    })
  }
}

const requireEntrypoints = ({ routes }: GatewayConfig, { entrypoints }: PolicySet): void => {
  const missing = routes.filter(({ entrypoint }) => !entrypoints.includes(entrypoint))
  if (missing.length === 0) return
  const lines = missing.map(({ id, entrypoint }) => `  route ${id}: ${entrypoint}`)
  throw new StartupError(`The policies lack these entrypoints:\n${lines.join('\n')}`, {
    hint: `Annotate the rule with "# METADATA" and "# entrypoint: true". There are: ${entrypoints.join(', ')}`,
  })
}

/**
 * Starts the gateway's public listener. The admin listener is the caller's. Answers 503 `keys_unavailable` until an issuer's keys are
 * there, and is not ready in `health` until then. `close` stops accepting, lets running requests finish, then releases everything.
 */
export const startGateway = async (
  options: GatewayOptions & {
    metrics: Metrics
    health: Health
    /** What moves the listener, named when its port is taken. Default `listen.port`. */
    portSetting?: string | undefined
  },
): Promise<{ url: string; port: number; ready: Promise<void>; close(): Promise<void> }> => {
  const { config, health } = options
  const gateway = await createGateway(options)
  const { headerSize, headersTimeout, requestTimeout } = config.limits
  const running = await listen({
    name: 'the gateway',
    handler: gateway.handler,
    host: config.listen.host,
    port: config.listen.port,
    setting: options.portSetting ?? 'listen.port',
    server: {
      maxHeaderSize: headerSize,
      headersTimeout,
      requestTimeout,
      connectionsCheckingInterval: Math.min(headersTimeout, requestTimeout, 2_000),
      // Requests without Host must end as our 400, with a problem document.
      requireHostHeader: false,
      joinDuplicateHeaders: false,
      noDelay: true,
    },
  }).catch(async (error: unknown) => {
    await gateway.close()
    throw error
  })
  const { server } = running
  // Fields past Node's own maximum are dropped without a word; ours is checked against what was really received.
  server.maxHeadersCount = 0
  server.on('checkContinue', gateway.handler)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseUnreadable(error, socket as Socket))
  server.on('connect', (_request, socket) => refuseConnect(socket as Socket))
  let draining = false
  server.prependListener('request', (_request, response) => {
    if (draining) response.shouldKeepAlive = false
  })
  for (const [name, check] of Object.entries(gateway.checks)) health.addCheck(`gateway ${name}`, check)

  return {
    url: running.url,
    port: running.port,
    ready: gateway.ready,
    async close() {
      draining = true
      await running.close()
      await gateway.close()
    },
  }
}
