import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'

/** The listener's TLS when several workers have it. */

const files = createTlsFiles()
const pair = files.pair('localhost')
let gateway: GatewayWorkers
beforeAll(async () => {
  gateway = await startGatewayWorkers({
    listen: { port: 0, tls: { certificates: [pair] } },
    upstreams: { api: { url: 'http://127.0.0.1:9' } },
    routes: [{ id: 'all', path: '/x', auth: 'none', upstream: 'api' }],
  })
}, 60_000)
afterAll(async () => {
  await gateway?.close()
  files.remove()
})

const open = (options: ConnectionOptions): TLSSocket => {
  const ca = files.authority.certificate
  return connect({
    port: Number(new URL(gateway.url).port),
    host: '127.0.0.1',
    ca,
    servername: 'localhost',
    ...options,
  })
}

const newSession = async (options: ConnectionOptions): Promise<Buffer> => {
  const socket = open(options)
  const [session] = await once(socket, 'session')
  socket.destroy()
  return session
}

const isResumed = async (options: ConnectionOptions): Promise<boolean> => {
  const socket = open(options)
  await once(socket, 'secureConnect')
  const resumed = socket.isSessionReused()
  socket.destroy()
  return resumed
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)('each takes up sessions that another one began (%s)', async (maxVersion) => {
  const session = await newSession({ maxVersion })
  const later = await Promise.all(Array.from({ length: 6 }, () => isResumed({ maxVersion, session })))
  expect(later).toEqual([true, true, true, true, true, true])
})

test('what they say of certificates is not added up', async () => {
  const metrics = await gateway.metrics()
  const { validToDate } = new X509Certificate(readFileSync(pair.cert))
  expect(metrics).toContain(
    `surrogate_gateway_certificate_expiry_seconds{certificate="${pair.cert}"} ${validToDate.getTime() / 1_000}\n`,
  )
})
