import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, expect, test } from 'vitest'
import { WebSocketServer } from 'ws'
import { readUpstreamsTls } from '../../../gateway/upstream/upstream-tls.ts'
import { createAuthority, type ServerCertificate } from '../../support/certificates.ts'
import { startDnsServer } from '../../support/dns-server.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { openWebSocket, refusalOf } from '../../support/websocket-api.ts'

const authority = createAuthority()
const stranger = createAuthority()
const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})
afterAll(() => {
  authority.remove()
  stranger.remove()
})

const temporaryFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-tls-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  return folder
}

/** For SNI, by each connection. */
const seenNames: (string | false | null | undefined)[] = []

/** An API for `orders.internal` that lets in who shows a certificate of the authority, and tells whose it was. */
const startApi = async (certificate: ServerCertificate = authority.issue('orders.internal')) => {
  const server = createServer(
    { ...certificate, ca: authority.certificate, requestCert: true, rejectUnauthorized: true },
    ({ socket }, response) => response.end(String((socket as TLSSocket).getPeerCertificate().subject?.CN)),
  )
  const webSockets = new WebSocketServer({ server })
  webSockets.on('connection', (socket, { socket: peer }) =>
    socket.send(String((peer as TLSSocket).getPeerCertificate().subject?.CN)),
  )
  server.on('secureConnection', (socket) => seenNames.push(socket.servername))
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  cleanup.push(() => {
    webSockets.close()
    server.close()
    server.closeAllConnections()
  })
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const filesIn = async (folder: string, client = authority.issue('gateway.internal'), ca = authority.certificate) => {
  const paths = { ca: join(folder, 'ca.pem'), cert: join(folder, 'client.pem'), key: join(folder, 'client-key.pem') }
  await writeFile(paths.key, client.key)
  await writeFile(paths.cert, client.cert)
  await writeFile(paths.ca, ca)
  return paths
}

const gatewayTo = async (url: string, tls: Record<string, unknown> | undefined, more: object = {}, file?: string) => {
  const gateway = await startTestGateway({
    config: () => ({
      upstreams: { api: { url, ...(tls && { tls }), ...more } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api', websocket: true }],
    }),
    ...(file !== undefined && { file }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

test('the gateway shows its certificate, and the name in that of the upstream is the one asked for', async () => {
  const folder = await temporaryFolder()
  const gateway = await gatewayTo(await startApi(), { ...(await filesIn(folder)), serverName: 'orders.internal' })
  expect(await (await fetch(gateway.url)).text()).toBe('gateway.internal')
  const { socket, received, ended } = await openWebSocket(`${gateway.url}/live`)
  await until(() => expect(received).toEqual(['gateway.internal']))
  socket.close()
  await ended
})

test.each([
  ['an authority that is not named', { ca: undefined }],
  ['another authority', { other: true }],
  ['another name', { serverName: 'invoices.internal' }],
  ['no certificate of its own', { cert: undefined, key: undefined }],
])('with %s there is no connection', async (_, { other, ...changes }: Record<string, unknown>) => {
  const folder = await temporaryFolder()
  const files = await filesIn(folder, undefined, other ? stranger.certificate : undefined)
  const gateway = await gatewayTo(await startApi(), { ...files, serverName: 'orders.internal', ...changes })
  expect((await fetch(gateway.url)).status).toBe(502)
  expect((await refusalOf(openWebSocket(`${gateway.url}/live`))).status).toBe(502)
})

test('a certificate that is replaced is used from then on', async () => {
  const folder = await temporaryFolder()
  const tls = { ...(await filesIn(folder)), serverName: 'orders.internal' }
  const gateway = await gatewayTo(await startApi(), tls, {}, join(folder, 'gateway.yaml'))
  expect(await (await fetch(gateway.url)).text()).toBe('gateway.internal')
  await filesIn(folder, authority.issue('gateway-2.internal'))
  await until(async () => expect(await (await fetch(gateway.url)).text()).toBe('gateway-2.internal'))
})

test('files that cannot be read or used are told by their setting, and nothing of them', async () => {
  const folder = await temporaryFolder()
  const files = await filesIn(folder)
  const refusal = (tls: object) =>
    readUpstreamsTls({ api: { tls } } as never).then(
      () => 'taken',
      ({ message }: Error) => message,
    )
  expect(await refusal(files)).toBe('taken')
  expect(await refusal({ ca: join(folder, 'none.pem') })).toContain('none.pem')
  expect(await refusal({ ca: files.key })).toBe('upstreams.api.tls.ca is not usable.')
  const other = join(folder, 'other-key.pem')
  await writeFile(other, stranger.issue('x').key)
  expect(await refusal({ ...files, key: other })).toBe('upstreams.api.tls.key is not usable.')
})

test('a name with a final dot is sent, and verified, without it', async () => {
  const { ca, cert, key } = await filesIn(await temporaryFolder())
  const api = await startApi()
  seenNames.length = 0
  const dns = await startDnsServer({ 'orders.internal': '127.0.0.1' })
  cleanup.push(() => dns.close())
  const url = api.replace('127.0.0.1', 'orders.internal.')
  const gateway = await gatewayTo(url, { ca, cert, key }, { dns: { servers: [dns.address], family: 'ipv4' } })
  // Until its addresses are known the name is looked up by the system, which does not know it.
  await until(async () => expect(await (await fetch(gateway.url)).text()).toBe('gateway.internal'))
  const { socket, received, ended } = await openWebSocket(`${gateway.url}/live`)
  await until(() => expect(received).toEqual(['gateway.internal']))
  socket.close()
  await ended
  expect(new Set(seenNames)).toEqual(new Set(['orders.internal']))
})
