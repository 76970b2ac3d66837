import { Pool } from 'undici'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { UpstreamSettings } from '../config/settings/upstream.ts'
import { type ActiveRequests, createActiveRequests } from './active-requests.ts'
import { connectForHttp1 } from './status-line.ts'
import type { Use } from './targets/shared.ts'
import { createTargets, type Targets } from './targets/targets.ts'

/** An API behind the gateway: its connections, and the requests that are with it now. */
export interface Upstream {
  readonly name: string
  readonly targets: Targets
  readonly pool: Pool
  readonly origin: string
  /** Put before every path; without a final slash. */
  readonly basePath: string
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
  /** `performance.now()` as of the last check, so that the clock need not be asked for every chunk. */
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
const watch = (upstream: Upstream): NodeJS.Timeout =>
  setInterval(() => {
    upstream.now = performance.now()
    upstream.activeRequests.forEach((request) => void request.check())
  }, upstream.checkInterval).unref()

const defaultClientTimeout = 60_000

/** Connects to `address`, if given, under the name of the origin. */
const openPool =
  (settings: UpstreamSettings) =>
  (origin: string, address?: string): Pool => {
    const connect = connectForHttp1(settings.connectTimeout)
    return new Pool(origin, {
      // One request on a connection at a time: a request is never sent twice, and no answer waits behind another.
      pipelining: 1,
      allowH2: false,
      connect:
        address === undefined ? connect : (options, callback) => connect({ ...options, hostname: address }, callback),
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 65_536,
    })
  }

export const createUpstream = (
  name: string,
  settings: UpstreamSettings,
  parts: { logger: Logger; metrics: Metrics; use?: Use },
): Upstream => {
  const clientTimeout = settings.idleTimeout || defaultClientTimeout
  const shortest = Math.min(settings.headersTimeout, clientTimeout)
  const targets = createTargets({ name, settings, openPool: openPool(settings), ...parts })
  const { pool, origin, basePath } = targets.pick()!
  const upstream: Upstream = {
    name,
    targets,
    pool,
    origin,
    basePath,
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
