import type { RequestListener } from 'node:http'
import type { Server } from 'node:tls'
import type { HealthResult } from '../../platform/health.ts'
import { listen } from '../../platform/http/http-server.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { InspectionSettings } from '../config/settings/inspection.ts'
import { acceptTls } from '../listener/accept-tls.ts'
import { openTls } from '../listener/tls.ts'
import { refuseConnect, refuseUnparsed, refuseUpgrade } from '../request/unparsed.ts'

export interface InspectionListener {
  url: string
  port: number
  certificates: (() => HealthResult) | undefined
  close(timeoutMs: number): Promise<void>
}

/** In ms. */
const timeouts = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 75_000 }
const handshakeTimeout = 10_000
const mostConnections = 256

/** HTTP/1.1, with the TLS of the public listener. Throws `StartupError`. */
export const openInspectionListener = async (options: {
  settings: InspectionSettings
  handler: RequestListener
  /** Of a head, in bytes. */
  headerSize: number
  logger: Logger
  metrics: Metrics
}): Promise<InspectionListener> => {
  const { settings, handler, headerSize, logger, metrics } = options
  const { host, port: wanted, tls: files } = settings
  const tls = files && (await openTls({ settings: files, http2: false, handshakeTimeout, logger, metrics }))
  const { server, url, port, close } = await listen({
    name: 'the inspection listener',
    setting: 'inspection.port',
    host,
    port: wanted,
    handler,
    tls: tls?.options,
    server: {
      maxHeaderSize: headerSize,
      connectionsCheckingInterval: 2_000,
      requireHostHeader: false,
      joinDuplicateHeaders: false,
      insecureHTTPParser: false,
      ...timeouts,
    },
  })
  server.maxConnections = mostConnections
  server.maxHeadersCount = 0
  server.on('checkContinue', handler)
  server.on('checkExpectation', handler)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseUnparsed(error, socket as never))
  server.on('connect', (_request, socket) => refuseConnect(socket as never))
  server.on('upgrade', (_request, socket) => refuseUpgrade(socket as never))
  if (files) acceptTls({ server, settings: files, sessions: undefined, logger, metrics })
  tls?.follow(server as unknown as Server)
  return {
    url,
    port,
    certificates: tls?.status,
    async close(timeoutMs) {
      await close(timeoutMs)
      await tls?.close()
    },
  }
}
