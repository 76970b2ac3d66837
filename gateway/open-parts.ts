import type { Clock } from '../platform/clock.ts'
import type { Lifecycle } from '../platform/lifecycle.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { LimitRateParts, RateLimit } from './authorize/rate-limit.ts'
import { createRefusalThrottle } from './authorize/refusal-throttle.ts'
import { createTokenBuckets } from './authorize/token-buckets.ts'
import { createPersonalAccessTokens, type PersonalAccessTokens } from './caller/personal-access-tokens.ts'
import type { GatewayConfig } from './config/load.ts'
import type { RateLimitSettings } from './config/settings/route.ts'
import { createRequestMetrics } from './logs/request-metrics.ts'
import { openTrust } from './open-trust.ts'
import type { Providers } from './providers.ts'
import { createHeldBodies } from './request/held-bodies.ts'
import { closing, type SharedParts, usedBy } from './shared-parts.ts'
import { createUpstream, type Upstream } from './upstream/upstream.ts'
import { digestOf, type UpstreamTls } from './upstream/upstream-tls.ts'

/**
 * The parts of a gateway that hold connections, memory or timers. A part whose settings did not change is taken over
 * from the configuration before.
 */
export const openParts = (options: {
  config: GatewayConfig
  upstreamsTls: ReadonlyMap<string, UpstreamTls>
  shared: SharedParts
  lifecycle: Lifecycle
  logger: Logger
  metrics: Metrics
  now: Clock
  providers: Providers
}) => {
  const { config, upstreamsTls, shared, lifecycle, logger, metrics, now, providers } = options

  const use = usedBy(lifecycle, shared)
  const noClosing = () => {}

  /** By issuer, of those that have a client; empty when no route accepts them. */
  const personalAccessTokens = (): Map<string, PersonalAccessTokens> => {
    const accepting = config.routes.filter(({ acceptPersonalAccessTokens }) => acceptPersonalAccessTokens)
    return new Map(
      config.issuers.flatMap(({ issuer, client, tokenEndpoint = `${issuer}/token` }) => {
        if (!client || !accepting.some(({ issuers }) => issuers.includes(issuer))) return []
        const settings = { client, tokenEndpoint }
        const open = () => createPersonalAccessTokens({ ...settings, metrics, now })
        return [[issuer, use('personal access tokens', settings, open, closing)] as const]
      }),
    )
  }

  const upstreams = (): Map<string, Upstream> =>
    new Map(
      Object.entries(config.upstreams).map(([name, settings]) => {
        const tls = upstreamsTls.get(name)
        const open = () => counted(createUpstream({ name, settings, tls, logger, metrics, use: shared.use }), metrics)
        return [name, use('upstream', { name, ...settings, files: digestOf(tls) }, open, closing).upstream]
      }),
    )

  const rateLimits = (): Pick<LimitRateParts, 'rateLimits' | 'onLimited' | 'takeTokens'> => {
    const limited = metrics.counter('surrogate_gateway_rate_limited_total', 'Requests refused by a rate limit', [
      'route',
      'limit',
    ])
    const limitsOf = (routeId: string, settings: GatewayConfig['routes'][number]['rateLimits']): RateLimit[] =>
      settings.map((limit) => ({
        ...limit,
        key: limitKey(routeId, limit),
        buckets: use('rate limit', { routeId, ...limit }, () => countedBuckets(limit, metrics), closing).buckets,
      }))
    const rateLimits = new Map(
      config.routes.flatMap(({ id, rateLimits: settings }) =>
        settings.length > 0 ? [[id, limitsOf(id, settings)] as const] : [],
      ),
    )
    return {
      rateLimits,
      takeTokens: providers.takeTokens,
      onLimited: (route, limit) => limited.inc({ route, limit }),
    }
  }

  /** Where no route hands bodies to its policy there is nothing to count. */
  const heldBodies = () => {
    const most = config.limits.policyBodies
    if (!config.routes.some(({ policyBody }) => policyBody)) return undefined
    return use('held bodies', { most }, () => createHeldBodies({ most, metrics }), noClosing)
  }

  const proofs = () =>
    config.routes.some(({ dpop }) => dpop !== undefined)
      ? use('DPoP proofs', {}, () => providers.openProofRecords({ metrics }), closing)
      : undefined

  const perSecond = config.limits.refusedTokens
  return {
    ...openTrust(options),
    personalAccessTokens: personalAccessTokens(),
    upstreams: upstreams(),
    proofs: proofs(),
    ...rateLimits(),
    heldBodies: heldBodies(),
    refusals: use('refusals', { perSecond }, () => createRefusalThrottle({ perSecond, metrics }), noClosing),
    count: use('request metrics', {}, () => createRequestMetrics(metrics), noClosing),
  }
}

/** Names a limit with all that it says, the same in every process. */
export const limitKey = (routeId: string, limit: RateLimitSettings): string => JSON.stringify({ routeId, ...limit })

/** The gauges are shared by all limits: each adds its own buckets. */
export const countedBuckets = (limit: Pick<RateLimitSettings, 'requests' | 'per' | 'burst'>, metrics: Metrics) => {
  const buckets = createTokenBuckets(limit)
  const sizes = metrics.gauge('surrogate_gateway_rate_limit_buckets', 'Callers whose requests are being counted')
  const forgotten = metrics.gauge(
    'surrogate_gateway_rate_limit_forgotten',
    'Callers that were forgotten too early, for lack of room, since the start',
  )
  const shown = { size: 0, forgotten: 0 }
  const stop = metrics.onCollect(() => {
    sizes.inc(buckets.size - shown.size)
    forgotten.inc(buckets.forgotten - shown.forgotten)
    shown.size = buckets.size
    shown.forgotten = buckets.forgotten
  })
  return {
    buckets,
    close() {
      stop()
      sizes.dec(shown.size)
    },
  }
}

const counted = (upstream: Upstream, metrics: Metrics) => {
  const gauge = metrics.gauge('surrogate_gateway_upstream_running', 'Requests with an upstream now', ['upstream'])
  const stop = metrics.onCollect(() => gauge.set({ upstream: upstream.name }, upstream.activeRequests.size))
  return {
    upstream,
    async close() {
      stop()
      gauge.remove({ upstream: upstream.name })
      await upstream.close()
    },
  }
}
