import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, systemClock } from '../platform/clock.ts'
import type { HealthResult } from '../platform/health.ts'
import { createLifecycle, type Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import { createMetrics, type Metrics } from '../platform/metrics.ts'
import type { PolicySet } from '../policies/decide.ts'
import { createVerifiedTokenCache } from './caller/verified-token-cache.ts'
import type { GatewayConfig } from './config/load.ts'
import { protectedResourceDocuments } from './config/resource-metadata.ts'
import type { ForwardAuthSettings } from './config/settings/file.ts'
import type { CheckAnswer } from './ext-authz/check-answer.ts'
import { checkContext } from './ext-authz/check-context.ts'
import { asksForDecision, sendRefusal } from './forward-auth.ts'
import type { Recorder } from './inspection/recorder.ts'
import { inspectIssuers, inspectSession, type SessionState, type TrustedIssuers } from './inspection/trusted-issuers.ts'
import { type GatewayInspection, inspectGateway, targetChecks } from './inspection/upstreams.ts'
import { createRequestLogs } from './logs/request-logs.ts'
import { openParts } from './open-parts.ts'
import { openPolicies, openShadow, type PolicyProvider, policyHealth, requireEntrypoints } from './open-policies.ts'
import { openTraces } from './open-telemetry.ts'
import {
  createFail,
  createPipeline,
  extAuthzStages,
  forwardAuthStages,
  type PipelineParts,
  proxyStages,
  type StageParts,
} from './pipeline.ts'
import { ownProviders, type Providers } from './providers.ts'
import type { CheckedRequest } from './request/checked-request.ts'
import { createProxyTrust } from './request/client-address.ts'
import { newRequestContext, type RequestContext, type Stage } from './request/request-context.ts'
import { newTrace } from './request/request-trace.ts'
import type { UnparsedRequest } from './request/unparsed.ts'
import { createRouter } from './routing/router.ts'
import { createSharedParts, type SharedParts } from './shared-parts.ts'
import { createIdentityAssertions, readIdentityKeys } from './upstream/identity-assertion.ts'
import { createOpenWebSockets } from './upstream/open-websockets.ts'
import { upgradeContext } from './upstream/upgrade.ts'
import { readUpstreamsTls } from './upstream/upstream-tls.ts'

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
  /** Default: those of a process of its own. */
  providers?: Providers
  /** Keeps decisions to be inspected. Default: nobody does. */
  recorder?: Pick<Recorder, 'keep' | 'onDifference'> | undefined
}

export interface Gateway {
  /** For `http.createServer`; the server's limits are the caller's business (`startGateway` sets them). */
  handler: RequestListener
  /**
   * For the server's `upgrade` event, where routes have `websocket: true`; the server then needs
   * `shouldUpgradeCallback: opensWebSocket`.
   */
  upgrade: (incoming: IncomingMessage, socket: Socket, head: Buffer) => void
  /** The same for a request whose context was made elsewhere. */
  start: (context: RequestContext) => void
  /** The same for a request that Envoy asks about. */
  check: (request: CheckedRequest, answer: CheckAnswer) => void
  /** Logs and counts what was refused on a bare socket. */
  recordUnparsed: (unparsed: UnparsedRequest) => void
  /** Resolves when every issuer's keys are there, and its revocations where they are followed. */
  ready: Promise<void>
  checks: Record<string, () => HealthResult>
  /** What answers for the upstreams, and how it is. */
  inspect(): GatewayInspection
  /** Whose tokens are taken. */
  trusted(): TrustedIssuers
  /** Whether tokens with this `sid` are refused as revoked. */
  session(sid: string): SessionState
  /** In force. */
  policies(): PolicySet
  /** Ends WebSockets, with a close frame that says so, and lets no new ones open. */
  drain(): void
  /** Resolves when no request and no WebSocket is under way. */
  idle(): Promise<void>
  /** Opens log files anew, after they were moved away. */
  reopenLogs(): void
  close(): Promise<void>
}

/**
 * Builds a gateway without a listener. Throws `StartupError` when the policies cannot be loaded or lack an entrypoint.
 */
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
  const { config, logger, opaBin, recorder, now = systemClock, metrics = createMetrics() } = options
  const { shared = createSharedParts(), providers = ownProviders } = options
  const { onDifference } = recorder ?? {}
  const policyParts = {
    config,
    shared,
    lifecycle,
    logger,
    metrics,
    opaBin,
    onDifference,
    watch: providers.watchPolicies,
  }
  const policies = options.policies ?? (await openPolicies(policyParts))
  requireEntrypoints(config, policies.current())
  const shadow = await openShadow(policyParts)

  // Both are closed after everything that may still end a request.
  const traces = await openTraces(config, { shared, lifecycle, logger, metrics })
  const logs = createRequestLogs({
    ...{ config, logger, metrics },
    policyRevision: () => policies.current().revision,
    keep: recorder?.keep,
  })
  lifecycle.onStop('logs of requests', () => logs.close())

  const identity =
    config.identity &&
    createIdentityAssertions({
      issuer: config.identity.issuer,
      keys: await readIdentityKeys(config.identity.keyFile),
      now,
    })

  const upstreamsTls = await readUpstreamsTls(config.upstreams)
  const { count, refusals, ...opened } = openParts({
    ...{ config, upstreamsTls, shared, lifecycle },
    ...{ logger, metrics, now, providers },
  })
  const { issuers, revocations, introspections, upstreams } = opened
  const cache = createVerifiedTokenCache()
  const tokens = metrics.gauge('surrogate_gateway_verified_tokens', 'Cached verified tokens')
  lifecycle.onStop(
    'count of tokens',
    metrics.onCollect(() => tokens.set(cache.size)),
  )
  const webSockets = createOpenWebSockets({ issuers, revocations, introspections, metrics, now })
  lifecycle.onStop('WebSockets', () => webSockets.close())

  const parts: StageParts = {
    ...opened,
    documents: [
      ...(config.resourceMetadata ? protectedResourceDocuments(config.routes) : []),
      ...(identity ? [{ path: '/.well-known/surrogate/jwks.json', body: identity.jwks }] : []),
    ],
    identity,
    limits: config.limits,
    tracing: traces,
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
  const onFinish = (context: RequestContext) => {
    if (traces) {
      // Of a request whose header fields could not be read.
      context.trace ??= newTrace(traces)
      traces.record(context)
    }
    count.finished(context)
    logs.write(context)
    if (--underWay > 0) return
    for (const resolve of onIdle) resolve()
    onIdle = []
  }
  const answering = { logger, onFinish, refusals }
  const pass = createPipeline((options.stages ?? proxyStages)(parts), answering)
  const run = config.forwardAuth ? decideOrPass(config.forwardAuth, parts, answering, pass) : pass
  const start = (context: RequestContext) => {
    underWay++
    run(context)
  }
  const decideChecked = createPipeline(extAuthzStages(parts), answering)

  return {
    handler: (incoming, response) => start(newRequestContext(incoming, response)),
    upgrade: (incoming, socket, head) => start(upgradeContext(incoming, socket, head)),
    check(request, answer) {
      // It may have waited for a reload.
      if (answer.destroyed) return
      underWay++
      decideChecked(checkContext(request, answer))
    },
    recordUnparsed(unparsed) {
      count.unparsed(unparsed.status)
      logs.writeUnparsed(unparsed)
    },
    start,
    ready: Promise.all([
      ...issuers.map(({ keys }) => keys.ready),
      ...revocations.map(({ ready }) => ready),
      ...[...upstreams.values()].map(({ targets }) => targets.ready),
    ]).then(() => {}),
    checks: {
      ...Object.fromEntries(issuers.map(({ issuer, keys }) => [`keys ${issuer}`, () => keys.status()])),
      ...Object.fromEntries(revocations.map(({ issuer, status }) => [`revocations ${issuer}`, status])),
      ...Object.fromEntries(
        [...introspections.values()].map(({ issuer, status }) => [`introspection ${issuer}`, status]),
      ),
      policies: () => policyHealth(policies.status?.() ?? policies.current()),
      ...(shadow && { 'shadow policies': () => policyHealth(shadow.status()) }),
      ...targetChecks(upstreams),
    },
    inspect: () => inspectGateway(config, upstreams),
    trusted: () => inspectIssuers(issuers, revocations),
    session: (sid) => inspectSession(sid, revocations),
    policies: () => policies.current(),
    drain: () => webSockets.drain(),
    idle: () => (underWay === 0 ? Promise.resolve() : new Promise((resolve) => onIdle.push(resolve))),
    reopenLogs: logs.reopen,
    close: () => lifecycle.stop(),
  }
}

/** Requests to the path of forward-auth ask for a decision, all others pass through. */
const decideOrPass = (
  settings: ForwardAuthSettings,
  parts: StageParts,
  options: PipelineParts,
  pass: (context: RequestContext) => void,
) => {
  const asks = asksForDecision(settings)
  const decide = createPipeline(forwardAuthStages(settings, parts), { ...options, send: sendRefusal(settings) })
  return (context: RequestContext) => (asks(context.target) ? decide : pass)(context)
}
