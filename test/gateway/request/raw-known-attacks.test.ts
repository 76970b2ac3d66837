import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PolicyInput } from '../../../policies/decide.ts'
import { orders, sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { recordingPolicies } from '../../support/recording-policies.ts'
import { until } from '../../support/until.ts'

/**
 * What got past other gateways, proxies and middleware, and is no row of the corpus (`../corpus`); the numbers name
 * where it happened. Bytes on a socket, since no client library sends these.
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

test('Connection cannot take away the identity', async () => {
  const token = await gateway.issuer.sign({ sub: 'u1', scope: 'admin' })
  await get('/admin/x', `Authorization: Bearer ${token}`, 'Connection: x-auth-sub, authorization')
  expect(seen()[0]!.headers).toMatchObject({ 'x-auth-sub': 'u1', authorization: `Bearer ${token}` })
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

test('many a CONNECT behind requests leaves the gateway standing, and no connection open', async () => {
  for (let count = 0; count < 20; count++) {
    await sendRaw(
      gateway.port,
      'GET /public/x HTTP/1.1\r\nHost: a\r\n\r\nGET /public/y HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
    )
  }
  expect(statusOf(await get('/public/x'))).toBe(200)
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
