import type { Server as HttpsServer } from 'node:https'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { HealthResult } from '../../platform/health.ts'
import { openPort } from '../../platform/http/http-server.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { ExtAuthzSettings } from '../config/settings/ext-authz.ts'
import { acceptTls } from '../listener/accept-tls.ts'
import { openTls } from '../listener/tls.ts'
import type { CheckedRequest } from '../request/checked-request.ts'
import type { CheckAnswer } from './check-answer.ts'
import { createExtAuthzServer } from './server.ts'

/** What Envoy asks: connections, in the clear or of TLS, that speak gRPC. */
export interface ExtAuthzListener {
  /** A connection that another process has accepted, unread. */
  serve(socket: Socket): void
  /** Connections that are open. */
  readonly connections: number
  /** From now on the health service says that nothing is served. */
  endKeepAlive(): void
  /** Takes no new connections, and breaks off what is left after `timeoutMs`. */
  close(timeoutMs: number): Promise<void>
  /** For `/readyz`: what is to be said of its certificates. Undefined: it has none. */
  certificates: (() => HealthResult) | undefined
}

export interface ExtAuthzParts {
  config: GatewayConfig
  settings: ExtAuthzSettings
  /** Whoever serves now. */
  gateway: () => Deciding
  logger: Logger
  metrics: Metrics
  /** For sessions of TLS, where several processes have the listener. Default: its own. */
  ticketKeys?: Buffer
}

interface Deciding {
  check(request: CheckedRequest, answer: CheckAnswer): void
  trusts(address: string): boolean
  readonly checks: Readonly<Record<string, () => HealthResult>>
}

/** With a port of its own. Throws `StartupError` when that is taken, or a certificate cannot be used. */
export const openExtAuthz = async (parts: ExtAuthzParts): Promise<ExtAuthzListener & { url: string; port: number }> => {
  const { settings, logger } = parts
  const listener = await createExtAuthz(parts)
  const server = createServer((socket) => listener.serve(socket))
  const address = { name: 'ext_authz', host: settings.host, port: settings.port, setting: 'extAuthz.port' }
  const { url, port } = await openPort(server, { ...address, tls: settings.tls }).catch(async (error: unknown) => {
    await listener.close(0)
    throw error
  })
  logger.info({ url }, 'ext_authz listens')
  return {
    ...listener,
    get connections() {
      return listener.connections
    },
    url,
    port,
    async close(timeoutMs) {
      server.close()
      await listener.close(timeoutMs)
    },
  }
}

/** Without a port. Throws `StartupError` when a certificate cannot be used. */
export const createExtAuthz = async (parts: ExtAuthzParts): Promise<ExtAuthzListener> => {
  const { config, settings, gateway, logger, metrics, ticketKeys } = parts
  let leaving = false
  const grpc = await createExtAuthzServer({
    check: (request, answer) => gateway().check(request, answer),
    trusts: (address) => gateway().trusts(address),
    serving: () => !leaving && Object.values(gateway().checks).every((check) => check().ok),
  })
  const handshakeTimeout = config.limits.headersTimeout
  const tls =
    settings.tls &&
    (await openTls({ settings: settings.tls, http2: true, handshakeTimeout, ticketKeys, logger, metrics }))
  const tlsServer = tls && createTlsServer({ ...tls.options, ALPNProtocols: ['h2'] })
  if (tlsServer && settings.tls) {
    // Of a client that does not say that it speaks HTTP/2.
    tlsServer.on('secureConnection', (socket) => socket.destroy())
    const server = tlsServer as unknown as HttpsServer
    acceptTls({ server, settings: settings.tls, sessions: { open: grpc.serve }, logger, metrics })
    tls.follow(tlsServer)
  }

  const open = new Set<Socket>()
  const opened = metrics.gauge('surrogate_gateway_ext_authz_connections', 'Open connections for ext_authz')
  let whenEmpty = () => {}
  return {
    serve(socket) {
      open.add(socket)
      opened.inc()
      socket.setNoDelay(true)
      // What went wrong with it is of no use here; Envoy connects again.
      socket.on('error', () => socket.destroy())
      socket.once('close', () => {
        open.delete(socket)
        opened.dec()
        if (open.size === 0) whenEmpty()
      })
      if (tlsServer) tlsServer.emit('connection', socket)
      else grpc.serve(socket)
    },
    get connections() {
      return open.size
    },
    endKeepAlive() {
      leaving = true
    },
    async close(timeoutMs) {
      leaving = true
      grpc.drain(timeoutMs)
      const cutOff = setTimeout(() => {
        for (const socket of open) socket.destroy()
      }, timeoutMs)
      if (open.size > 0)
        await new Promise<void>((resolve) => {
          whenEmpty = resolve
        })
      clearTimeout(cutOff)
      await tls?.close()
    },
    certificates: tls?.status,
  }
}
