import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { uuidv7 } from '../../platform/ids.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { GatewayConfig } from '../config/load.ts'
import { sendProblem } from '../refusals/problem-response.ts'
import { problem } from '../refusals/problems.ts'
import { Http2Request } from '../request/http2-request.ts'
import { Http2Response } from './http2-response.ts'

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_NO_ERROR } = constants

/** The connections that speak HTTP/2: each request of theirs goes to the handler of HTTP/1.1, under the same limits. */
export interface Http2Sessions {
  /** Speaks HTTP/2 on a connection whose client has chosen it. */
  open(socket: TLSSocket): void
  /** Takes over the limits of another configuration; those of header fields for the connections that follow. */
  adjust(config: GatewayConfig): void
  /**
   * No further requests on the connections that are open now: GOAWAY, and the end of each after its last answer. It
   * names the last request that was taken, so that a client sends a later one elsewhere (RFC 9113 §6.8).
   */
  drain(): void
  /** The same for those that are still to come, too. */
  close(): void
  /** Breaks off what is left. */
  destroy(): void
}

/** At the same time on one connection; RFC 9113 §6.5.2 recommends at least so many. */
const maxConcurrentStreams = 100

/** Fields beyond the limit that are still read, to be refused with 431 instead of a reset stream. */
const roomForFields = 100

/** What a field adds to the size of a header list, in bytes (RFC 9113 §6.5.2). */
const fieldOverhead = 32

/**
 * Requests that a client may take back at once, and how many more each second. Each costs about as much as one that is
 * answered (rapid reset, CVE-2023-44487).
 */
const resets = { burst: 200, perSecond: 20 }

/** Of the whole connection, in bytes; a stream has 64 kB. What has arrived for a stream is held until it is read. */
const connectionWindow = 1_048_576

/** How long a client may take nothing of an answer that is waiting, in ms. */
const stallTimeout = 60_000

interface Exchange {
  request: Http2Request
  response: Http2Response
  startedAt: number
  /** Bytes that waited for the client, and since when it has taken none. */
  waiting: number
  waitingSince: number
}

interface Connection {
  socket: TLSSocket
  session: ServerHttp2Session
  exchanges: Set<Exchange>
  /** When the last exchange ended. */
  idleSince: number
  /** Left of `resets`, at `resetsAt`. */
  resets: number
  resetsAt: number
}

const sessionSettings = {
  maxSessionMemory: 10,
  maxOutstandingPings: 10,
  maxOutstandingSettings: 10,
  maxSettings: 32,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  // What upstreams repeat goes on as they sent it, as over HTTP/1.1.
  strictSingleValueFields: false,
}

/** How long a client may take to read why its connection ends, in ms. */
const lingerMs = 1_000

const breakOff = ({ session, socket }: Connection, code: number = NGHTTP2_NO_ERROR): void => {
  // Without an error Node would say NO_ERROR, whatever the code.
  session.destroy(code === NGHTTP2_NO_ERROR ? undefined : new Error('the connection is broken off'), code)
  // The session would wait for a client that reads nothing.
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref()
  socket.once('close', () => clearTimeout(timer))
}

export const createHttp2Sessions = (options: {
  config: GatewayConfig
  handler: RequestListener
  /** Bytes for the target, beside those of the header fields. */
  roomForTarget: number
  /** How often timeouts are looked at, in ms. */
  checkingInterval: number
  metrics: Metrics
}): Http2Sessions => {
  const { handler, metrics, roomForTarget, checkingInterval } = options
  let { limits } = options.config
  const connections = new Set<Connection>()
  let closed = false
  const open = metrics.gauge('surrogate_gateway_http2_connections', 'Open connections that speak HTTP/2')
  const ended = metrics.counter(
    'surrogate_gateway_http2_ended_total',
    'Connections of HTTP/2 ended because of what the client did',
    ['reason'],
  )
  /** Read for each connection, so that the limits in force count for it. */
  const settingsNow = () => {
    const fields = limits.headerCount + roomForFields
    return {
      ...sessionSettings,
      maxHeaderListPairs: fields,
      settings: {
        maxConcurrentStreams,
        maxHeaderListSize: limits.headerSize + roomForTarget + fields * fieldOverhead,
        enablePush: false,
      },
    }
  }

  const takeReset = (connection: Connection): void => {
    const now = performance.now()
    const regained = ((now - connection.resetsAt) / 1_000) * resets.perSecond
    connection.resets = Math.min(resets.burst, connection.resets + regained) - 1
    connection.resetsAt = now
    if (connection.resets >= 0 || connection.session.destroyed) return
    ended.inc({ reason: 'resets' })
    breakOff(connection, NGHTTP2_ENHANCE_YOUR_CALM)
  }

  const begin = (
    connection: Connection,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: string[],
  ) => {
    // Taken back before anybody has looked at it.
    if (stream.destroyed || stream.closed) return takeReset(connection)
    const { socket } = connection
    const request = new Http2Request(stream, headers, rawHeaders, socket)
    const response = new Http2Response(stream, request, socket)
    const now = performance.now()
    const exchange = { request, response, startedAt: now, waiting: 0, waitingSince: now }
    connection.exchanges.add(exchange)
    stream.once('aborted', () => takeReset(connection))
    stream.once('close', () => {
      connection.exchanges.delete(exchange)
      connection.idleSince = performance.now()
    })
    handler(request as unknown as IncomingMessage, response as unknown as ServerResponse)
  }

  const checkExchange = (exchange: Exchange, now: number): void => {
    const { request, response } = exchange
    if (!request.complete && !response.writableEnded && now - exchange.startedAt >= limits.requestTimeout) {
      response.abandon((open) =>
        sendProblem(open as unknown as ServerResponse, problem('request_timeout'), uuidv7(), false),
      )
    }
    const { waiting } = response
    if (waiting === 0 || waiting < exchange.waiting || !response.writableEnded) exchange.waitingSince = now
    exchange.waiting = waiting
    if (now - exchange.waitingSince >= stallTimeout) response.destroy()
  }

  const check = () => {
    const now = performance.now()
    for (const connection of connections) {
      const { session, exchanges, idleSince } = connection
      for (const exchange of exchanges) checkExchange(exchange, now)
      if (exchanges.size > 0) continue
      // The client has the same time again to take the farewell.
      if (now - idleSince >= 2 * limits.keepAliveTimeout) breakOff(connection)
      else if (now - idleSince >= limits.keepAliveTimeout) session.close()
    }
  }
  const drain = () => {
    for (const { session } of connections) session.close()
  }
  const timer = setInterval(check, checkingInterval).unref()

  return {
    open(socket) {
      const session = performServerHandshake(socket, settingsNow())
      const now = performance.now()
      const connection = {
        socket,
        session,
        exchanges: new Set<Exchange>(),
        idleSince: now,
        resets: resets.burst,
        resetsAt: now,
      }
      connections.add(connection)
      open.inc()
      session.setLocalWindowSize(connectionWindow)
      session.on('stream', (stream, headers, _flags, rawHeaders) => begin(connection, stream, headers, rawHeaders))
      session.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code?.startsWith('ERR_HTTP2')) ended.inc({ reason: 'protocol' })
      })
      session.once('close', () => {
        connections.delete(connection)
        open.dec()
        // Settings that the client never acknowledged keep the session, and these would keep its socket with it.
        session.removeAllListeners()
      })
      if (closed) session.close()
    },
    adjust(config) {
      limits = config.limits
    },
    drain,
    close() {
      closed = true
      drain()
    },
    destroy() {
      clearInterval(timer)
      for (const connection of connections) breakOff(connection)
    },
  }
}
