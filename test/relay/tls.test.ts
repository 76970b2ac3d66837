import type { RequestListener } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import tls, { type SecureContextOptions } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createAuthority, type ServerCertificate } from '../support/certificates.ts'
import { userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger } from '../support/fresh-ledger.ts'
import { pour } from '../support/raw-receiver.ts'

eachWithLedger()

let authority: ReturnType<typeof createAuthority>
let trusted: ServerCertificate
const defaults = tls.getCACertificates('default')
beforeAll(() => {
  authority = createAuthority()
  trusted = authority.issue('receiver.test')
  tls.setDefaultCACertificates([...defaults, authority.certificate])
})
afterAll(() => {
  tls.setDefaultCACertificates(defaults)
  authority.remove()
})

let servers: Server[]
let requests: number
let connections: number
beforeEach(async () => {
  servers = []
  requests = 0
  connections = 0
})
afterEach(async () => {
  for (const server of servers) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

const receiver = async (
  certificate: ServerCertificate,
  options: SecureContextOptions = {},
  answer: RequestListener = (_request, response) => void response.writeHead(204).end(),
) => {
  const server = createServer({ ...certificate, ...options }, (request, response) => {
    request.resume().on('end', () => {
      requests += 1
      answer(request, response)
    })
  })
  server.on('secureConnection', () => {
    connections += 1
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `https://receiver.test:${(server.address() as AddressInfo).port}/`
}

// https only, which is the default; the name leads to this machine.
const relay = () =>
  ledger.relay({
    config: { allowedNetworks: ['127.0.0.1'], allowHttp: false, retrySchedule: [3_600_000] },
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
  })
const attempts = async (count: number) => {
  await ledger.untilTrue(`SELECT count(*) >= ${count} FROM delivery_attempts`)
  return ledger.rows('SELECT succeeded, status, error, address FROM delivery_attempts ORDER BY id')
}

test('a certificate that is trusted, valid and for the host is taken; its connection is used again', async () => {
  await ledger.hook({ url: await receiver(trusted) })
  await relay()
  await ledger.record(userUpdated('u1'))
  await attempts(1)
  await ledger.record(userUpdated('u1'))
  const taken = { succeeded: true, status: 204, error: null, address: '127.0.0.1' }
  expect(await attempts(2)).toEqual([taken, taken])
  expect(connections).toBe(1)
})

test.each([
  ['self-signed', () => authority.selfSigned('receiver.test'), {}, 'The certificate is not trusted: self-signed.'],
  ['expired', () => authority.issue('receiver.test', { expired: true }), {}, 'The certificate has expired.'],
  ['for another host', () => authority.issue('other.test'), {}, 'The certificate is for another host.'],
  // OpenSSL serves weak certificates and TLS 1.1 only when it is told to take anything.
  [
    'signed with SHA-1',
    () => authority.issue('receiver.test', { digest: 'sha1' }),
    { ciphers: 'DEFAULT@SECLEVEL=0' },
    'The certificate is not trusted, as one with a weak key or a weak signature.',
  ],
  [
    'under TLS 1.1',
    () => trusted,
    { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const,
    'The receiver speaks no TLS that is safe.',
  ],
])('a receiver whose certificate is %s gets nothing', async (_name, certificate, options, error) => {
  await ledger.hook({ url: await receiver(certificate(), options) })
  await relay()
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toMatchObject([{ succeeded: false, status: null, error }])
  expect(requests).toBe(0)
})

test('a receiver that asks for a certificate of ours gets none, and what it answers is what counts', async () => {
  const server = await receiver(trusted, { requestCert: true, rejectUnauthorized: true } as SecureContextOptions)
  await ledger.hook({ url: server })
  await relay()
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toMatchObject([{ succeeded: false, status: null }])
  expect(requests).toBe(0)
})

test.each([
  ['interim answers', '', 'HTTP/1.1 102 Processing\r\n\r\n', { succeeded: false, status: null }],
  ['a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=', 'y', { succeeded: true, status: 200 }],
])('%s without end: what counts is what was encrypted', async (_name, beginning, rest, outcome) => {
  const most = 16 * 1_048_576
  const gone = Promise.withResolvers<number>()
  const url = await receiver(trusted, {}, ({ socket }) => {
    socket.on('close', () => gone.resolve(socket.bytesWritten))
    socket.write(beginning)
    pour(socket, rest, most)
  })
  await ledger.hook({ url })
  await relay()
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toMatchObject([outcome])
  expect(await gone.promise).toBeLessThan(most)
})

test('plain http is refused at connect where only https is allowed, whatever stands in the hook', async () => {
  const url = await receiver(trusted)
  await ledger.hook({ url: url.replace('https:', 'http:') })
  await relay()
  await ledger.record(userUpdated('u1'))
  expect(await attempts(1)).toMatchObject([{ succeeded: false, error: 'The URL must start with https://.' }])
})
