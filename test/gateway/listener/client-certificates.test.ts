import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { request } from 'node:https'
import type { SecureContextOptions } from 'node:tls'
import { afterAll, afterEach, expect, test } from 'vitest'
import type { PolicyInput } from '../../../policies/decide.ts'
import { createAuthority } from '../../support/certificates.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { recordingPolicies } from '../../support/recording-policies.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

const files = createTlsFiles()
const strangers = createAuthority()
const ca = files.authority.certificate
const clientCa = files.path('clients.pem')
writeFileSync(clientCa, ca)
const alice = files.authority.issue('alice', { names: 'URI:spiffe://x.test/alice,email:alice@x.test,DNS:alice.x.test' })
const mallory = strangers.issue('alice')

const opened: { close(): unknown }[] = []
afterEach(async () => {
  writeFileSync(clientCa, ca)
  for (const one of opened.splice(0).reverse()) await one.close()
})
afterAll(() => {
  files.remove()
  strangers.remove()
})

const start = async (clientCertificate?: 'optional' | 'required') => {
  const inputs: PolicyInput[] = []
  const policies = await recordingPolicies((input) => void inputs.push(input))
  const tls = { certificates: [files.pair('localhost')], clientCa, ...(clientCertificate && { clientCertificate }) }
  const gateway = await startTestGateway({ policies, config: () => ({ listen: { port: 0, tls } }) })
  opened.push(gateway)
  return { gateway, inputs }
}

/** The status over HTTP/1.1. */
const ask = (gateway: TestGateway, options: SecureContextOptions, headers = {}, path = '/public/x'): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(
      gateway.url + path,
      { ca, servername: 'localhost', agent: false, headers, ...options },
      (answer) => answer.resume().on('end', () => resolve(answer.statusCode!)),
    )
    sent.on('error', reject).end()
  })

const refusals = async (gateway: TestGateway, reason: string): Promise<string> =>
  new RegExp(`tls_refusals_total{reason="${reason}"} (\\d+)`).exec((await gateway.metrics.render()).text)?.[1] ?? '0'

test('without a certificate nobody comes in, unless it is optional', async () => {
  const { gateway } = await start()
  await expect(ask(gateway, {})).rejects.toThrow()
  await expect(ask(gateway, { maxVersion: 'TLSv1.2' })).rejects.toThrow()
  await until(async () => expect(await refusals(gateway, 'no_certificate')).toBe('2'))
  expect(gateway.upstream.seen).toEqual([])
  expect(await ask(gateway, alice)).toBe(200)

  const optional = await start('optional')
  expect(await ask(optional.gateway, {})).toBe(200)
  expect(optional.inputs[0]).not.toHaveProperty('tls')
})

test.each(['optional', 'required'] as const)(
  'a certificate that cannot be verified ends the connection (%s)',
  async (mode) => {
    const { gateway } = await start(mode)
    const expired = files.authority.issue('alice', { expired: true })
    await expect(ask(gateway, mallory)).rejects.toThrow()
    await expect(ask(gateway, expired)).rejects.toThrow()
    await expect(
      openHttp2(gateway.url, { ca, ...mallory }).then((one) => one.send({ ':path': '/public/x' })),
    ).rejects.toThrow()
    await until(async () => expect(await refusals(gateway, 'bad_certificate')).toBe('3'))
    expect(gateway.upstream.seen).toEqual([])
  },
)

test('rules see what it says, over HTTP/1.1 and HTTP/2, and the upstream is told nothing by a client', async () => {
  const { gateway, inputs } = await start('required')
  expect(await ask(gateway, alice, { 'client-cert': ':bWFsbG9yeQ==:', 'x-forwarded-client-cert': 'Subject=x' })).toBe(
    200,
  )
  const client = await openHttp2(gateway.url, { ca, ...alice, maxVersion: 'TLSv1.2' })
  opened.push(client)
  expect((await client.send({ ':path': '/public/x' })).status).toBe(200)

  const certificate = new X509Certificate(alice.cert)
  const clientCertificate = {
    subject: 'CN=alice',
    issuer: 'CN=Test authority',
    serial: certificate.serialNumber.toLowerCase(),
    thumbprint: Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url'),
    names: { dns: ['alice.x.test'], uri: ['spiffe://x.test/alice'], email: ['alice@x.test'] },
    notAfter: certificate.validToDate.getTime() / 1_000,
  }
  expect(inputs.map(({ tls }) => tls)).toEqual([
    { version: '1.3', cipher: 'TLS_AES_128_GCM_SHA256', serverName: 'localhost', clientCertificate },
    {
      version: '1.2',
      cipher: expect.stringMatching(/^TLS_ECDHE_ECDSA_WITH_AES_\d+_GCM_SHA\d+$/),
      serverName: 'localhost',
      clientCertificate,
    },
  ])
  const { headers } = gateway.upstream.seen[0]!
  expect(Object.keys(headers).filter((name) => name.includes('cert'))).toEqual([])
})

test('the certificate of a proxy that asks is not that of its client', async () => {
  const inputs: PolicyInput[] = []
  const policies = await recordingPolicies((input) => void inputs.push(input))
  const gateway = await startTestGateway({
    policies,
    config: () => ({
      listen: { port: 0, tls: { certificates: [files.pair('localhost')], clientCa } },
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect: 'caddy' },
    }),
  })
  opened.push(gateway)
  const asked = {
    'x-forwarded-proto': 'https',
    'x-forwarded-method': 'GET',
    'x-forwarded-uri': '/public/x',
    'x-forwarded-host': 'api.test',
  }
  expect(await ask(gateway, alice, asked, '/.surrogate/auth')).toBe(200)
  expect(inputs).toHaveLength(1)
  expect(inputs[0]).not.toHaveProperty('tls')
})

test('names that could be read in two ways are read as they are', async () => {
  const { gateway, inputs } = await start('required')
  const names = 'URI:https://x.test/?a\\,DNS:admin.test'
  const tricky = files.authority.issue('alice/OU=a, CN=root', { names })
  expect(await ask(gateway, tricky)).toBe(200)
  expect(inputs[0]!.tls!.clientCertificate.names.dns).toEqual(['admin.test'])
})

test('a subject cannot be written so that it looks like another one', async () => {
  const { gateway, inputs } = await start('required')
  const subjects = ['alice\nCN=root,O=x\\+OU=y', ' alice\u0001 ', 'alice/CN=root', 'alice+OU=b']
  for (const subject of subjects) {
    expect(await ask(gateway, files.authority.issue(subject, { names: 'DNS:a.test' }))).toBe(200)
  }
  expect(inputs.map(({ tls }) => tls!.clientCertificate.subject)).toEqual([
    'CN=alice\\0ACN=root\\,O=x\\+OU=y',
    'CN=\\ alice\\01\\ ',
    'CN=root,CN=alice',
    'OU=b+CN=alice',
  ])
})

test('a certificate with a hundred names is served, and one that fills the input of rules is not', async () => {
  const { gateway, inputs } = await start('required')
  const withNames = (count: number) => {
    const names = Array.from({ length: count }, (_, index) => `DNS:client-${index}.example.test`).join()
    return files.authority.issue('many', { names })
  }
  expect(await ask(gateway, withNames(100))).toBe(200)
  expect(inputs[0]!.tls!.clientCertificate.names.dns).toHaveLength(100)
  await expect(ask(gateway, withNames(1_000))).rejects.toThrow()
  await until(async () => expect(await refusals(gateway, 'bad_certificate')).toBe('1'))
})

test('other authorities count for the next connection, and no session gets past them', async () => {
  const { gateway } = await start('required')
  expect(await ask(gateway, alice)).toBe(200)
  const kept = await openHttp2(gateway.url, { ca, ...alice })
  opened.push(kept)
  writeFileSync(clientCa, strangers.certificate)
  await until(async () => expect(await ask(gateway, mallory).catch(() => 0)).toBe(200))
  await expect(ask(gateway, alice)).rejects.toThrow()
  expect((await kept.send({ ':path': '/public/x' })).status).toBe(200)
}, 30_000)
