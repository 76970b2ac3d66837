import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { UpstreamSettings } from '../config/settings/upstream.ts'
import { type ActiveRequests, createActiveRequests } from './active-requests.ts'
import { createOpenPool } from './open-pool.ts'
import { createRetries, type Retries } from './retries.ts'
import { type ChooseTarget, createChooseTarget } from './target-choice.ts'
import type { Use } from './targets/shared.ts'
import { createTargets, type Targets } from './targets/targets.ts'
import { digestOf, type UpstreamTls } from './upstream-tls.ts'

/** An API behind the gateway: its targets, and the requests that are with them now. */
export interface Upstream {
  readonly name: string
  readonly targets: Targets
  readonly choose: ChooseTarget
  /** Undefined: no request is sent twice. */
  readonly retries: Retries | undefined
  readonly tls: UpstreamTls | undefined
  readonly maxRequests: number
  readonly maxWebSockets: number
  readonly webSocketIdleTimeout: number
  readonly connectTimeout: number
  readonly identityAudience: string | undefined
  readonly headersTimeout: number
  readonly idleTimeout: number
  /** How long a client may be waited for, ms. */
  readonly clientTimeout: number
  readonly activeRequests: ActiveRequests
  /** How often each of `activeRequests` is checked, ms. */
  readonly checkInterval: number
  /**
   * The clock that silence is measured with, ms, as of the last check: it need not be asked for every chunk. It goes on
   * by `checkInterval` at most, so that what came while this process stood still counts before anybody is found silent.
   */
  now: number
  close(): Promise<void>
}

const longestInterval = 500
const shortestInterval = 20

/**
 * undici's own timers for heads and bodies are off: with two different lengths it makes new ones for every request and
 * lets go of the old ones only a second later, which keeps what they refer to alive into the old generation (measured:
 * a third of a request's CPU). Here all requests of an upstream share one timer; it gives up at most a quarter of the
 * timeout late, never early.
 */
const watch = (upstream: Upstream): NodeJS.Timeout => {
  const { checkInterval, activeRequests } = upstream
  let last = performance.now()
  return setInterval(() => {
    const now = performance.now()
    upstream.now += Math.min(now - last, checkInterval)
    last = now
    activeRequests.forEach((request) => void request.check())
  }, checkInterval).unref()
}

const defaultClientTimeout = 60_000

export const createUpstream = (options: {
  name: string
  settings: UpstreamSettings
  tls: UpstreamTls | undefined
  logger: Logger
  metrics: Metrics
  use?: Use
}): Upstream => {
  const { name, settings, tls, ...parts } = options
  const clientTimeout = settings.idleTimeout || defaultClientTimeout
  const shortest = Math.min(settings.headersTimeout, clientTimeout)
  const openPool = createOpenPool({ connectTimeout: settings.connectTimeout, tls })
  // Another certificate takes other connections, wherever it stands.
  const connection = { connectTimeout: settings.connectTimeout, tls: digestOf(tls) }
  const targets = createTargets({ name, settings, openPool, connection, ...parts })
  const upstream: Upstream = {
    name,
    targets,
    choose: createChooseTarget(settings.balance),
    retries: settings.retries && createRetries(settings.retries, { upstream: name, metrics: parts.metrics }),
    tls,
    maxRequests: settings.maxRequests,
    maxWebSockets: settings.maxWebSockets,
    webSocketIdleTimeout: settings.webSocketIdleTimeout,
    connectTimeout: settings.connectTimeout,
    identityAudience: settings.identityAudience,
    headersTimeout: settings.headersTimeout,
    idleTimeout: settings.idleTimeout,
    clientTimeout,
    activeRequests: createActiveRequests(),
    checkInterval: Math.min(Math.max(shortest / 4, shortestInterval), longestInterval),
    now: performance.now(),
    async close() {
      clearInterval(timer)
      await targets.close()
    },
  }
  const timer = watch(upstream)
  return upstream
}
