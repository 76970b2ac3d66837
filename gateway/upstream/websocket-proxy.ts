import { type ClientRequest, Agent as HttpAgent, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { problem } from '../refusals/problems.ts'
import type { Target } from './targets/target.ts'
import { type UpstreamTls, withoutFinalDot } from './upstream-tls.ts'
import type { WebSocketBridge } from './websocket-bridge.ts'
import type { HeaderRecord } from './websocket-handshake.ts'

/** One WebSocket that an upstream is asked for. */
export interface UpgradeCall {
  path: string
  headers: HeaderRecord
  bridge: WebSocketBridge
  onRequest: (outgoing: ClientRequest) => void
  onUpgrade: (answer: IncomingMessage, upstreamSocket: Socket) => void
  /** The upstream answers the request instead of opening a WebSocket. */
  onRefusal: (answer: IncomingMessage) => void
  onError: (error: Error) => void
}

/** Opens WebSockets with an upstream and pipes both ways once they are open. */
export type WebSocketProxy = (call: UpgradeCall) => void

/** What an upstream says may be nothing that Node sends on; thrown from an event it would end the process. */
const attempt = ({ onError }: UpgradeCall, answer: IncomingMessage, take: () => void): void => {
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
 * By http-proxy-middleware, with none of its default plugins: they answer errors with a text of their own. It is given
 * what an upgrade looks like to it, and never the client's own request or socket.
 */
export const createWebSocketProxy = ({ origin, address }: Target, tls: UpstreamTls | undefined): WebSocketProxy => {
  const agent = agentFor({ origin, address }, tls)
  const calls = new WeakMap<object, UpgradeCall>()
  const middleware = createProxyMiddleware({
    target: origin,
    ...(agent && { agent }),
    ejectPlugins: true,
    plugins: [
      (proxy) => {
        proxy.on('proxyReqWs', (outgoing, _incoming, bridge) => {
          const call = calls.get(bridge)
          if (!call) return void outgoing.destroy()
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

/** Undefined: the library's own connections will do. Certificates are verified in either case. */
const agentFor = (
  { origin, address }: Pick<Target, 'origin' | 'address'>,
  tls: UpstreamTls | undefined,
): HttpAgent | undefined => {
  const { hostname, protocol } = new URL(origin)
  const servername = withoutFinalDot(hostname)
  if (tls === undefined && address === undefined && servername === hostname) return undefined
  const where = address === undefined ? {} : { lookup: lookupOf(address) }
  if (protocol === 'http:') return new HttpAgent(where)
  return new HttpsAgent({ ...(servername !== hostname && { servername }), ...tls, ...where })
}

const lookupOf =
  (address: string): LookupFunction =>
  (_host, options, callback) => {
    const family = isIP(address)
    if (options.all) callback(null, [{ address, family }])
    else callback(null, address, family)
  }
