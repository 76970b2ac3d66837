import { type ClientRequest, type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { problem } from '../refusals/problems.ts'
import { refuse } from '../request/canonical-target.ts'
import {
  answered,
  type DecidedRequest,
  newRequestContext,
  type RequestContext,
  type Stage,
} from '../request/request-context.ts'
import { addAnswerFields, answerHeaders } from './answer-headers.ts'
import type { OpenWebSockets } from './open-websockets.ts'
import { type Upstreams, upstreamOf } from './require-upstream.ts'
import type { Upstream } from './upstream.ts'
import { upstreamError } from './upstream-error.ts'
import { upstreamHeaders, upstreamPath } from './upstream-request.ts'
import { WebSocketBridge } from './websocket-bridge.ts'
import { checkHandshake, checkOrigin, handshakeHeaders, isAccepted } from './websocket-handshake.ts'
import { createWebSocketProxy, type WebSocketProxy } from './websocket-proxy.ts'

export interface UpgradeParts {
  upstreams: Upstreams
  webSockets: OpenWebSockets
  fail: (context: RequestContext, error: unknown) => void
}

/**
 * Node hands over a socket and no response. With a response on that socket the request is like any other: every stage
 * can refuse it, and a route without WebSockets forwards it as a plain request, the last of its connection.
 */
export const upgradeContext = (incoming: IncomingMessage, socket: Socket, head: Buffer): RequestContext => {
  const response = new ServerResponse(incoming)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.destroySoon())
  socket.on('drain', () => response.emit('drain'))
  socket.on('error', () => socket.destroy())
  return newRequestContext(incoming, response, incoming.url, undefined, { socket, head })
}

/**
 * The last stage of requests that open a WebSocket on a route that allows it; all others go on to be forwarded. The
 * stages before have decided about them as about any request. The gateway answers 101 only after the upstream did so
 * with the right key, so that a mere pretence of an upgrade opens no tunnel past the gateway.
 */
export const createUpgrade = ({ upstreams, webSockets, fail }: UpgradeParts): Stage<DecidedRequest> => {
  const proxies = new Map<Upstream, WebSocketProxy>()
  const proxyOf = (upstream: Upstream): WebSocketProxy => {
    const known = proxies.get(upstream)
    if (known) return known
    const made = createWebSocketProxy(upstream.origin)
    proxies.set(upstream, made)
    return made
  }

  return (context) => {
    const { upgrade, route } = context
    if (!upgrade || !route.websocket) return
    checkOrigin(context)
    const key = checkHandshake(context)
    // RFC 6455 §4.1: a client waits for the answer. What came with the request was meant for somebody who reads it as
    // another request.
    if (upgrade.head.length > 0) throw refuse('The request for a WebSocket is followed by something before its answer.')
    const upstream = upstreamOf(upstreams, route)
    const bridge = new WebSocketBridge(upgrade.socket)
    if (!webSockets.reserve(bridge, upstream)) {
      bridge.destroy()
      throw problem('server.unavailable')
    }
    context.upstreamRequest = { cancel: () => void bridge.destroy() }

    const failed = (error: Error) => {
      if (bridge.destroyed) return
      bridge.destroy()
      fail(context, isParserError(error) ? problem('upstream_protocol_error', { cause: error }) : upstreamError(error))
    }
    proxyOf(upstream)({
      path: upstreamPath(context, upstream),
      headers: handshakeHeaders(upstreamHeaders(context), upstream.origin),
      bridge,
      onRequest: (outgoing) => watchHandshake(outgoing, upstream, bridge, failed),
      onUpgrade(answer, upstreamSocket) {
        if (!isAccepted(answer, key)) {
          upstreamSocket.destroy()
          return failed(problem('upstream_protocol_error'))
        }
        // Data that is still to be written must not keep a connection whose other end is gone.
        bridge.once('close', () => upstreamSocket.destroy())
        upstreamSocket.once('close', () => bridge.writable && bridge.end())
        switchProtocols(context, answer)
        bridge.open()
        webSockets.add(bridge, context, upstream)
      },
      onRefusal(answer) {
        // 401, 404, a redirect.
        context.upstreamRequest = { cancel: () => void answer.destroy() }
        answer.on('error', () => context.response.destroy())
        // When nothing moves, because of the upstream or of the client.
        answer.setTimeout(upstream.clientTimeout, () => void answer.destroy(new Error('nothing moved')))
        const { status, fields } = plainAnswer(context, answer)
        context.response.writeHead(status, fields)
        answer.pipe(context.response)
        bridge.destroy()
      },
      onError: failed,
    })
    return answered
  }
}

/** Of Node's own parser. */
const isParserError = (error: NodeJS.ErrnoException): boolean => error.code?.startsWith('HPE_') ?? false

/** What of an upstream's answer goes to the client. */
const plainAnswer = (context: DecidedRequest, { statusCode, headers }: IncomingMessage) => {
  if (statusCode === undefined) throw problem('upstream_protocol_error')
  const fields = answerHeaders(statusCode, headers, context.route)
  fields.push('x-request-id', context.id)
  return { status: statusCode, fields: addAnswerFields(fields, context) }
}

const switchProtocols = (context: DecidedRequest, answer: IncomingMessage): void => {
  const { status, fields } = plainAnswer(context, answer)
  fields.push('connection', 'Upgrade', 'upgrade', 'websocket')
  context.response.writeHead(status, STATUS_CODES[status], fields)
  context.response.flushHeaders()
}

const watchHandshake = (
  outgoing: ClientRequest,
  { connectTimeout, headersTimeout }: Upstream,
  bridge: WebSocketBridge,
  failed: (error: Error) => void,
): void => {
  const late = () => {
    failed(problem('upstream_timeout'))
    outgoing.destroy()
  }
  let timer = setTimeout(late, connectTimeout)
  outgoing.once('socket', (socket: Socket) =>
    socket.once('connect', () => {
      clearTimeout(timer)
      timer = setTimeout(late, headersTimeout)
    }),
  )
  let waiting = true
  for (const event of ['upgrade', 'response', 'close']) {
    outgoing.once(event, () => {
      waiting = false
      clearTimeout(timer)
    })
  }
  // The client left while the upstream was being asked.
  bridge.once('close', () => {
    clearTimeout(timer)
    if (waiting) outgoing.destroy()
  })
}
