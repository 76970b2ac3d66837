import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PolicyInput } from '../../../policies/decide.ts'
import { orders, sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { recordingPolicies } from '../../support/recording-policies.ts'
import { until } from '../../support/until.ts'

/**
 * What got past other gateways, proxies and middleware, one test a class; the numbers name where it happened. Bytes on
 * a socket, since no client library sends these.
 */

const asked: PolicyInput[] = []
const start = async (limits: Record<string, string> = {}) =>
  startTestGateway({
    policies: await recordingPolicies((input) => asked.push(input)),
    config: ({ upstream }) => ({
      upstreams: { api: { url: `${upstream.url}/base` } },
      routes: [
        { id: 'public', path: '/public/**', auth: 'none', upstream: 'api', policyHeaders: ['x-tenant'] },
        { id: 'stripped', path: '/api/v1/**', auth: 'none', upstream: 'api', stripPrefix: '/api/v1' },
        { id: 'admin', path: '/admin/**', audience: [orders], scopes: ['admin'], upstream: 'api' },
        { id: 'health', path: '/health', auth: 'none', upstream: 'api' },
      ],
      limits,
    }),
  })

let gateway: TestGateway
beforeAll(async () => {
  gateway = await start()
})
afterAll(() => gateway.close())
beforeEach(() => {
  gateway.upstream.seen.length = 0
  asked.length = 0
})

const get = (target: string, ...fields: string[]) =>
  sendRaw(
    gateway.port,
    [`GET ${target} HTTP/1.1`, 'Host: api.test', 'Connection: close', ...fields, '', ''].join('\r\n'),
  )
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])
const seen = () => gateway.upstream.seen
const namesUpstream = () => seen()[0]!.rawHeaders.filter((_, index) => index % 2 === 0)

describe('paths that two readers take for two things', () => {
  test.each<[string, string]>([
    ['an empty segment (CVE-2026-26205)', '//admin/x'],
    ['an empty segment within', '/public//admin/x'],
    ['dot segments (CVE-2026-33494, CVE-2019-9901)', '/public/../admin/x'],
    ['encoded dot segments', '/public/%2e%2E/admin/x'],
    ['dot segments with a parameter', '/public/..;/admin/x'],
    ['dot segments encoded twice', '/public/%252e%252e/admin/x'],
    ['dot segments before a slash encoded twice', '/public/..%252fadmin/x'],
    ['dot segments and slash encoded twice', '/public/%252e%252e%252fadmin/x'],
    ['an encoded slash (CVE-2021-29492)', '/public/x%2fadmin'],
    ['an encoded backslash', '/public/..%5cadmin'],
    ['a backslash', '/public/..\\admin'],
    ['a fragment (CVE-2021-32779, CVE-2026-41059)', '/public#/admin'],
    ['NUL (CVE-2019-9900)', '/public/%00/../admin'],
    ['overlong UTF-8', '/public/%c0%ae%c0%ae/admin'],
    ['a control character', '/public/%0d%0aX:y'],
    ['an absolute target before a prefix guard', 'http://evil.test/public'],
    ['a network-path target', '//evil.test/public'],
    ['a dot segment behind the stripped prefix (CVE-2025-66490)', '/api/v1/../../admin'],
    ['an encoded one', '/api/v1/%2e%2e/admin'],
    ['an encoded slash behind it', '/api/v1/%2f..%2fadmin'],
  ])('%s: %s', async (_, target) => {
    expect(statusOf(await get(target))).toBe(400)
    expect(seen()).toEqual([])
  })

  test('the stripped path is what is left, never two slashes, never the prefix alone', async () => {
    await get('/api/v1/x')
    await get('/api/v1')
    await get('/api/v1/')
    expect(seen().map(({ url }) => url)).toEqual(['/base/x', '/base/', '/base/'])
  })

  test('an open route is matched by the path, not by what the query looks like (CVE-2025-54576)', async () => {
    expect(statusOf(await get('/admin/x?/health'))).toBe(401)
    expect(statusOf(await get('/admin/x?next=/public/y'))).toBe(401)
    expect(statusOf(await get('/admin/x%3F/health'))).toBe(401)
    expect(statusOf(await get('/admin/x%23/health'))).toBe(401)
    expect(seen()).toEqual([])
  })

  test('letters count: another case is another path (CVE-2026-27587)', async () => {
    expect(statusOf(await get('/Public/x'))).toBe(404)
    expect(statusOf(await get('/ADMIN/x'))).toBe(404)
  })

  test('an encoded letter is the letter, for route and upstream alike', async () => {
    expect(statusOf(await get('/%61dmin/x'))).toBe(401)
    await get('/p%75blic/%7ex')
    expect(seen().map(({ url }) => url)).toEqual(['/base/public/~x'])
  })
})

describe('fields that only a gateway may send', () => {
  test.each([
    ['identity', 'X-Auth-Sub: root'],
    ['identity in another spelling (CVE-2025-64484, CVE-2026-52845)', 'X_Auth_Sub: root'],
    ['identity with dots', 'X.Auth.Sub: root'],
    ['identity in capitals', 'X-AUTH-SUB: root'],
    ['the original path (CVE-2023-27487)', 'X-Envoy-Original-Path: /public'],
    ['the original URL', 'X-Original-URL: /admin'],
    ['a rewritten URL', 'X-Rewrite-URL: /admin'],
    ['the forwarded URI (CVE-2026-40575)', 'X-Forwarded-Uri: /public'],
    ['the forwarded prefix', 'X-Forwarded-Prefix: /admin'],
    ['the forwarded scheme (CVE-2026-33495)', 'X-Forwarded-Scheme: https'],
    ['another method', 'X-HTTP-Method-Override: DELETE'],
    ['the client certificate', 'X-Forwarded-Client-Cert: x'],
  ])('%s from a client never reaches the upstream', async (_, field) => {
    expect(statusOf(await get('/public/x', field))).toBe(200)
    expect(namesUpstream().map((name) => name.toLowerCase())).not.toContain(field.split(':')[0]!.toLowerCase())
  })

  test('what a client says of itself is replaced: scheme, host, address', async () => {
    await get('/public/x', 'X-Forwarded-Proto: https', 'X-Forwarded-Host: evil.test', 'X-Forwarded-For: 6.6.6.6')
    expect(seen()[0]!.headers).toMatchObject({
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'api.test',
      'x-forwarded-for': '127.0.0.1',
    })
  })

  test.each(['x-forwarded-for', 'x-forwarded-host', 'x-request-id', 'via', 'host', 'content-length'])(
    'Connection cannot take away what the gateway says: %s (CVE-2024-45410, GHSA-w9mr-28mw-j8hg)',
    async (name) => {
      await sendRaw(
        gateway.port,
        `POST /public/x HTTP/1.1\r\nHost: api.test\r\nConnection: close, ${name}\r\nContent-Length: 3\r\n\r\nabc`,
      )
      expect(seen()[0]!.headers).toHaveProperty([name])
      expect(seen()[0]).toMatchObject({ body: 'abc' })
    },
  )

  test('Connection cannot take away the identity', async () => {
    const token = await gateway.issuer.sign({ sub: 'u1', scope: 'admin' })
    await get('/admin/x', `Authorization: Bearer ${token}`, 'Connection: x-auth-sub, authorization')
    expect(seen()[0]!.headers).toMatchObject({ 'x-auth-sub': 'u1', authorization: `Bearer ${token}` })
  })

  test('a user agent opens nothing (CVE-2026-34457)', async () => {
    expect(statusOf(await get('/admin/x', 'User-Agent: GoogleHC/1.0'))).toBe(401)
  })
})

describe('what the policy is told of header fields', () => {
  test('every value of a repeated field, not the first, not the last, not all in one (CVE-2021-32777, CVE-2026-26308)', async () => {
    await get('/public/x', 'X-Tenant: a', 'x-tenant: b,c')
    expect(asked[0]!.request.headers).toEqual({ 'x-tenant': ['a', 'b,c'] })
    expect(seen()[0]!.rawHeaders.filter((text) => /^(?:a|b,c)$/.test(text))).toEqual(['a', 'b,c'])
  })

  test('bytes outside ASCII reach policy and upstream alike (CVE-2023-27488)', async () => {
    await get('/public/x', 'X-Tenant: caf\xe9\xff')
    expect(asked[0]!.request.headers).toEqual({ 'x-tenant': ['caf\xe9\xff'] })
    expect(seen()[0]!.headers).toMatchObject({ 'x-tenant': 'caf\xe9\xff' })
  })

  test('a field that Connection takes away is taken from the policy too', async () => {
    await get('/public/x', 'X-Tenant: a', 'Connection: x-tenant')
    expect(asked[0]!.request.headers).toEqual({})
    expect(seen()[0]!.headers).not.toHaveProperty('x-tenant')
  })
})

describe('bytes behind a request', () => {
  test.each(['DELETE', 'OPTIONS', 'GET', 'HEAD'])('a chunked %s smuggles none', async (method) => {
    const inner = 'GET /admin/secret HTTP/1.1\r\nHost: api.test\r\n\r\n'
    await sendRaw(
      gateway.port,
      `${method} /public/x HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`,
    )
    expect(seen().map(({ url, body }) => [url, body])).toEqual([['/base/public/x', inner]])
  })

  test('after CONNECT nothing is read any more (CVE-2026-71324, CVE-2025-64763)', async () => {
    const answer = await sendRaw(
      gateway.port,
      'CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\nGET /public/x HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n',
    )
    expect([...answer.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)).toEqual(['400'])
    expect(seen()).toEqual([])
  })

  test('many a CONNECT behind requests leaves the gateway standing, and no connection open', async () => {
    for (let count = 0; count < 20; count++) {
      await sendRaw(
        gateway.port,
        'GET /public/x HTTP/1.1\r\nHost: a\r\n\r\nGET /public/y HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
      )
    }
    expect(statusOf(await get('/public/x'))).toBe(200)
  })
})

describe('an upstream that is not honest about its answers', () => {
  const cleanup: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of cleanup.splice(0).reverse()) await close()
  })

  /** Answers everything with these bytes. */
  const gatewayBefore = async (bytes: string) => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(bytes, 'latin1'))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanup.push(() => new Promise((resolve) => server.close(resolve)))
    const { port } = server.address() as AddressInfo
    const before = await startTestGateway({
      config: () => ({
        upstreams: { raw: { url: `http://127.0.0.1:${port}` } },
        routes: [{ id: 'raw', path: '/**', auth: 'none', upstream: 'raw' }],
      }),
    })
    cleanup.push(before.close)
    return sendRaw(before.port, 'GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  }

  test.each<[string, string]>([
    [
      'another protocol that nobody asked for (CVE-2024-23326)',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    ],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc'],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    ],
    ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: 3x\r\n\r\nabc'],
    ['a field with a bare line feed', 'HTTP/1.1 200 OK\r\nX-A: b\nSet-Cookie: c=d\r\nContent-Length: 0\r\n\r\n'],
    ['a folded field', 'HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 0\r\n\r\n'],
    ['another protocol altogether', 'SSH-2.0-x\r\n'],
    ['another version', 'HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc'],
    ['a version without a head', 'HTTP/0.9 200 OK\r\nContent-Length: 3\r\n\r\nabc'],
    [
      'a coding that nobody takes away',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    ],
    ['a coding instead of chunks', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc'],
    ['a coding that is none', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nConnection: close\r\n\r\nabc'],
    [
      'chunks twice',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
    ],
    ['a head without end', `HTTP/1.1 200 OK\r\nX-A: ${'x'.repeat(100_000)}`],
    ['nothing', ''],
  ])('%s: 502, and nothing of it gets to the client', async (_, bytes) => {
    const answer = await gatewayBefore(bytes)
    expect(statusOf(answer)).toBe(502)
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
    expect(answer).not.toMatch(/set-cookie|upgrade:|abc/i)
  })

  test('a body behind an answer that has none is no second answer', async () => {
    const answer = await gatewayBefore(
      'HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsplit',
    )
    expect(answer).not.toContain('split')
  })

  test.each(['0', '5'])('an answer that has no content has no length, whatever it says: %s', async (length) => {
    const answer = await gatewayBefore(`HTTP/1.1 204 No Content\r\nContent-Length: ${length}\r\nETag: "x"\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 204 No Content\r\netag: "x"\r\n/)
    expect(answer).not.toMatch(/content-length|transfer-encoding/i)
  })

  test('another version behind answers of the right one, piece by piece', async () => {
    let answers = 0
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.setNoDelay(true)
      socket.on('data', () => {
        answers++
        if (answers < 3) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nHTTP/2.0 200')
        for (const byte of 'HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc') socket.write(byte)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanup.push(() => new Promise((resolve) => server.close(resolve)))
    const before = await startTestGateway({
      config: () => ({
        upstreams: { raw: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } },
        routes: [{ id: 'raw', path: '/**', auth: 'none', upstream: 'raw' }],
      }),
    })
    cleanup.push(before.close)
    const statuses: number[] = []
    for (let turn = 0; turn < 3; turn++) {
      const answer = await fetch(before.url)
      statuses.push(answer.status)
      if (answer.status === 200) expect(await answer.text()).toBe('HTTP/2.0 200')
    }
    expect({ statuses, answers }).toEqual({ statuses: [200, 200, 502], answers: 3 })
  })

  test('an answer cut short is cut short for the client too', async () => {
    const answer = await gatewayBefore('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')
    expect(statusOf(answer) === 502 || answer.endsWith('abc')).toBe(true)
  })
})

describe('slow clients', () => {
  let impatient: TestGateway
  beforeAll(async () => {
    impatient = await start({ headersTimeout: '500ms', requestTimeout: '600ms' })
  })
  afterAll(() => impatient.close())

  test('a body that stops on its way through: 408, and the upstream sees it broken off', async () => {
    const answer = await sendRaw(
      impatient.port,
      `POST /public/x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(50_000)}`,
    )
    expect(statusOf(answer)).toBe(408)
    await until(() => expect(impatient.upstream.seen).toMatchObject([{ body: '<aborted>' }]))
  })

  test('a chunked body that never ends: 408', async () => {
    const answer = await sendRaw(
      impatient.port,
      'POST /public/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n',
    )
    expect(statusOf(answer)).toBe(408)
  })
})
