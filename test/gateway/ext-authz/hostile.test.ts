import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkOf, connectExtAuthz, type ExtAuthzClient } from '../../support/ext-authz.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

/** What a client could make Envoy say, and what another program than Envoy could. Everything is open: `/public/**`. */

let gateway: TestGateway
let envoy: ExtAuthzClient

beforeAll(async () => {
  gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      extAuthz: { port: 0 },
      routes: [{ id: 'public', path: '/public/**', auth: 'none', policyHeaders: ['x-seen'] }],
    }),
  })
  envoy = connectExtAuthz(gateway.extAuthzPort)
})
afterAll(async () => {
  envoy.close()
  await gateway.close()
})

const path = '/public/x'

test('what all others differ from is allowed', async () => {
  expect((await envoy.check({ path })).allowed).toBe(true)
})

/** Fields as `encode_raw_headers` has them. */
const raw = (...headers: [string, string | Buffer][]) => ({
  headers: {},
  headerMap: { headers: headers.map(([key, value]) => ({ key, rawValue: Buffer.from(value as string, 'latin1') })) },
})

describe('a check that cannot be read in exactly one way is a denial', () => {
  test.each<[string, object]>([
    ['nothing', {}],
    ['no request', { attributes: {} }],
    ['no HTTP', { attributes: { request: {} } }],
    ['no method', checkOf({ path, http: { method: '', headers: {} } })],
    ['no path', checkOf({ path, http: { path: '', headers: {} } })],
    ['no host', checkOf({ path, http: { host: '', headers: {} } })],
    ['no scheme', checkOf({ path, http: { scheme: '', headers: {} } })],
    ['no source', checkOf({ path, attributes: { source: null } })],
    ['a source in the file system', checkOf({ path, attributes: { source: { address: { pipe: { path: '/x' } } } } })],
    ['a name for an address', checkOf({ path, address: 'localhost' })],
    ['a method in lower case', checkOf({ path, method: 'get' })],
    ['CONNECT', checkOf({ path, method: 'CONNECT' })],
    ['TRACE', checkOf({ path, method: 'TRACE' })],
    ['a method with a line break', checkOf({ path, method: 'GET\r\nX: y' })],
    ['a path without slash', checkOf({ path: 'public/x' })],
    ['the absolute form', checkOf({ path: 'http://api.test/public/x' })],
    ['the asterisk form', checkOf({ path: '*' })],
    ['two slashes', checkOf({ path: '//public/x' })],
    ['a fragment in the path', checkOf({ path: '/public/x#y' })],
    ['a fragment apart', checkOf({ path, http: { fragment: 'y' } })],
    ['a query apart', checkOf({ path, http: { query: 'a=1' } })],
    ['dot segments', checkOf({ path: '/public/../public/x' })],
    ['encoded dot segments', checkOf({ path: '/public/%2e%2e/x' })],
    ['NUL in the path', checkOf({ path: '/public/x\0' })],
    ['a path beyond ASCII', checkOf({ path: '/public/é' })],
    ['a path that is not UTF-8', checkOf({ path: '/public/%ff' })],
    ['a host with a path', checkOf({ path, host: 'api.test/x' })],
    ['another :authority', checkOf({ path, headers: { ':authority': 'other.test' } })],
    ['a host field beside it', checkOf({ path, headers: { host: 'other.test' } })],
    ['another :path', checkOf({ path, headers: { ':path': '/admin' } })],
    ['another :method', checkOf({ path, headers: { ':method': 'DELETE' } })],
    ['another :scheme', checkOf({ path, headers: { ':scheme': 'http' } })],
    ['an unknown pseudo-header', checkOf({ path, headers: { ':status': '200' } })],
    ['a scheme of its own', checkOf({ path, scheme: 'ftp' })],
    ['NUL in a value', checkOf({ path, headers: { 'x-a': 'a\0b' } })],
    ['CR in a value', checkOf({ path, headers: { 'x-a': 'a\rb' } })],
    ['LF in a value', checkOf({ path, headers: { 'x-a': 'a\nx-auth-sub: root' } })],
    ['a name with a space', checkOf({ path, headers: { 'x a': '1' } })],
    ['a name with a line break', checkOf({ path, headers: { 'x\r\nx-auth-sub': '1' } })],
    ['an empty name', checkOf({ path, http: raw(['', '1']) })],
    [
      'both kinds of header fields',
      checkOf({ path, http: { headerMap: { headers: [{ key: 'a', rawValue: Buffer.from('x') }] } } }),
    ],
    [
      'two values for one',
      checkOf({
        path,
        http: { headers: {}, headerMap: { headers: [{ key: 'a', value: 'x', rawValue: Buffer.from('y') }] } },
      }),
    ],
    ['two hosts among raw fields', checkOf({ path, http: raw([':authority', 'api.test'], ['host', 'other.test']) })],
    ['two :path among raw fields', checkOf({ path, http: raw([':path', path], [':path', path]) })],
    [
      'two Authorization fields',
      checkOf({ path, http: raw(['authorization', 'Bearer a'], ['authorization', 'Bearer b']) }),
    ],
    ['two, in two spellings', checkOf({ path, headers: { authorization: 'Bearer a', Authorization: 'Bearer b' } })],
    ['two, joined', checkOf({ path, headers: { authorization: 'Bearer a,Bearer b' } })],
    [
      'two, joined, the first of another scheme',
      checkOf({ path, headers: { authorization: 'Negotiate x, Bearer b' } }),
    ],
    ['two types of content, joined', checkOf({ path, headers: { 'content-type': 'text/plain,application/json' } })],
    ['two lengths, joined', checkOf({ path, headers: { 'content-length': '1,2' } })],
    ['a length and chunks', checkOf({ path, headers: { 'content-length': '1', 'transfer-encoding': 'chunked' } })],
    ['an unknown coding', checkOf({ path, headers: { 'transfer-encoding': 'gzip, chunked' } })],
    ['a token twice', checkOf({ path: `${path}?access_token=a`, headers: { authorization: 'Bearer b' } })],
    ['the body twice', checkOf({ path, http: { body: 'a', rawBody: Buffer.from('b') } })],
    [
      'another length of the body',
      checkOf({ path, headers: { 'content-length': '9', 'x-envoy-auth-partial-body': 'false' }, http: { body: '{}' } }),
    ],
    ['a body told of in two ways', checkOf({ path, headers: { 'x-envoy-auth-partial-body': 'true,false' } })],
    [
      'a certificate that is none',
      checkOf({
        path,
        attributes: { source: { address: { socketAddress: { address: '203.0.113.9' } }, certificate: '%' } },
      }),
    ],
    [
      'an upgrade that names a header field',
      checkOf({ path, headers: { connection: 'upgrade, x-auth-sub', upgrade: 'websocket' } }),
    ],
    [
      'too many header fields',
      checkOf({ path, headers: Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`x-${n}`, '1'])) }),
    ],
    ['too large header fields', checkOf({ path, headers: { 'x-a': 'a'.repeat(100_000) } })],
    ['a target that is too long', checkOf({ path: `/public/${'a'.repeat(60_000)}` })],
  ])('%s', async (_, message) => {
    const answer = await envoy.send(message)
    expect(answer).toMatchObject({
      allowed: false,
      status: expect.any(Number),
      body: { instance: expect.any(String) },
    })
    expect([400, 404, 414, 431]).toContain(answer.status)
  })

  test('a value that is not UTF-8, as Envoy and others would send it', async () => {
    const { requestSerialize } = envoy.definition
    const bytes = Buffer.from(requestSerialize(checkOf({ path, headers: { 'x-a': 'MARK' } })))
    bytes.set([0xc3, 0x28, 0xff, 0xfe], bytes.indexOf('MARK'))
    expect(await envoy.send(bytes)).toMatchObject({ allowed: false, status: 400 })
  })
})

describe('header fields', () => {
  test('are those of the request, byte for byte, in both forms', async () => {
    for (const http of [{ headers: { 'x-seen': 'Zoë' } }, raw(['x-seen', Buffer.from('Zoë').toString('latin1')])])
      expect((await envoy.send(checkOf({ path, http }))).allowed).toBe(true)
  })

  test('in upper case or with "_" pass for no identity', async () => {
    const headers = { 'X-Auth-Sub': 'root', X_AUTH_ACT: 'x', 'X-Seen': '1', X_Seen: '2', __proto__x: '1' }
    const { removed, allowed } = await envoy.check({ path, headers })
    expect(allowed).toBe(true)
    expect(removed).toEqual(expect.arrayContaining(['x-auth-sub', 'x_auth_act', 'x_seen']))
  })
})

describe('what is no message of Envoy is an error, never OK', () => {
  test('bytes that are no message', async () => {
    await expect(envoy.send(Buffer.from([0x0a, 0xff, 0xff]))).rejects.toMatchObject({ code: 13 })
    await expect(envoy.send(Buffer.alloc(64, 0xff))).rejects.toMatchObject({ code: 13 })
  })

  test('10 MB', async () => {
    const http = { body: 'x'.repeat(10_000_000) }
    await expect(envoy.send(checkOf({ path, http }))).rejects.toMatchObject({ code: 8 })
    expect((await envoy.check({ path })).allowed).toBe(true)
  })

  test('another method of the service, and another service', async () => {
    const client = connectHttp2(`http://127.0.0.1:${gateway.extAuthzPort}`)
    const statusOf = (target: string) =>
      new Promise<unknown>((resolve) => {
        const stream = client.request({ ':method': 'POST', ':path': target, 'content-type': 'application/grpc' })
        stream.on('response', (headers) => resolve(headers['grpc-status']))
        stream.end()
      })
    expect(await statusOf('/envoy.service.auth.v3.Authorization/Allow')).toBe('12')
    expect(await statusOf('/envoy.service.auth.v2.Authorization/Check')).toBe('12')
    client.destroy()
  })

  test('HTTP/1.1', async () => {
    const answer = await new Promise<string>((resolve) => {
      let text = ''
      const socket = connect(gateway.extAuthzPort, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'))
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve(text))
    })
    expect(answer).not.toContain('HTTP/1.1 200')
  })
})

describe('floods', () => {
  test('calls that are taken back are counted, and others are answered', async () => {
    const flood = Array.from({ length: 300 }, () => envoy.send(checkOf({ path }), 1).catch(({ code }) => code))
    const outcomes = await Promise.all(flood)
    for (const outcome of outcomes) expect(outcome === 4 || (outcome as { allowed: boolean }).allowed).toBe(true)
    expect((await envoy.check({ path })).allowed).toBe(true)
    await gateway.health.ready()
  })

  test('more calls at once than a connection may have wait, and are all answered', async () => {
    const answers = await Promise.all(Array.from({ length: 1_500 }, () => envoy.check({ path })))
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(1_500)
  })

  test('connections that come and go leave nothing behind', async () => {
    for (let round = 0; round < 50; round++) {
      const socket = connect(gateway.extAuthzPort, '127.0.0.1')
      socket.on('error', () => {})
      await new Promise((resolve) => socket.once('connect', resolve))
      if (round % 2) socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
      socket.destroy()
    }
    const open = async () =>
      /^surrogate_gateway_ext_authz_connections (\d+)$/m.exec((await gateway.metrics.render()).text)?.[1]
    await until(async () => expect(await open()).toBe('1'))
    expect((await envoy.check({ path })).allowed).toBe(true)
  })
})
