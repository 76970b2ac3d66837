import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type Clock, systemClock } from '../platform/clock.ts'
import type { Health } from '../platform/health.ts'
import { listen } from '../platform/http-server.ts'
import { createLifecycle, type Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import { createMetrics, type Metrics } from '../platform/metrics.ts'
import { createProxyTrust } from './client-address.ts'
import type { GatewayConfig, GatewaySource } from './config.ts'
import { type Exchange, newExchange, type Stage } from './exchange.ts'
import { asksForDecision, type ForwardAuthSettings, sendRefusal } from './forward-auth.ts'
import { createIdentityAssertions, readIdentityKeys } from './identity-assertion.ts'
import { openParts } from './open-parts.ts'
import { createOpenWebSockets, type OpenWebSockets } from './open-websockets.ts'
import {
  createFail,
  createPipeline,
  forwardAuthStages,
  type PipelineParts,
  proxyStages,
  type StageParts,
} from './pipeline.ts'
import { openPolicies, openShadow, type PolicyProvider, requireEntrypoints } from './policies.ts'
import { protectedResourceDocuments } from './protected-resource.ts'
import { createReloads } from './reload.ts'
import { createRequestLogs } from './request-logs.ts'
import { createRouter } from './routes.ts'
import { createSharedParts, type SharedParts } from './shared-parts.ts'
import { isAnswering, refuseConnect, refuseUnreadable, refuseUpgrade } from './unreadable.ts'
import { opensWebSocket, upgradeExchange } from './upgrade.ts'
import { createVerifiedTokenCache } from './verified-token-cache.ts'

export { fileSource, type GatewayConfig, type GatewaySource, loadGatewayConfig, parseGatewayConfig } from './config.ts'

export type { PolicyProvider } from './policies.ts'

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
  /** What is kept when another configuration takes the place of this one. Default: nothing. */
  shared?: SharedParts
}

export interface Gateway {
  /** For `http.createServer`; the server's limits are the caller's business (`startGateway` sets them). */
  handler: RequestListener
  /** For the server's `upgrade` event, where routes have `websocket: true`; the server then needs `shouldUpgradeCallback: opensWebSocket`. */
  upgrade: (incoming: IncomingMessage, socket: Socket, head: Buffer) => void
  /** The same for an exchange that was made elsewhere. */
  start: (exchange: Exchange) => void
  /** Resolves when every issuer's keys are there, and its revocations where they are followed. */
  ready: Promise<void>
  checks: Record<string, () => { ok: boolean; detail?: string }>
  /** Ends WebSockets, with a close frame that says so, and lets no new ones open. */
  drain(): void
  /** Resolves when no request and no WebSocket is under way. */
  idle(): Promise<void>
  /** Opens log files anew, after they were moved away. */
  reopenLogs(): void
  close(): Promise<void>
}

/** Builds a gateway without a listener. Throws `StartupError` when the policies cannot be loaded or lack an entrypoint. */
export const createGateway = async (options: GatewayOptions): Promise<Gateway> => {
  const lifecycle = createLifecycle({ logger: options.logger })
  try {
    return await assemble(options, lifecycle)
  } catch (error) {
    await lifecycle.stop()
    throw error
  }
}

const assemble = async (options: GatewayOptions, lifecycle: Lifecycle): Promise<Gateway> => {
  const { config, logger, opaBin, now = systemClock, metrics = createMetrics() } = options
  const { shared = createSharedParts() } = options
  const policyParts = { config, shared, lifecycle, logger, metrics, opaBin }
  const policies = options.policies ?? (await openPolicies(policyParts))
  requireEntrypoints(config, policies.current())
  const shadow = await openShadow(policyParts)

  // Closed after everything that may still end a request.
  const logs = createRequestLogs({ config, policyRevision: () => policies.current().revision, logger, metrics })
  lifecycle.onStop('logs of requests', () => logs.close())

  const identity =
    config.identity &&
    createIdentityAssertions({
      issuer: config.identity.issuer,
      keys: await readIdentityKeys(config.identity.keyFile),
      now,
    })

  const { count, ...opened } = openParts({ config, shared, lifecycle, logger, metrics, now })
  const { issuers, revocations } = opened
  const cache = createVerifiedTokenCache()
  const tokens = metrics.gauge('surrogate_gateway_verified_tokens', 'Cached verified tokens')
  lifecycle.onStop(
    'count of tokens',
    metrics.onCollect(() => tokens.set(cache.size)),
  )
  const webSockets = countedWebSockets({ issuers, revocations, now }, lifecycle, metrics)

  const parts: StageParts = {
    ...opened,
    documents: [
      ...(config.resourceMetadata ? protectedResourceDocuments(config) : []),
      ...(identity ? [{ path: '/.well-known/surrogate/jwks.json', body: identity.jwks }] : []),
    ],
    identity,
    limits: config.limits,
    trust: createProxyTrust(config.trustedProxies, config.forwardedBy),
    router: createRouter(config.routes),
    cache,
    policies,
    shadow,
    webSockets,
    logger,
    now,
    fail: createFail({ logger }),
  }

  let underWay = 0
  let onIdle: (() => void)[] = []
  const onFinish = (exchange: Exchange) => {
    count(exchange)
    logs.write(exchange)
    if (--underWay > 0) return
    for (const resolve of onIdle) resolve()
    onIdle = []
  }
  const pass = createPipeline((options.stages ?? proxyStages)(parts), { logger, onFinish })
  const run = config.forwardAuth ? decidingFor(config.forwardAuth, parts, { logger, onFinish }, pass) : pass
  const start = (exchange: Exchange) => {
    underWay++
    run(exchange)
  }

  return {
    handler: (incoming, response) => start(newExchange(incoming, response)),
    upgrade: (incoming, socket, head) => start(upgradeExchange(incoming, socket, head)),
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
      ...(shadow && {
        'shadow policies': () => {
          const { revision, lastError } = shadow.status()
          return { ok: true, detail: lastError ?? `revision ${revision}` }
        },
      }),
    },
    drain: () => webSockets.drain(),
    idle: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))),
    reopenLogs: logs.reopen,
    close: () => lifecycle.stop(),
  }
}

const countedWebSockets = (
  parts: Omit<Parameters<typeof createOpenWebSockets>[0], 'onEnd'>,
  lifecycle: Lifecycle,
  metrics: Metrics,
): OpenWebSockets => {
  const ended = metrics.counter('surrogate_gateway_websockets_ended_total', 'WebSockets that the gateway ended', [
    'reason',
  ])
  const gauge = metrics.gauge('surrogate_gateway_websockets', 'Open WebSockets')
  const webSockets = createOpenWebSockets({ ...parts, onEnd: (reason) => ended.inc({ reason }) })
  // Several configurations may have some: each adds its own to what the one before it set.
  let shown = 0
  const stop = metrics.onCollect(() => {
    gauge.inc(webSockets.size - shown)
    shown = webSockets.size
  })
  lifecycle.onStop('WebSockets', () => {
    stop()
    gauge.dec(shown)
    webSockets.close()
  })
  return webSockets
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

/**
 * Starts the gateway's public listener. The admin listener is the caller's. Answers 503 `keys_unavailable` until an issuer's keys are
 * there, and is not ready in `health` until then. `close` lets `drain.delay` pass, stops accepting, ends WebSockets with 1001, gives
 * running requests `drain.timeout`, and then releases everything.
 */
export const startGateway = async (
  options: GatewayOptions & {
    metrics: Metrics
    health: Health
    /** What moves the listener, named when its port is taken. Default `listen.port`. */
    portSetting?: string | undefined
    /** Where the configuration came from, to follow it. */
    source?: GatewaySource | undefined
  },
): Promise<RunningGateway> => {
  const { health, metrics, logger, source } = options
  const shared = createSharedParts()
  const build = (config: GatewayConfig) => createGateway({ ...options, config, shared })
  let { config } = options
  let current = await build(config)
  /** Those that still have requests of before a reload. */
  const retired = new Set<Gateway>()
  const handler: RequestListener = (incoming, response) => current.handler(incoming, response)
  const upgraded = new Set<Socket>()
  let draining = false

  const running = await listen({
    name: 'the gateway',
    handler,
    host: config.listen.host,
    port: config.listen.port,
    setting: options.portSetting ?? 'listen.port',
    server: {
      maxHeaderSize: config.limits.headerSize,
      connectionsCheckingInterval: Math.min(config.limits.headersTimeout, config.limits.requestTimeout, 2_000),
      shouldUpgradeCallback: opensWebSocket,
      // Requests without Host must end as our 400, with a problem document.
      requireHostHeader: false,
      joinDuplicateHeaders: false,
      // Whatever NODE_OPTIONS says.
      insecureHTTPParser: false,
      // A request without a body has no stream to be read to its end.
      optimizeEmptyRequests: true,
      noDelay: true,
      ...timeouts(config),
    },
  }).catch(async (error: unknown) => {
    await current.close()
    throw error
  })
  const { server } = running
  // Fields past Node's own maximum are dropped without a word; ours is checked against what was really received.
  server.maxHeadersCount = 0
  server.on('checkContinue', handler)
  server.on('checkExpectation', handler)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseUnreadable(error, socket as Socket))
  server.on('connect', (_request, socket) => refuseConnect(socket as Socket))
  server.on('upgrade', (incoming, duplex, head) => {
    const socket = duplex as Socket
    // RFC 6455 §4.1: no client opens a WebSocket behind another request; the socket still belongs to the answer to that. And Node before
    // 24.9 hands over whatever names Upgrade, its body unread.
    if (isAnswering(socket) || !opensWebSocket(incoming)) return refuseUpgrade(socket)
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    current.upgrade(incoming, socket, head)
  })
  server.prependListener('request', (_request, response) => {
    if (draining) response.shouldKeepAlive = false
  })
  const showChecks = ({ checks }: Gateway) => {
    for (const [name, check] of Object.entries(checks)) health.addCheck(`gateway ${name}`, check)
  }
  showChecks(current)

  /** From here on a request gets the new configuration, and one that has begun ends with the one it began with. */
  const swap = (next: Gateway, nextConfig: GatewayConfig) => {
    const before = current
    current = next
    warnOfRestart(config, nextConfig, logger)
    config = nextConfig
    Object.assign(server, timeouts(nextConfig))
    for (const name of Object.keys(before.checks)) health.removeCheck(`gateway ${name}`)
    showChecks(next)
    retired.add(before)
    void before
      .idle()
      .then(() => before.close())
      .finally(() => retired.delete(before))
  }

  const reloads =
    source &&
    createReloads({
      file: source.file,
      running: config,
      load: source.load,
      async apply(nextConfig, signal) {
        const next = await build(nextConfig)
        const superseded = once(signal, 'abort')
        // Not to be served by a gateway that has yet to learn which tokens are good.
        if (!signal.aborted) await Promise.race([next.ready, superseded])
        if (signal.aborted) return next.close()
        swap(next, nextConfig)
      },
      logger,
      metrics,
    })
  if (reloads) health.addCheck('gateway configuration', reloads.status)
  logger.info({ url: running.url, revision: config.revision }, 'the gateway listens')

  return {
    url: running.url,
    port: running.port,
    ready: current.ready,
    reload: async () => reloads?.reload(),
    reopenLogs() {
      for (const gateway of [current, ...retired]) gateway.reopenLogs()
    },
    async close() {
      draining = true
      const reloadsEnded = reloads?.close()
      const { delay: pause, timeout } = config.drain
      if (pause > 0) await delay(pause)
      for (const gateway of [current, ...retired]) gateway.drain()
      const cutOff = setTimeout(() => {
        for (const socket of upgraded) socket.destroy()
      }, timeout)
      await running.close(timeout)
      clearTimeout(cutOff)
      await reloadsEnded
      await Promise.all([current, ...retired].map((gateway) => gateway.close()))
    },
  }
}

export interface RunningGateway {
  url: string
  port: number
  ready: Promise<void>
  /** Reads the configuration again; see `Reloads`. Does nothing without a `source`. */
  reload(): Promise<void>
  /** Opens log files anew, after they were moved away. */
  reopenLogs(): void
  close(): Promise<void>
}

const timeouts = ({ limits }: GatewayConfig) => {
  const { headersTimeout, requestTimeout, keepAliveTimeout } = limits
  return { headersTimeout, requestTimeout, keepAliveTimeout }
}

/** What belongs to listeners that are open. */
const restartMembers = {
  listen: ({ listen: address }: GatewayConfig) => address,
  admin: ({ admin }: GatewayConfig) => admin,
  'limits.headerSize': ({ limits }: GatewayConfig) => limits.headerSize,
} as const

const warnOfRestart = (before: GatewayConfig, next: GatewayConfig, logger: Logger): void => {
  const members = Object.entries(restartMembers)
    .filter(([, read]) => JSON.stringify(read(before)) !== JSON.stringify(read(next)))
    .map(([name]) => name)
  if (members.length > 0) logger.warn({ members }, 'these members of the configuration count from the next start')
}
