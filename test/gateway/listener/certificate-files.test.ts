import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { type ConnectionOptions, connect } from 'node:tls'
import { afterAll, afterEach, expect, test } from 'vitest'
import { capturedLogger } from '../../support/captured-logger.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

/** Certificates and keys as operators have them, and handshakes as scanners make them. */

const files = createTlsFiles()
const ca = files.authority.certificate
const opened: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close()
})
afterAll(() => files.remove())

const start = async (tls: Record<string, unknown>, options: Record<string, unknown> = {}) => {
  const { logger, lines } = capturedLogger()
  const gateway = await startTestGateway({ logger, config: () => ({ listen: { port: 0, tls }, ...options }) })
  opened.push(gateway)
  return { gateway, lines }
}

/** What a client sees of the certificate: its key's type and its names. */
const seen = (
  { port }: TestGateway,
  options: ConnectionOptions,
): Promise<{ type?: string; names?: string; serial: string }> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', ca, rejectUnauthorized: false, ...options }, () => {
      const certificate = socket.getPeerX509Certificate()!
      const { publicKey, subjectAltName, serialNumber } = certificate
      resolve({ type: publicKey.asymmetricKeyType!, names: subjectAltName!, serial: serialNumber })
      socket.destroy()
    })
    socket.once('error', reject)
  })

const openssl = (port: number, ...args: string[]): Promise<string> =>
  new Promise((resolve) => {
    const child = execFile('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, ...args], (_, stdout, stderr) =>
      resolve(stdout + stderr),
    )
    child.stdin!.end()
  })

test('of two pairs for a name the first is used, whatever its key, and the log tells of the other', async () => {
  const first = files.writePair('rsa', files.authority.issue('a.test', { rsa: true }))
  const second = files.writePair('ec', files.authority.issue('a.test', { names: 'DNS:a.test,DNS:b.test' }))
  const { gateway, lines } = await start({ certificates: [first, second] })
  expect(await seen(gateway, { servername: 'a.test' })).toMatchObject({ type: 'rsa', names: 'DNS:a.test' })
  expect(await seen(gateway, { servername: 'b.test' })).toMatchObject({ type: 'ec', names: 'DNS:a.test, DNS:b.test' })
  expect(lines.filter(({ inUse }) => inUse)).toEqual([
    expect.objectContaining({ name: 'a.test', certificate: second.cert, inUse: first.cert }),
  ])
})

test('twenty certificates, in whatever spelling a client names them', async () => {
  const hosts = Array.from({ length: 20 }, (_, index) => (index % 2 ? `*.w${index}.test` : `h${index}.test`))
  const { gateway } = await start({ certificates: hosts.map((host) => files.pair(host)) })
  const askedFor = { 'h0.test': 0, 'H18.TEST': 18, 'h2.test.': 2, 'x.w19.test': 19, 'X.W1.Test.': 1, 'w1.test': 0 }
  for (const [servername, index] of Object.entries(askedFor)) {
    expect((await seen(gateway, { servername })).names).toBe(`DNS:${hosts[index]}`)
  }
}, 30_000)

test('an encrypted key is named as what it is', async () => {
  const { cert, key } = files.pair('a.test')
  const encrypted = files.path('encrypted.key')
  execFileSync('openssl', ['pkcs8', '-topk8', '-in', key, '-out', encrypted, '-passout', 'pass:secret'])
  await expect(start({ certificates: [{ cert, key: encrypted }] })).rejects.toThrow(
    `The key ${encrypted} is encrypted: decrypt it, a passphrase cannot be given.`,
  )
})

test('the certificates behind the first one in its file are sent, and half of one is refused', async () => {
  const pair = files.pair('chain.test')
  writeFileSync(pair.cert, readFileSync(pair.cert, 'utf8') + ca)
  const { gateway } = await start({ certificates: [pair] })
  const shown = await openssl(gateway.port, '-showcerts', '-servername', 'chain.test')
  expect(shown.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
  const next = files.authority.issue('chain.test')
  files.writePair('chain.test', { key: next.key, cert: next.cert + ca.slice(0, -200) })
  await until(async () =>
    expect((await gateway.health.ready()).checks['gateway certificates']!.detail).toMatch('cannot be used for TLS'),
  )
})

test('a folder that Kubernetes swaps as a whole, by the link ..data', async () => {
  const volume = files.path('volume')
  const publish = (version: string) => {
    const pair = files.authority.issue('k8s.test')
    mkdirSync(join(volume, version), { recursive: true })
    writeFileSync(join(volume, version, 'tls.crt'), pair.cert)
    writeFileSync(join(volume, version, 'tls.key'), pair.key)
    symlinkSync(version, join(volume, '..data_tmp'))
    renameSync(join(volume, '..data_tmp'), join(volume, '..data'))
  }
  publish('..1')
  for (const name of ['tls.crt', 'tls.key']) symlinkSync(`..data/${name}`, join(volume, name))
  const { gateway } = await start({ certificates: [{ cert: join(volume, 'tls.crt'), key: join(volume, 'tls.key') }] })
  const { serial } = await seen(gateway, { servername: 'k8s.test' })
  publish('..2')
  await until(async () => expect((await seen(gateway, { servername: 'k8s.test' })).serial).not.toBe(serial))
})

test('an expired certificate at the start is served, and told', async () => {
  const pair = files.writePair('expired', files.authority.issue('a.test', { expired: true }))
  const { gateway, lines } = await start({ certificates: [pair] })
  expect((await seen(gateway, { servername: 'a.test' })).names).toBe('DNS:a.test')
  expect(lines).toContainEqual(
    expect.objectContaining({ certificate: pair.cert, msg: expect.stringMatching('expired') }),
  )
  const { text } = await gateway.metrics.render()
  const [, expiry] = /certificate_expiry_seconds\{[^}]*\} (\d+)/.exec(text)!
  expect(Number(expiry)).toBeLessThan(Date.now() / 1_000)
})

test('old versions, renegotiation and compression are not served', async () => {
  const { gateway } = await start({ certificates: [files.pair('localhost')] })
  for (const version of ['-tls1', '-tls1_1']) {
    expect(await openssl(gateway.port, version, '-cipher', 'ALL:@SECLEVEL=0')).toMatch('Cipher is (NONE)')
  }
  const shown = await openssl(gateway.port, '-tls1_2', '-comp')
  expect(shown).toMatch('Compression: NONE')
  const socket = connect({ port: gateway.port, host: '127.0.0.1', ca, servername: 'localhost', maxVersion: 'TLSv1.2' })
  const refused = await new Promise<unknown>((resolve) => {
    socket.once('secureConnect', () => socket.renegotiate({ rejectUnauthorized: false }, (error) => resolve(error)))
    socket.once('error', resolve)
  })
  expect(refused).toBeInstanceOf(Error)
  socket.destroy()
})

test('handshakes that are not finished end, and hold nothing', async () => {
  const { gateway } = await start(
    { certificates: [files.pair('localhost')] },
    { limits: { headersTimeout: '500ms', requestTimeout: '500ms' } },
  )
  // Nothing; a record that announces more than comes.
  const openings = [Buffer.alloc(0), Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252])]
  const closed = Array.from({ length: 100 }, (_, index) => {
    const socket = connectTcp(gateway.port, '127.0.0.1')
    socket.write(openings[index % 2]!)
    return new Promise<void>((resolve) =>
      socket
        .on('error', () => {})
        .resume()
        .once('close', () => resolve()),
    )
  })
  await Promise.all(closed)
  const { text } = await gateway.metrics.render()
  expect(text).toContain('surrogate_gateway_tls_refusals_total{reason="handshake"} 100')
})
