import { Pool } from 'undici'
import { createRunning, type Running } from './running.ts'
import { connectForHttp1 } from './status-line.ts'

export interface UpstreamSettings {
  /** `http(s)://host[:port][/base/path]` */
  url: string
  /** ms */
  connectTimeout: number
  /** Longest silence from the upstream until the head of its answer, ms; waiting for the client's body does not count. */
  headersTimeout: number
  /** The same within the answer's body, ms; waiting for the client to read does not count. 0 = any. */
  idleTimeout: number
  /** Requests at the same time; more are answered with 503 at once instead of waiting in a queue that nobody bounds. */
  maxRequests: number
  /** WebSockets at the same time; more are answered with 503. */
  maxWebSockets: number
  /** How long nothing may come from either side of a WebSocket, in ms. 0 = any. */
  webSocketIdleTimeout: number
  /** `aud` of the identity JWT; undefined = it gets none. */
  identityAudience?: string | undefined
}

/** An API behind the gateway: its connections, and the requests that are with it now. */
export interface Upstream {
  readonly name: string
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
  readonly running: Running
  /** `performance.now()` as of the last look at `running`: what `since` is set from, without asking the clock for every chunk. */
  now: number
  close(): Promise<void>
}

const longestLook = 500
const shortestLook = 20

/**
 * undici's own timers for heads and bodies are off: with two different lengths it makes new ones for every request and lets go of the
 * old ones only a second later, which keeps what they refer to alive into the old generation (measured: a third of a request's CPU).
 * Here all requests of an upstream share one timer; it gives up at most a quarter of the timeout late, never early.
 */
const watch = (upstream: Upstream): NodeJS.Timeout => {
  const shortest = Math.min(upstream.headersTimeout, upstream.idleTimeout || upstream.headersTimeout)
  const lookEvery = Math.min(Math.max(shortest / 4, shortestLook), longestLook)
  return setInterval(() => {
    upstream.now = performance.now()
    upstream.running.forEach((waiting) => {
      const patience = waiting.patience()
      if (patience > 0 && upstream.now - waiting.since >= patience + lookEvery) waiting.giveUp()
    })
  }, lookEvery).unref()
}

export const createUpstream = (name: string, settings: UpstreamSettings): Upstream => {
  const { origin, pathname } = new URL(settings.url)
  const pool = new Pool(origin, {
    // One request on a connection at a time: a request is never sent twice, and no answer waits behind another.
    pipelining: 1,
    allowH2: false,
    connect: connectForHttp1(settings.connectTimeout),
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: 65_536,
  })
  const upstream: Upstream = {
    name,
    pool,
    origin,
    basePath: pathname.replace(/\/$/, ''),
    maxRequests: settings.maxRequests,
    maxWebSockets: settings.maxWebSockets,
    webSocketIdleTimeout: settings.webSocketIdleTimeout,
    connectTimeout: settings.connectTimeout,
    identityAudience: settings.identityAudience,
    headersTimeout: settings.headersTimeout,
    idleTimeout: settings.idleTimeout,
    running: createRunning(),
    now: performance.now(),
    async close() {
      clearInterval(timer)
      await pool.destroy()
    },
  }
  const timer = watch(upstream)
  return upstream
}
