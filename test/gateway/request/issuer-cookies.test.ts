import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { protect } from '../../../gateway/express.ts'
import { silentLogger } from '../../../platform/logger.ts'
import {
  orders,
  sendRaw,
  startTestGateway,
  startUpstream,
  type TestGateway,
  type TestUpstream,
} from '../../support/gateway.ts'
import { openWebSocket, startWebSocketApi, type WebSocketApi } from '../../support/websocket-api.ts'

/** Cookies of the issuer and its console are theirs: no other upstream gets one, and none sets one. */

let issuer: TestUpstream
let live: WebSocketApi
let gateway: TestGateway
beforeAll(async () => {
  issuer = await startUpstream()
  live = await startWebSocketApi()
  gateway = await startTestGateway({
    config: ({ upstream }) => ({
      upstreams: {
        api: { url: upstream.url },
        id: { url: issuer.url, issuer: true },
        live: { url: live.url },
      },
      routes: [
        { id: 'api', path: '/api/**', auth: 'none', upstream: 'api' },
        { id: 'id', path: '/oidc/**', auth: 'none', upstream: 'id' },
        { id: 'live', path: '/live', auth: 'none', upstream: 'live', websocket: true },
      ],
    }),
  })
})
afterAll(async () => {
  await gateway.close()
  await issuer.close()
  await live.close()
})
beforeEach(() => {
  gateway.upstream.seen.length = 0
  issuer.seen.length = 0
})

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const all = [
  'a=1',
  'surrogate_session=s1',
  '__Host-surrogate_session=s2',
  '__Host-surrogate=s3',
  '__host-Surrogate_browser=s4',
  '__Secure-surrogate_device=s5',
  'SURROGATE_x=s6',
  'surrogate=plain',
  'my_surrogate_x=2',
  'b="surrogate_session=3"',
].join('; ')
const left = 'a=1; surrogate=plain; my_surrogate_x=2; b="surrogate_session=3"'

describe('on requests', () => {
  test.each<[string, string | undefined]>([
    [all, left],
    ['surrogate_session=s1', undefined],
    ['a=1;surrogate_session=s1;b=2', 'a=1;b=2'],
    ['  surrogate_session = s1 ; a=1', 'a=1'],
    ['a=1; b=2', 'a=1; b=2'],
  ])('%s', async (cookie, expected) => {
    await fetch(`${gateway.url}/api/1`, { headers: { cookie } })
    expect(gateway.upstream.seen[0]!.headers['cookie']).toBe(expected)
  })

  test('in several fields', async () => {
    const fields = ['Cookie: a=1', 'cookie: surrogate_session=s1', 'COOKIE: b=2; __Host-surrogate_x=s2', 'Cookie: c=3']
    const lines = ['GET /api/1 HTTP/1.1', 'Host: a.test', 'Connection: close', ...fields, '', '']
    expect(await sendRaw(gateway.port, lines.join('\r\n'))).toMatch(/^HTTP\/1.1 200 /)
    expect(gateway.upstream.seen[0]!.headers['cookie']).toBe('a=1; b=2; c=3')
  })

  test('one in trailers reaches no upstream at all', async () => {
    let received: unknown
    gateway.upstream.answer = ({ rawTrailers }, response, { body }) => {
      received = { body, trailers: rawTrailers }
      response.end()
    }
    const fields = ['Trailer: Cookie', 'Transfer-Encoding: chunked']
    const body = ['3', 'abc', '0', 'Cookie: surrogate_session=s1', 'X-Auth-Sub: root', '', '']
    const lines = ['POST /api/1 HTTP/1.1', 'Host: a.test', 'Connection: close', ...fields, '', ...body]
    expect(await sendRaw(gateway.port, lines.join('\r\n'))).toMatch(/^HTTP\/1.1 200 /)
    expect(gateway.upstream.seen[0]!.headers).not.toHaveProperty('cookie')
    expect(received).toEqual({ body: 'abc', trailers: [] })
  })

  test('the issuer gets all of them', async () => {
    await fetch(`${gateway.url}/oidc/auth`, { headers: { cookie: all } })
    expect(issuer.seen[0]!.headers['cookie']).toBe(all)
  })

  test('one that opens a WebSocket', async () => {
    const { socket } = await openWebSocket(`${gateway.url}/live`, { headers: { cookie: all } })
    expect(live.handshakes[0]!.headers.cookie).toBe(left)
    socket.terminate()
  })

  test('handlers behind protect() get none', async () => {
    const guard = protect({ issuer: gateway.issuer.issuer, audience: orders, logger: silentLogger })
    const app = express().use(guard, ({ headers, headersDistinct, rawHeaders }, response) => {
      const raw = rawHeaders.filter((_, index) => rawHeaders[index - 1]?.toLowerCase() === 'cookie')
      response.json([headers.cookie, headersDistinct['cookie'], raw])
    })
    const server = app.listen(0, '127.0.0.1')
    cleanup.push(
      () => guard.close(),
      () => server.close(),
    )
    await once(server, 'listening')
    await guard.ready
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const cookiesOf = async (cookie: string) => {
      const headers = { authorization: `Bearer ${await gateway.issuer.sign()}`, cookie }
      return (await fetch(url, { headers })).json()
    }
    expect(await cookiesOf(all)).toEqual([left, [left], [left]])
    expect(await cookiesOf('surrogate_session=s1')).toEqual([null, null, []])
    expect(await cookiesOf('a=1')).toEqual(['a=1', ['a=1'], ['a=1']])
  })
})

describe('on answers', () => {
  const attempts = [
    'a=1; Path=/',
    'surrogate_session=evil; Path=/',
    '__Host-surrogate_session=evil; Secure; Path=/',
    '__HOST-surrogate=evil; Secure; Path=/',
    // A cookie without a name is sent back as its value alone.
    '=surrogate_session=evil',
    ' \t surrogate_x=evil',
    '= = surrogate_x=evil',
    'surrogate_session',
    'surrogate_session = ; Max-Age=0',
    'Surrogate_Session=evil; Domain=test',
    '__secure-surrogate_x=evil; Secure; Partitioned',
    '__Host-surrogate_x=evil; Secure; Path=/; SameSite=None; Partitioned',
    'surrogate=plain',
  ]
  const settingAll: TestUpstream['answer'] = (_request, response) =>
    void response.writeHead(200, { 'set-cookie': attempts }).end()

  test('an upstream that is not the issuer sets none', async () => {
    gateway.upstream.answer = settingAll
    const answer = await fetch(`${gateway.url}/api/1`)
    expect(answer.headers.getSetCookie()).toEqual(['a=1; Path=/', 'surrogate=plain'])
    gateway.upstream.answer = (_request, response) =>
      void response.writeHead(200, { 'set-cookie': 'surrogate_session=evil' }).end()
    expect((await fetch(`${gateway.url}/api/1`)).headers.getSetCookie()).toEqual([])
  })

  test('the issuer does', async () => {
    issuer.answer = settingAll
    expect((await fetch(`${gateway.url}/oidc/auth`)).headers.getSetCookie()).toHaveLength(attempts.length)
  })

  test('nor does it delete those that browsers have', async () => {
    const clearing = async (path: string, ...fields: string[]) => {
      const answer: TestUpstream['answer'] = (_request, response) =>
        void response.writeHead(200, { 'clear-site-data': fields }).end()
      gateway.upstream.answer = issuer.answer = answer
      return (await fetch(gateway.url + path)).headers.get('clear-site-data')
    }
    expect(await clearing('/api/1', '"cache", "cookies","storage"')).toBe('"cache","storage"')
    expect(await clearing('/api/1', '"cookies"')).toBe(null)
    expect(await clearing('/api/1', '"*"')).toBe(null)
    expect(await clearing('/api/1', '"storage"', '"Cookies" , "executionContexts"')).toBe(
      '"storage", "executionContexts"',
    )
    expect(await clearing('/oidc/logout', '"cookies", "*"')).toBe('"cookies", "*"')
  })

  test('nor in trailers', async () => {
    gateway.upstream.answer = (_request, response) => {
      response.writeHead(200, { trailer: 'x-sum' }).write('a')
      response.addTrailers({ 'x-sum': '1', 'set-cookie': 'surrogate_session=evil', 'clear-site-data': '"cookies"' })
      response.end()
    }
    const lines = ['GET /api/1 HTTP/1.1', 'Host: a.test', 'TE: trailers', 'Connection: close, TE', '', '']
    const answer = await sendRaw(gateway.port, lines.join('\r\n'))
    expect(answer).toContain('x-sum: 1')
    expect(answer).not.toMatch(/surrogate_session|clear-site-data/i)
  })

  test('nor does one that opens a WebSocket', async () => {
    live.answerLines = [...attempts.map((value) => `Set-Cookie: ${value}`), 'Clear-Site-Data: "cookies"']
    const { socket, answer } = await openWebSocket(`${gateway.url}/live`)
    expect(answer.headers).not.toHaveProperty('clear-site-data')
    expect(answer.headers['set-cookie']).toEqual(['a=1; Path=/', 'surrogate=plain'])
    socket.terminate()
  })
})
