import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import type { Server } from 'node:tls'
import type { HealthResult } from '../platform/health.ts'
import { type ListenOptions, listen, type RunningServer } from '../platform/http/http-server.ts'
import type { Logger } from '../platform/logger.ts'
import type { Metrics } from '../platform/metrics.ts'
import type { GatewayConfig } from './config/load.ts'
import type { Gateway } from './gateway.ts'
import { acceptTls } from './listener/accept-tls.ts'
import { createHttp2Sessions } from './listener/http2.ts'
import { openTls } from './listener/tls.ts'
import { isAnswering, refuseConnect, refuseUnparsed, refuseUpgrade, type UnparsedRequest } from './request/unparsed.ts'
import { opensWebSocket } from './upstream/websocket-handshake.ts'

/**
 * The public listener: the options of Node's HTTP server, the events that it would otherwise answer itself, and which
 * connections speak TLS and HTTP/2.
 */
export interface Listener<Running extends Serving = RunningServer> {
  /** What carries it. */
  running: Running
  /** Takes over the timeouts of another configuration; address and header size stay. */
  adjust(config: GatewayConfig): void
  /** From now on each answer is the last one of its connection; over HTTP/2 those open now take no more requests. */
  endKeepAlive(): void
  /** Takes no new connections, and breaks off what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
  /** For `/readyz`: what is to be said of its certificates. Undefined: it has none. */
  certificates: (() => HealthResult) | undefined
}

type Serving = Pick<RunningServer, 'server' | 'close'>

/**
 * Added to Node's limit of the head, in bytes: the longest target that can be allowed. Node counts the target among the
 * header fields and cannot say which of them was too large; with this room each is refused by its own limit.
 */
const roomForTarget = 65_536

interface ListenerOptions {
  config: GatewayConfig
  /** Whoever serves now. */
  gateway: () => Gateway
  /** What moves the listener, named when its port is taken. */
  portSetting: string
  logger: Logger
  metrics: Metrics
  /** For sessions of TLS, where several processes have the listener. Default: its own. */
  ticketKeys?: Buffer
}

/** Throws `StartupError` when the port is taken or a certificate cannot be used. */
export const openListener = (options: ListenerOptions): Promise<Listener> => openListenerOn(options, listen)

/** The same on another server than one with a port of its own. */
export const openListenerOn = async <Running extends Serving>(
  options: ListenerOptions,
  open: (options: ListenOptions) => Running | Promise<Running>,
): Promise<Listener<Running>> => {
  const { config, gateway, portSetting, logger, metrics, ticketKeys } = options
  const { headersTimeout, requestTimeout } = config.limits
  const checkingInterval = Math.min(headersTimeout, requestTimeout, 2_000)
  const handler: RequestListener = (incoming, response) => gateway().handler(incoming, response)
  const { tls: settings, http2 = true } = config.listen
  const handshakeTimeout = headersTimeout
  const tls = settings && (await openTls({ settings, http2, handshakeTimeout, ticketKeys, logger, metrics }))
  const running = await open({
    name: 'the gateway',
    handler,
    host: config.listen.host,
    port: config.listen.port,
    setting: portSetting,
    tls: tls?.options,
    server: {
      maxHeaderSize: config.limits.headerSize + roomForTarget,
      connectionsCheckingInterval: checkingInterval,
      shouldUpgradeCallback: opensWebSocket,
      // Requests without Host must end as our 400, with a problem document.
      requireHostHeader: false,
      joinDuplicateHeaders: false,
      // Whatever NODE_OPTIONS says.
      insecureHTTPParser: false,
      // A request without a body has no stream to be read to its end.
      optimizeEmptyRequests: true,
      noDelay: true,
      ...timeouts(config),
    },
  })
  const { server } = running
  const sessions = tls && createHttp2Sessions({ config, handler, roomForTarget, checkingInterval, metrics })
  if (settings && sessions) acceptTls({ server, settings, sessions, logger, metrics })
  tls?.follow(server as unknown as Server)
  const upgraded = new Set<Socket>()
  let leaving = false

  // Node would drop fields beyond its own maximum silently; our limit is checked against all that were received.
  server.maxHeadersCount = 0
  server.on('checkContinue', handler)
  server.on('checkExpectation', handler)
  const record = (unparsed: UnparsedRequest | undefined) => unparsed && gateway().recordUnparsed(unparsed)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => record(refuseUnparsed(error, socket as Socket)))
  server.on('connect', (_request, socket) => record(refuseConnect(socket as Socket)))
  server.on('upgrade', (incoming: IncomingMessage, duplex, head) => {
    const socket = duplex as Socket
    // RFC 6455 §4.1: no client opens a WebSocket behind another request; the socket still belongs to the answer to
    // that. Node before 24.9 hands over every request that names Upgrade, its body unread.
    if (isAnswering(socket) || !opensWebSocket(incoming)) return record(refuseUpgrade(socket))
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    gateway().upgrade(incoming, socket, head)
  })
  server.prependListener('request', (_request, response) => {
    if (leaving) response.shouldKeepAlive = false
  })

  return {
    running,
    adjust(next) {
      Object.assign(server, timeouts(next))
      sessions?.adjust(next)
    },
    certificates: tls?.status,
    endKeepAlive() {
      leaving = true
      sessions?.drain()
    },
    async close(timeoutMs) {
      leaving = true
      sessions?.close()
      // The server no longer counts them among its connections.
      const cutOff = setTimeout(() => {
        for (const socket of upgraded) socket.destroy()
        sessions?.destroy()
      }, timeoutMs)
      await running.close(timeoutMs)
      clearTimeout(cutOff)
      sessions?.destroy()
      await tls?.close()
    },
  }
}

const timeouts = ({ limits }: GatewayConfig) => {
  const { headersTimeout, requestTimeout, keepAliveTimeout } = limits
  return { headersTimeout, requestTimeout, keepAliveTimeout }
}
