import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

const files = createTlsFiles()
const ca = files.authority.certificate
const opened: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})
afterAll(() => files.remove())

const start = async (tls: Record<string, unknown>, listen: Record<string, unknown> = {}): Promise<TestGateway> => {
  const gateway = await startTestGateway({ config: () => ({ listen: { port: 0, tls, ...listen } }) })
  opened.push(gateway)
  return gateway
}

const handshake = ({ port }: TestGateway, options: ConnectionOptions = {}): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca, rejectUnauthorized: false, ...options }, () =>
      resolve(socket),
    )
    socket.once('error', reject)
  })

/** The names of the certificate that a client of this name gets. */
const namesFor = async (gateway: TestGateway, servername: string | undefined): Promise<string | undefined> => {
  const socket = await handshake(gateway, servername === undefined ? {} : { servername })
  const names = socket.getPeerX509Certificate()?.subjectAltName
  socket.destroy()
  return names
}

const serialOf = (cert: string): string =>
  execFileSync('openssl', ['x509', '-noout', '-serial'], { input: cert }).toString().trim().replace('serial=', '')

const served = async (gateway: TestGateway, servername: string): Promise<string | undefined> => {
  const socket = await handshake(gateway, { servername })
  const serial = socket.getPeerX509Certificate()?.serialNumber
  socket.destroy()
  return serial
}

const detail = async (gateway: TestGateway) => (await gateway.health.ready()).checks['gateway certificates']
const metric = async (gateway: TestGateway, name: string): Promise<string[]> =>
  (await gateway.metrics.render()).text.split('\n').filter((line) => line.startsWith(name))

test('a client gets the certificate of the name that it asks for, or the first one', async () => {
  const certificates = [files.pair('a.test'), files.pair('*.b.test'), files.pair('x.b.test')]
  const gateway = await start({ certificates })
  expect(await namesFor(gateway, 'A.test')).toBe('DNS:a.test')
  expect(await namesFor(gateway, 'y.b.test')).toBe('DNS:*.b.test')
  expect(await namesFor(gateway, 'x.b.test')).toBe('DNS:x.b.test')
  for (const other of ['y.z.b.test', 'b.test', 'other.test', undefined])
    expect(await namesFor(gateway, other)).toBe('DNS:a.test')
  const [expiry] = await metric(gateway, 'surrogate_gateway_certificate_expiry_seconds')
  expect(Number(expiry!.split(' ').at(-1))).toBeGreaterThan(Date.now() / 1_000 + 86_400)
})

test('versions, ciphers and protocols', async () => {
  const pair = files.pair('localhost')
  const gateway = await start({ certificates: [pair] })
  const version = async (options: ConnectionOptions) => {
    const socket = await handshake(gateway, options)
    const spoken = [socket.getProtocol(), socket.alpnProtocol]
    socket.destroy()
    return spoken
  }
  expect(await version({ ALPNProtocols: ['h2', 'http/1.1'] })).toEqual(['TLSv1.3', 'h2'])
  expect(await version({ maxVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] })).toEqual(['TLSv1.2', 'http/1.1'])
  await expect(version({ maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'ALL@SECLEVEL=0' })).rejects.toThrow()
  await expect(version({ maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA256' })).rejects.toThrow()
  await expect(version({ ALPNProtocols: ['spdy/3'] })).rejects.toThrow()
  await until(async () =>
    expect(await metric(gateway, 'surrogate_gateway_tls_refusals_total{reason="handshake"}')).toEqual([
      expect.stringMatching(/ [3-9]$/),
    ]),
  )
  const strict = await start({ certificates: [pair], minVersion: '1.3' }, { http2: false })
  const socket = await handshake(strict, { ALPNProtocols: ['h2', 'http/1.1'] })
  expect([socket.getProtocol(), socket.alpnProtocol]).toEqual(['TLSv1.3', 'http/1.1'])
  socket.destroy()
  await expect(handshake(strict, { maxVersion: 'TLSv1.2' })).rejects.toThrow()
})

test('bytes that are no TLS, and a request in the clear, end the connection', async () => {
  const gateway = await start({ certificates: [files.pair('localhost')] })
  await expect(fetch(`http://127.0.0.1:${gateway.port}/public/x`)).rejects.toThrow()
})

test('new certificates serve new connections while no request of the old ones fails', async () => {
  const pair = files.pair('localhost', 'swapped')
  const gateway = await start({ certificates: [pair] })
  const old = serialOf(readFileSync(pair.cert, 'utf8'))
  expect(await served(gateway, 'localhost')).toBe(old)

  const client = await openHttp2(gateway.url, { ca })
  opened.push(client)
  const statuses: number[] = []
  let running = true
  const overHttp1 = () =>
    new Promise<number>((resolve, reject) => {
      const sent = request(`${gateway.url}/public/x`, { ca, servername: 'localhost' }, (answer) =>
        answer.resume().on('end', () => resolve(answer.statusCode!)),
      )
      sent.on('error', reject).end()
    })
  const load = async (send: () => Promise<number>) => {
    while (running) statuses.push(await send())
  }
  const fresh = async () => {
    const one = await openHttp2(gateway.url, { ca })
    const { status } = await one.send({ ':path': '/public/x' })
    one.close()
    return status
  }
  const loads = [load(overHttp1), load(async () => (await client.send({ ':path': '/public/x' })).status), load(fresh)]
  const serials = new Set([old])
  for (let round = 0; round < 2; round++) {
    const next = files.authority.issue('localhost')
    // One after the other, as a tool for renewal does: for a moment they do not belong together.
    writeFileSync(pair.key, next.key)
    writeFileSync(pair.cert, next.cert)
    await until(async () => expect(await served(gateway, 'localhost')).toBe(serialOf(next.cert)))
    serials.add(serialOf(next.cert))
  }
  running = false
  await Promise.all(loads)
  expect(serials.size).toBe(3)
  expect(statuses.length).toBeGreaterThan(5)
  expect(statuses.filter((status) => status !== 200)).toEqual([])
}, 30_000)

test('a pair that cannot be used changes nothing, and says so until it is right', async () => {
  const pair = files.pair('localhost', 'bad')
  const gateway = await start({ certificates: [pair, files.pair('b.test')] })
  const old = await served(gateway, 'localhost')
  const spoil: [string, () => void, RegExp][] = [
    ['another key', () => writeFileSync(pair.key, files.authority.issue('localhost').key), /is not that of/],
    ['no PEM', () => writeFileSync(pair.cert, 'nonsense'), /holds no certificate/],
    [
      'expired',
      () => void files.writePair('bad', files.authority.issue('localhost', { expired: true })),
      /has expired/,
    ],
  ]
  for (const [, change, reason] of spoil) {
    change()
    await until(async () =>
      expect(await detail(gateway)).toMatchObject({ ok: true, detail: expect.stringMatching(reason) }),
    )
    expect(await served(gateway, 'localhost')).toBe(old)
    expect(await metric(gateway, 'surrogate_gateway_certificates_stale')).toEqual([
      'surrogate_gateway_certificates_stale 1',
    ])
  }
  // The other pair is not held back.
  const next = files.authority.issue('b.test')
  files.writePair('b.test', next)
  await until(async () => expect(await served(gateway, 'b.test')).toBe(serialOf(next.cert)))

  const right = files.authority.issue('localhost')
  files.writePair('bad', right)
  await until(async () => expect(await served(gateway, 'localhost')).toBe(serialOf(right.cert)))
  expect(await detail(gateway)).toEqual({ ok: true, detail: 'as in their files' })
  expect(await metric(gateway, 'surrogate_gateway_certificates_stale')).toEqual([
    'surrogate_gateway_certificates_stale 0',
  ])
}, 30_000)

test('a gateway does not start with a pair that cannot be used', async () => {
  const { cert } = files.pair('a.test')
  const { key } = files.pair('b.test')
  await expect(start({ certificates: [{ cert, key }] })).rejects.toThrow(`The key ${key} is not that of ${cert}.`)
  await expect(start({ certificates: [{ cert, key: files.path('none') }] })).rejects.toThrow('cannot be read')
  await expect(start({ certificates: [files.pair('a.test')], clientCa: key })).rejects.toThrow('holds no certificate')
})
