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
import { beginAttempt, endAttempt } from '../request/request-trace.ts'
import { addAnswerFields, answerHeaders } from './answer-headers.ts'
import type { OpenWebSockets } from './open-websockets.ts'
import { type Upstreams, upstreamOf } from './require-upstream.ts'
import { nextTarget } from './target-choice.ts'
import type { Outcome, Target } from './targets/target.ts'
import type { Choice } from './targets/targets.ts'
import type { Upstream } from './upstream.ts'
import { isOwnTrouble, upstreamError } from './upstream-error.ts'
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
  const proxies = new WeakMap<Target, WebSocketProxy>()
  const proxyOf = (target: Target, { tls }: Upstream): WebSocketProxy => {
    const known = proxies.get(target)
    if (known) return known
    const made = createWebSocketProxy(target, tls)
    proxies.set(target, made)
    return made
  }

  /** Asks one target; throws when it must not be asked. */
  const ask = (opening: Opening, target: Target): void => {
    const { context, upstream, socket, key, fields, tried } = opening
    const bridge = new WebSocketBridge(socket)
    if (!webSockets.reserve(bridge, upstream)) {
      bridge.destroy()
      throw problem('server.unavailable')
    }
    let outcome: Outcome = 'neither'
    let connected = false
    target.begin()
    bridge.once('close', () => target.end(outcome))
    const reached = { target: target.name, retries: tried.length }
    context.upstreamRequest = { ...reached, cancel: () => void bridge.destroy() }
    const attempt = beginAttempt(context, target, fields)

    const failed = (error: Error) => {
      if (bridge.destroyed) return
      const reason = isParserError(error) ? problem('upstream_protocol_error', { cause: error }) : upstreamError(error)
      if (!opening.expired && !isOwnTrouble(error)) outcome = 'failed'
      endAttempt(attempt, { error: reason.code })
      const next = connected ? undefined : targetAfter(opening, target)
      // Its place is free once it has closed.
      if (next) bridge.once('close', () => askAgain(opening, target, next))
      bridge.destroy()
      if (!next) fail(context, reason)
    }
    opening.failed = failed
    proxyOf(
      target,
      upstream,
    )({
      path: upstreamPath(context, target),
      headers: handshakeHeaders(fields, target.origin),
      bridge,
      onRequest: (outgoing) =>
        watchHandshake(outgoing, {
          upstream,
          bridge,
          connectEvent: target.origin.startsWith('https:') ? 'secureConnect' : 'connect',
          onConnected: () => (connected = true),
          failed,
        }),
      onUpgrade(answer, upstreamSocket) {
        if (!isAccepted(answer, key)) {
          upstreamSocket.destroy()
          return failed(problem('upstream_protocol_error'))
        }
        outcome = 'answered'
        endAttempt(attempt, { status: 101 })
        clearTimeout(opening.timer)
        // Data that is still to be written must not keep a connection whose other end is gone.
        bridge.once('close', () => upstreamSocket.destroy())
        upstreamSocket.once('close', () => bridge.writable && bridge.end())
        switchProtocols(context, answer)
        bridge.open()
        webSockets.add(bridge, context, upstream)
      },
      onRefusal(answer) {
        // 401, 404, a redirect.
        const { status, fields } = plainAnswer(context, answer)
        endAttempt(attempt, { status })
        outcome = status >= 502 && status <= 504 ? 'failed' : 'answered'
        context.upstreamRequest = { ...reached, cancel: () => void answer.destroy() }
        opening.failed = () => void answer.destroy(new Error('the time of the route is up'))
        answer.on('error', () => context.response.destroy())
        // When nothing moves, because of the upstream or of the client.
        answer.setTimeout(upstream.clientTimeout, () => void answer.destroy(new Error('nothing moved')))
        context.response.writeHead(status, fields)
        answer.pipe(context.response)
        bridge.destroy()
      },
      onError: failed,
    })
  }

  const askAgain = (opening: Opening, failed: Target, next: Target): void => {
    const { context, socket, tried } = opening
    if (socket.destroyed) return
    tried.push(failed)
    try {
      ask(opening, next)
    } catch (error) {
      fail(context, error)
    }
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
    const choice = upstream.choose(context)
    const target = upstream.targets.pick(choice)
    if (!target) throw problem('server.unavailable')
    upstream.retries?.request(upstream.now)
    const fields = upstreamHeaders(context)
    const opening: Opening = { context, upstream, socket: upgrade.socket, key, fields, choice, tried: [] }
    if (route.timeout !== undefined) limitTime(opening, route.timeout)
    ask(opening, target)
    return answered
  }
}

/** A WebSocket that is being opened, through all attempts. */
interface Opening {
  context: DecidedRequest
  upstream: Upstream
  socket: Socket
  key: string
  fields: string[]
  choice: Choice
  tried: Target[]
  /** The time of the route. */
  timer?: NodeJS.Timeout
  expired?: boolean
  /** Ends the attempt under way. */
  failed?: (error: Error) => void
}

const limitTime = (opening: Opening, timeout: number): void => {
  opening.timer = setTimeout(() => {
    opening.expired = true
    opening.failed?.(problem('upstream_timeout'))
  }, timeout)
  opening.context.response.once('close', () => clearTimeout(opening.timer))
}

/** After no connection was made, so that nothing was sent. */
const targetAfter = ({ context, upstream, choice, tried, expired }: Opening, failed: Target): Target | undefined => {
  const { retries, targets, now } = upstream
  if (!retries?.on.has('connect') || context.route.retries === false) return undefined
  if (expired || tried.length + 1 >= retries.attempts) return undefined
  const next = nextTarget(targets, choice, [...tried, failed], true)
  return next && retries.take('connect', now) ? next : undefined
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
  options: {
    upstream: Upstream
    bridge: WebSocketBridge
    /** After it the request goes out. */
    connectEvent: 'connect' | 'secureConnect'
    onConnected: () => void
    failed: (error: Error) => void
  },
): void => {
  const { upstream, bridge, connectEvent, onConnected, failed } = options
  const late = () => {
    failed(problem('upstream_timeout'))
    outgoing.destroy()
  }
  let timer = setTimeout(late, upstream.connectTimeout)
  outgoing.once('socket', (socket: Socket) =>
    socket.once(connectEvent, () => {
      onConnected()
      clearTimeout(timer)
      timer = setTimeout(late, upstream.headersTimeout)
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
