import { hash } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { originOf } from '../config/cors.ts'
import { problem } from '../refusals/problems.ts'
import { refuse } from '../request/canonical-target.ts'
import { answerHeaders } from '../request/headers.ts'
import { answered, type Exchange, newExchange, type Stage } from '../request/request-context.ts'
import { addAnswerFields } from './answer-fields.ts'
import { upstreamError, upstreamHeaders, upstreamPath } from './forward.ts'
import type { OpenWebSockets } from './open-websockets.ts'
import type { Upstream } from './upstream.ts'
import { WebSocketBridge } from './websocket-bridge.ts'

export interface UpgradeParts {
  upstreams: ReadonlyMap<string, Upstream>
  webSockets: OpenWebSockets
  fail: (exchange: Exchange, error: unknown) => void
}

/**
 * Whether a request opens a WebSocket as RFC 6455 §4.1 has it. Whatever else names `Upgrade` is the plain request that it also is: Node
 * then keeps parsing HTTP, and no bytes are taken for another protocol.
 */
export const opensWebSocket = ({ method, headers, httpVersion }: IncomingMessage): boolean =>
  method === 'GET' &&
  httpVersion === '1.1' &&
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['content-length'] === undefined &&
  headers['transfer-encoding'] === undefined

/**
 * Node hands over a socket and no response. With one that writes there, such a request is like any other: every stage can refuse it, and a
 * route without WebSockets forwards it as the plain request that it also is, the last of its connection.
 */
export const upgradeExchange = (incoming: IncomingMessage, socket: Socket, head: Buffer): Exchange => {
  const response = new ServerResponse(incoming)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.once('finish', () => socket.destroySoon())
  socket.on('drain', () => response.emit('drain'))
  socket.on('error', () => socket.destroy())
  return newExchange(incoming, response, incoming.url, undefined, { socket, head })
}

/**
 * The last stage of requests that open a WebSocket on a route that allows it; all others go on to be forwarded. The stages before have
 * decided about them as about any request. The gateway answers 101 only after the upstream did so with the right key, so that a mere
 * pretence of an upgrade opens no tunnel past the gateway.
 */
export const createUpgrade = ({ upstreams, webSockets, fail }: UpgradeParts): Stage => {
  const carriers = new Map<Upstream, Carrier>()
  const carrierOf = (upstream: Upstream): Carrier => {
    const known = carriers.get(upstream)
    if (known) return known
    const made = createCarrier(upstream.origin)
    carriers.set(upstream, made)
    return made
  }

  return (exchange) => {
    const { upgrade, route } = exchange
    if (!upgrade || !route!.websocket) return
    checkOrigin(exchange)
    const key = checkHandshake(exchange)
    // RFC 6455 §4.1: a client waits for the answer. What came with the request was meant for somebody who reads it as another request.
    if (upgrade.head.length > 0) throw refuse('The request for a WebSocket is followed by something before its answer.')
    const upstream = upstreams.get(route!.upstream)!
    const bridge = new WebSocketBridge(upgrade.socket)
    if (!webSockets.reserve(bridge, upstream)) {
      bridge.destroy()
      throw problem('server.unavailable')
    }
    exchange.answer = { cancel: () => void bridge.destroy() }

    const failed = (error: Error) => {
      if (bridge.destroyed) return
      bridge.destroy()
      fail(exchange, isParserError(error) ? problem('upstream_protocol_error', { cause: error }) : upstreamError(error))
    }
    carrierOf(upstream)({
      path: upstreamPath(exchange, upstream),
      headers: handshakeHeaders(exchange, upstream),
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
        switchProtocols(exchange, answer)
        bridge.open()
        webSockets.add(bridge, exchange, upstream)
      },
      onRefusal(answer) {
        // The upstream answers the request instead of opening a WebSocket: 401, 404, a redirect.
        exchange.answer = { cancel: () => void answer.destroy() }
        answer.on('error', () => exchange.response.destroy())
        // Whoever stands still, the upstream or the client that reads.
        answer.setTimeout(upstream.clientPatience, () => void answer.destroy(new Error('nothing moved')))
        exchange.response.writeHead(answer.statusCode!, plainAnswerHeaders(exchange, answer))
        answer.pipe(exchange.response)
        bridge.destroy()
      },
      onError: failed,
    })
    return answered
  }
}

/** Of Node's own parser. */
const isParserError = (error: NodeJS.ErrnoException): boolean => error.code?.startsWith('HPE_') ?? false

/**
 * RFC 6455 §10.2: browsers ask nobody before they open a WebSocket to another origin, cookies included; they only say whose page it is. The
 * pages that may are those of `cors` and the API's own; what is no browser names no origin.
 */
const checkOrigin = (exchange: Exchange): void => {
  const { cors } = exchange.route!
  if (!cors) return
  const origin = originOf(exchange)
  if (origin === undefined || cors.allowed(origin) !== undefined) return
  const { host } = exchange.request!
  // A page at the full name of the host says so with the final dot, which `host` has no more.
  const page = origin.replace(/\.(?=$|:\d+$)/, '')
  if (page !== `https://${host}` && page !== `http://${host}`) throw problem('origin_not_allowed')
}

/** RFC 6455 §4.2.1; returns the key. `Connection: upgrade` was checked by Node's parser. */
const checkHandshake = ({ headers }: Exchange): string => {
  const fields = { 'sec-websocket-key': '', 'sec-websocket-version': '' }
  const flat = headers!.forwardable
  for (let index = 0; index < flat.length; index += 2) {
    const name = flat[index]!
    if (name !== 'sec-websocket-key' && name !== 'sec-websocket-version') continue
    if (fields[name] !== '') throw refuse(`The request has more than one ${name} field.`)
    fields[name] = flat[index + 1]!
  }
  const key = fields['sec-websocket-key']
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key)) throw refuse('The Sec-WebSocket-Key is not 16 octets in base64.')
  if (fields['sec-websocket-version'] !== '13') {
    throw problem('upgrade_required', { headers: { 'sec-websocket-version': '13', upgrade: 'websocket' } })
  }
  return key
}

/** RFC 6455 §4.2.2 (5.4). */
const acceptOf = (key: string): string => hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')

const isAccepted = ({ headers, statusCode }: IncomingMessage, key: string): boolean =>
  statusCode === 101 &&
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['sec-websocket-accept'] === acceptOf(key)

type HeaderList = Record<string, string | string[]>

const handshakeHeaders = (exchange: Exchange, { origin }: Upstream): HeaderList => {
  const headers: HeaderList = Object.create(null)
  const flat = upstreamHeaders(exchange)
  for (let index = 0; index < flat.length; index += 2) {
    const [name, value] = [flat[index]!, flat[index + 1]!]
    const earlier = headers[name]
    headers[name] = earlier === undefined ? value : [earlier, value].flat()
  }
  return { ...headers, host: new URL(origin).host, connection: 'Upgrade', upgrade: 'websocket' }
}

const plainAnswerHeaders = (exchange: Exchange, { statusCode, headers }: IncomingMessage): string[] => {
  const flat = answerHeaders(statusCode!, headers, exchange.route!)
  flat.push('x-request-id', exchange.id)
  return addAnswerFields(flat, exchange)
}

const switchProtocols = (exchange: Exchange, answer: IncomingMessage): void => {
  const flat = plainAnswerHeaders(exchange, answer)
  flat.push('connection', 'Upgrade', 'upgrade', 'websocket')
  exchange.response.writeHead(101, STATUS_CODES[101]!, flat)
  exchange.response.flushHeaders()
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

/** Opens one WebSocket with an upstream and pipes both ways once it is open. */
type Carrier = (call: {
  path: string
  headers: HeaderList
  bridge: WebSocketBridge
  onRequest: (outgoing: ClientRequest) => void
  onUpgrade: (answer: IncomingMessage, upstreamSocket: Socket) => void
  onRefusal: (answer: IncomingMessage) => void
  onError: (error: Error) => void
}) => void

/** What an upstream says may be nothing that Node sends on; thrown from an event it would end the process. */
const attempt = ({ onError }: Parameters<Carrier>[0], answer: IncomingMessage, take: () => void): void => {
  try {
    // Node's parser takes answers of HTTP/0.9 and HTTP/2.0 too.
    if (answer.httpVersionMajor !== 1) throw problem('upstream_protocol_error')
    take()
  } catch (error) {
    onError(error as Error)
    answer.destroy()
  }
}

/**
 * By http-proxy-middleware, with none of its default plugins: they answer errors with a text of their own. It is given what an upgrade
 * looks like to it, and never the client's own request or socket.
 */
const createCarrier = (origin: string): Carrier => {
  type Call = Parameters<Carrier>[0]
  const calls = new WeakMap<object, Call>()
  const middleware = createProxyMiddleware({
    target: origin,
    ejectPlugins: true,
    plugins: [
      (proxy) => {
        proxy.on('proxyReqWs', (outgoing, _incoming, bridge) => {
          const call = calls.get(bridge)!
          call.onRequest(outgoing)
          // Before the listeners of the library, which start to pipe.
          outgoing.once('upgrade', (answer, socket) => attempt(call, answer, () => call.onUpgrade(answer, socket)))
          outgoing.once('response', (answer) => attempt(call, answer, () => call.onRefusal(answer)))
        })
        proxy.on('error', (error, _incoming, bridge) => calls.get(bridge as object)?.onError(error))
      },
    ],
  })
  return (call) => {
    const { path, headers, bridge } = call
    calls.set(bridge, call)
    // A server is what the library looks for to know that this is no upgrade of its own.
    const incoming = {
      method: 'GET',
      url: path,
      headers,
      httpVersionMajor: 1,
      httpVersionMinor: 1,
      socket: { server: {} },
    }
    middleware.upgrade(incoming as unknown as IncomingMessage, bridge as unknown as Socket, Buffer.alloc(0))
  }
}
