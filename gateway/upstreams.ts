import { Pool } from 'undici'

export interface UpstreamSettings {
  /** `http(s)://host[:port][/base/path]` */
  url: string
  /** ms */
  connectTimeout: number
  /** From the end of the request to the head of the answer, ms. */
  headersTimeout: number
  /** Longest silence within an answer's body, ms; 0 = any. */
  idleTimeout: number
  /** Requests at the same time; more are answered with 503 at once instead of waiting in a queue that nobody bounds. */
  maxRequests: number
}

/** An API behind the gateway: its connections, and how many requests are with it now. */
export interface Upstream {
  readonly name: string
  readonly pool: Pool
  /** Put before every path; without a final slash. */
  readonly basePath: string
  readonly maxRequests: number
  running: number
}

export const createUpstream = (name: string, settings: UpstreamSettings): Upstream => {
  const { origin, pathname } = new URL(settings.url)
  const pool = new Pool(origin, {
    // One request on a connection at a time: a request is never sent twice, and no answer waits behind another.
    pipelining: 1,
    allowH2: false,
    connect: { timeout: settings.connectTimeout },
    headersTimeout: settings.headersTimeout,
    bodyTimeout: settings.idleTimeout,
    maxHeaderSize: 65_536,
  })
  return { name, pool, basePath: pathname.replace(/\/$/, ''), maxRequests: settings.maxRequests, running: 0 }
}
