import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { PolicyInput } from '../../../policies/decide.ts'
import { connectExtAuthz } from '../../support/ext-authz.ts'
import { orders, startTestGateway } from '../../support/gateway.ts'
import { recordingPolicies } from '../../support/recording-policies.ts'
import { createTlsFiles } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

const files = createTlsFiles()
afterAll(() => files.remove())
const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const open = [{ id: 'public', path: '/public/**', auth: 'none' }]
const path = '/public/x'

const start = async (
  config: Record<string, unknown> = {},
  options: Omit<Parameters<typeof startTestGateway>[0] & object, 'config'> = {},
) => {
  const gateway = await startTestGateway({
    ...options,
    config: () => ({ trustedProxies: ['127.0.0.1'], extAuthz: { port: 0 }, routes: open, ...config }),
  })
  cleanup.push(gateway.close)
  const connected = (...args: Parameters<typeof connectExtAuthz> extends [number, ...infer Rest] ? Rest : never) => {
    const envoy = connectExtAuthz(gateway.extAuthzPort, ...args)
    cleanup.push(envoy.close)
    return envoy
  }
  return { gateway, connected }
}

describe('TLS', () => {
  const { cert, key } = files.pair('localhost')
  const clientCa = files.path('ca.pem')
  const ca = Buffer.from(files.authority.certificate)

  writeFileSync(clientCa, ca)

  const servedBy = (port: number) =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ port, host: 'localhost', ca, ALPNProtocols: ['h2'] }, () => {
        resolve(socket.getPeerCertificate().serialNumber)
        socket.destroy()
      })
      socket.on('error', reject)
    })

  const startTls = (more: object = {}) =>
    start({ extAuthz: { port: 0, tls: { certificates: [{ cert, key }], ...more } } })

  test('is spoken with the certificate of the file, and with the one that takes its place', async () => {
    const { connected, gateway } = await startTls()
    expect((await connected(credentials.createSsl(ca), 'localhost').check({ path })).allowed).toBe(true)
    await expect(connected().check({ path })).rejects.toMatchObject({ code: 14 })
    const serial = () => servedBy(gateway.extAuthzPort)
    const before = await serial()
    files.pair('localhost')
    await until(async () => expect(await serial()).not.toBe(before))
  })

  test('a pair that cannot be used is told of, whatever the other listener has', async () => {
    const [own, public_] = [files.pair('localhost', 'envoys'), files.pair('localhost', 'public')]
    const { gateway } = await start({
      listen: { port: 0, tls: { certificates: [public_] } },
      extAuthz: { port: 0, tls: { certificates: [own] } },
    })
    const stale = async () =>
      /^surrogate_gateway_certificates_stale (\d)$/m.exec((await gateway.metrics.render()).text)?.[1]
    const refused = () => gateway.metrics.snapshot().then((metrics) => JSON.stringify(metrics).match(/"refused"/g))
    expect(await stale()).toBe('0')
    writeFileSync(own.cert, 'no certificate')
    await until(async () => expect(await stale()).toBe('1'))
    // What the other one reads well does not take it back.
    const before = await servedBy(gateway.port)
    files.pair('localhost', 'public')
    await until(async () => expect(await servedBy(gateway.port)).not.toBe(before))
    expect([await stale(), await refused()]).toEqual(['1', ['"refused"']])
    writeFileSync(public_.cert, 'no certificate')
    await until(async () => expect(await stale()).toBe('2'))
  })

  test('with clientCa only for whoever shows a certificate of it', async () => {
    const { connected } = await startTls({ clientCa })
    const own = files.authority.issue('envoy')
    const foreign = files.authority.selfSigned('envoy')
    const as = (client?: { key: string; cert: string }) =>
      connected(
        credentials.createSsl(ca, ...(client ? [Buffer.from(client.key), Buffer.from(client.cert)] : [])),
        'localhost',
      )
    expect((await as(own).check({ path })).allowed).toBe(true)
    await expect(as().check({ path })).rejects.toMatchObject({ code: 14 })
    await expect(as(foreign).check({ path })).rejects.toMatchObject({ code: 14 })
  })
})

describe('what rules see', () => {
  const heard: PolicyInput[] = []
  const startRecording = async () =>
    start(
      { routes: [{ id: 'public', path: '/public/**', auth: 'none', policyHeaders: ['x-seen'] }] },
      { policies: await recordingPolicies((input) => heard.push(input)) },
    )

  test('is the request that Envoy has, with the bytes of its fields', async () => {
    const { connected } = await startRecording()
    await connected().check({
      path: '/public/x?a=1',
      host: 'API.test:443',
      headers: { 'x-seen': 'Zoë', 'X-Seen': '2' },
    })
    expect(heard.at(-1)!.request).toMatchObject({
      ...{ method: 'GET', scheme: 'https', host: 'api.test', path: '/public/x', query: { a: ['1'] } },
      headers: { 'x-seen': ['ZoÃ«', '2'] },
      clientIp: '203.0.113.9',
    })
  })

  test("is the certificate of Envoy's client, where it sends that", async () => {
    const { connected } = await startRecording()
    const { cert } = files.authority.issue('client', { names: 'URI:spiffe://mesh/ns/a/sa/b' })
    const source = {
      address: { socketAddress: { address: '203.0.113.9' } },
      principal: 'spiffe://forged',
      certificate: encodeURIComponent(cert),
    }
    await connected().check({ path, attributes: { source, tlsSession: { sni: 'api.test' } } })
    expect(heard.at(-1)!.tls).toMatchObject({
      serverName: 'api.test',
      clientCertificate: { subject: 'CN=client', names: { uri: ['spiffe://mesh/ns/a/sa/b'] } },
    })
    await connected().check({ path })
    expect(heard.at(-1)).not.toHaveProperty('tls')
  })
})

test('the logs name ext_authz, the status of the answer, and no token', async () => {
  const folder = files.path('')
  const { connected, gateway } = await start({
    accessLog: { to: join(folder, 'access.jsonl') },
    decisionLog: { to: join(folder, 'decisions.jsonl') },
    routes: [...open, { id: 'orders', path: '/orders', audience: [orders], scopes: ['read:orders'] }],
  })
  const token = await gateway.issuer.sign({ scope: 'other', client_id: 'c1' })
  const headers = { authorization: `Bearer ${token}`, 'user-agent': 'curl/8', 'x-request-id': 'r-1' }
  await connected().check({ path: '/orders', headers })
  const line = async (name: string) => JSON.parse(await readFile(join(folder, name), 'utf8'))
  const access = await until(() => line('access.jsonl'))
  expect(access).toMatchObject({
    ...{ request_id: 'r-1', client_ip: '203.0.113.9', protocol: 'ext_authz', status: 401, code: 'insufficient_scope' },
    ...{ route: 'orders', user_agent: 'curl/8', method: 'GET', host: 'api.test', path: '/orders' },
  })
  const decision = await until(() => line('decisions.jsonl'))
  expect(decision).toMatchObject({ decision_id: 'r-1', http: { protocol: 'ext_authz', status: 401, route: 'orders' } })
  expect(JSON.stringify([access, decision])).not.toContain(token.slice(-20))
  const { text } = await gateway.metrics.render()
  expect(text).toContain('surrogate_gateway_requests_total{route="orders",status="401"} 1')
})

test('a reload counts for the next check, on connections that are open', async () => {
  const file = join(files.path(''), 'gateway.yaml')
  const { connected, gateway } = await start({}, { file })
  const envoy = connected()
  expect((await envoy.check({ path })).allowed).toBe(true)
  await gateway.write({
    routes: [{ id: 'closed', path: '/public/**', audience: [orders] }],
    trustedProxies: ['127.0.0.1'],
    extAuthz: { port: 0 },
  })
  await gateway.reload()
  await until(async () => expect(await envoy.check({ path })).toMatchObject({ allowed: false, status: 401 }))
})

describe('health', () => {
  test('is told to anybody, for the services that are here', async () => {
    const { connected } = await start({ trustedProxies: ['192.0.2.1'] })
    const client = connected()
    await until(async () => expect(await client.health()).toBe('SERVING'))
    expect(await client.health('envoy.service.auth.v3.Authorization')).toBe('SERVING')
    await expect(client.health('other')).rejects.toMatchObject({ code: 5 })
  })

  test('is NOT_SERVING without the keys of an issuer, and while the gateway stops', async () => {
    const without = await start({ issuers: [{ issuer: 'http://127.0.0.1:9/oidc' }] })
    expect(await without.connected().health()).toBe('NOT_SERVING')
    const { connected, gateway } = await start({ drain: { delay: '2s' } })
    const client = connected()
    await until(async () => expect(await client.health()).toBe('SERVING'))
    const closing = gateway.close()
    cleanup.splice(cleanup.indexOf(gateway.close), 1)
    expect(await client.health()).toBe('NOT_SERVING')
    // Envoy takes a while to notice, and is answered until then.
    expect((await client.check({ path })).allowed).toBe(true)
    await closing
    await expect(client.check({ path })).rejects.toMatchObject({ code: 14 })
  })
})

test('a stop answers what is under way, and ends the connections', async () => {
  const { gateway, connected } = await start({
    limits: { refusedTokens: 1 },
    routes: [{ id: 'orders', path: '/orders', audience: [orders] }],
  })
  const envoy = connected()
  // Beyond the limit of refusals answers wait up to half a second.
  const answers = Array.from({ length: 4 }, () => envoy.check({ path: '/orders' }))
  await answers[0]
  cleanup.splice(cleanup.indexOf(gateway.close), 1)
  await gateway.close()
  for (const answer of await Promise.all(answers)) expect(answer.status).toBe(401)
})

test('a port that is taken is told with its setting', async () => {
  const { gateway } = await start()
  await expect(start({ extAuthz: { port: gateway.extAuthzPort } })).rejects.toThrow(/ext_authz cannot listen/)
})
