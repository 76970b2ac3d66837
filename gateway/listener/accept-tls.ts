import type { Server } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { TlsSettings } from '../config/settings/listen.ts'
import { rememberClientCertificate } from '../request/client-certificate.ts'
import type { Http2Sessions } from './http2.ts'

/**
 * What becomes of a connection once its handshake is over: refused for its client certificate, or given to HTTP/2 or
 * HTTP/1.1 as the client has chosen.
 */
export const acceptTls = (options: {
  /** One of HTTPS. */
  server: Server
  settings: TlsSettings
  /** Where HTTP/2 is spoken. */
  sessions: Pick<Http2Sessions, 'open'> | undefined
  logger: Logger
  metrics: Metrics
}): void => {
  const { server, settings, sessions, logger, metrics } = options
  const refused = metrics.counter(
    'surrogate_gateway_tls_refusals_total',
    'Connections that were refused before their first request',
    ['reason'],
  )
  const refuse = (socket: TLSSocket, reason: 'handshake' | 'no_certificate' | 'bad_certificate', detail?: string) => {
    refused.inc({ reason })
    logger.debug({ reason, detail, clientIp: socket.remoteAddress }, 'a connection was refused')
    socket.destroy()
  }

  const http1 = server.listeners('secureConnection')
  server.removeAllListeners('secureConnection')
  server.on('secureConnection', (socket: TLSSocket) => {
    if (settings.clientCa !== undefined) {
      const certificate = socket.getPeerX509Certificate()
      if (!certificate) {
        if (settings.clientCertificate !== 'optional') return refuse(socket, 'no_certificate')
      } else if (!socket.authorized) return refuse(socket, 'bad_certificate', String(socket.authorizationError))
      else if (!rememberClientCertificate(socket, certificate)) return refuse(socket, 'bad_certificate', 'too large')
    }
    if (sessions && socket.alpnProtocol === 'h2') sessions.open(socket)
    else for (const listener of http1) listener.call(server, socket)
  })

  // Node would take a failed handshake for a request that cannot be read, and answer it.
  server.removeAllListeners('tlsClientError')
  server.on('tlsClientError', (error: Error & { code?: string }, socket: TLSSocket) =>
    refuse(socket, 'handshake', error.code ?? error.message),
  )
}
