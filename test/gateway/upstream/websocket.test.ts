import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { askForDecision } from '../../support/forward-auth.ts'
import { orders, sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { settled, until } from '../../support/until.ts'
import { openWebSocket, refusalOf, startWebSocketApi, type WebSocketApi } from '../../support/websocket-api.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

/** A gateway before an API with WebSockets at `/live/**`. */
const start = async (
  options: {
    upstream?: Record<string, unknown>
    config?: (issuer: string) => Record<string, unknown>
    now?: () => Date
  } = {},
): Promise<{ gateway: TestGateway; api: WebSocketApi; token: string; live: string }> => {
  const api = await startWebSocketApi()
  cleanup.push(() => api.close())
  const gateway = await startTestGateway({
    ...(options.now && { now: options.now }),
    config: ({ issuer }) => ({
      upstreams: { api: { url: api.url, ...options.upstream } },
      routes: [
        { id: 'live', path: '/live/**', audience: [orders], scopes: ['read:orders'], upstream: 'api', websocket: true },
        { id: 'open', path: '/open/**', auth: 'none', upstream: 'api', websocket: true },
        { id: 'plain', path: '/plain/**', auth: 'none', upstream: 'api' },
      ],
      ...options.config?.(issuer.issuer),
    }),
  })
  cleanup.push(() => gateway.close())
  const token = await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', act: { sub: 's1' } })
  return { gateway, api, token, live: `${gateway.url}/live/1?x=%41` }
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

const handshake = (path: string, ...lines: string[]) =>
  [
    `GET ${path} HTTP/1.1`,
    'Host: a.test',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...lines,
    '',
    '',
  ].join('\r\n')
const version13 = 'Sec-WebSocket-Version: 13'

describe('a WebSocket through the gateway', () => {
  test('carries messages of every size both ways, and the path that was decided on', async () => {
    const { api, token, live } = await start()
    const { socket, received } = await openWebSocket(live, { ...bearer(token), protocols: ['orders.v1', 'orders.v2'] })
    expect(socket.protocol).toBe('orders.v1')
    const messages = ['', 'hello', 'x'.repeat(126), 'y'.repeat(70_000), 'z'.repeat(3_000_000)]
    for (const message of messages) socket.send(message)
    await until(() => expect(received).toHaveLength(messages.length))
    expect(received).toEqual(messages)
    expect(api.handshakes[0]!.url).toBe('/live/1?x=%41')
    socket.close(4001, 'done here')
    await until(() => expect(api.closed).toEqual(['4001 done here']))
  })

  test('tells the upstream who is there, whatever the client says about itself', async () => {
    const { api, token, live } = await start()
    const { socket } = await openWebSocket(live, {
      headers: {
        authorization: `Bearer ${token}`,
        'x-auth-sub': 'admin',
        x_auth_sub: 'admin',
        'x-forwarded-for': '1.2.3.4',
        'x-original-url': '/admin',
        'x-custom': 'kept',
      },
    })
    const { headers } = api.handshakes[0]!
    expect(headers).toMatchObject({
      'x-auth-sub': 'u1',
      'x-auth-act': 's1',
      'x-auth-scope': 'read:orders',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': new URL(live).host,
      'x-custom': 'kept',
      host: new URL(api.url).host,
      connection: 'Upgrade',
      upgrade: 'websocket',
    })
    expect(headers).not.toHaveProperty('x_auth_sub')
    expect(headers).not.toHaveProperty('x-original-url')
    socket.terminate()
  })

  test('opens behind a Traefik, which calls it wss', async () => {
    const { api, token, live } = await start({ config: () => ({ trustedProxies: ['127.0.0.1'] }) })
    const { socket } = await openWebSocket(live, {
      headers: {
        authorization: `Bearer ${token}`,
        'x-forwarded-for': '203.0.113.7',
        'x-forwarded-host': 'live.test',
        'x-forwarded-port': '443',
        'x-forwarded-proto': 'wss',
        'x-forwarded-server': 'traefik',
        'x-real-ip': '203.0.113.7',
      },
    })
    expect(api.handshakes[0]!.headers).toMatchObject({
      'x-forwarded-for': '203.0.113.7, 127.0.0.1',
      'x-forwarded-host': 'live.test',
      'x-forwarded-proto': 'https',
    })
    socket.terminate()
  })

  test('a Traefik that asks about one gets a decision', async () => {
    const { gateway, token } = await start({
      config: () => ({ trustedProxies: ['127.0.0.1'], forwardAuth: { dialect: 'traefik' } }),
    })
    for (const proto of ['ws', 'wss']) {
      const answer = await askForDecision(gateway, '/live/1', {
        authorization: `Bearer ${token}`,
        'x-forwarded-proto': proto,
      })
      expect([answer.status, answer.headers.get('x-auth-sub')]).toEqual([200, 'u1'])
    }
  })

  test('is counted and logged with the request that opened it', async () => {
    const { gateway, token, live } = await start()
    const { socket } = await openWebSocket(live, bearer(token))
    expect((await gateway.metrics.render()).text).toContain('surrogate_gateway_websockets 1')
    socket.close()
    await until(async () => {
      const { text } = await gateway.metrics.render()
      expect(text).toContain('surrogate_gateway_requests_total{route="live",status="101"} 1')
      expect(text).toContain('surrogate_gateway_websockets 0')
    })
  })
})

describe('the decision is that of any request', () => {
  test('no token: 401 with the challenge, and the upstream hears nothing', async () => {
    const { api, live } = await start()
    const { status, body, answer } = await refusalOf(openWebSocket(live))
    expect([status, JSON.parse(body).code]).toEqual([401, 'token_missing'])
    expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
    expect(api.handshakes).toEqual([])
  })

  test('a token without the scope: 401; no route: 404', async () => {
    const { gateway, live } = await start()
    const powerless = await gateway.issuer.sign({ scope: 'write:orders' })
    expect((await refusalOf(openWebSocket(live, bearer(powerless)))).status).toBe(401)
    expect((await refusalOf(openWebSocket(`${gateway.url}/nowhere`))).status).toBe(404)
  })

  test('a route without WebSockets answers the plain request that it also is', async () => {
    const { gateway, api } = await start()
    const { status, body } = await refusalOf(openWebSocket(`${gateway.url}/plain/1`))
    expect([status, body]).toEqual([200, 'plain'])
    expect(api.handshakes).toEqual([])
  })

  test('a long plain answer to such a request arrives whole', async () => {
    const size = 8_000_000
    const big = createServer((_request, response) => response.end(Buffer.alloc(size, 'a')))
    big.listen(0, '127.0.0.1')
    await once(big, 'listening')
    cleanup.push(() => big.close())
    const { gateway } = await start({ upstream: { url: `http://127.0.0.1:${(big.address() as AddressInfo).port}` } })
    const { body } = await refusalOf(openWebSocket(`${gateway.url}/plain/1`))
    expect(body.length).toBe(size)
  })
})

test('pages of foreign origins open none where the route has cors; those listed, those of the host itself and programs do', async () => {
  const { gateway, api } = await start({
    config: () => ({
      routes: [
        {
          id: 'open',
          path: '/open/**',
          auth: 'none',
          upstream: 'api',
          websocket: true,
          cors: { origins: ['https://app.test', 'https://*.shop.test'] },
        },
      ],
    }),
  })
  const answer = async (...origins: string[]) => {
    const lines = origins.map((origin) => `Origin: ${origin}`)
    const text = await sendRaw(gateway.port, handshake('/open/1', version13, 'Cookie: session=1', ...lines), {
      until: /\r\n\r\n/,
    })
    return Number(text.split(' ')[1])
  }
  for (const origin of [
    'https://evil.test',
    'null',
    'https://evil.test.',
    'https://a.test..',
    'https://evil-shop.test',
    'https://app.test.evil.test',
    'file://',
  ]) {
    expect(await answer(origin), origin).toBe(403)
  }
  expect(await answer('https://app.test', 'https://evil.test')).toBe(400)
  expect(api.handshakes).toEqual([])
  for (const origin of [
    'https://app.test',
    'https://a.shop.test',
    'https://a.test',
    'http://a.test',
    'https://a.test.',
  ]) {
    expect(await answer(origin), origin).toBe(101)
  }
  expect(await answer()).toBe(101)
})

describe('no bytes pass but those of an opened WebSocket', () => {
  test.each<[string, string, number]>([
    ['another version', handshake('/open/1', 'Sec-WebSocket-Version: 8'), 426],
    ['two keys', handshake('/open/1', version13, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='), 400],
    ['a key that is none', handshake('/open/1', version13).replace('dGhlIHNhbXBsZSBub25jZQ==', 'short'), 400],
    ['a path of dots', handshake('/open/../plain', version13), 400],
    ['two hosts', handshake('/open/1', version13, 'Host: b.test'), 400],
  ])('%s', async (_what, request, status) => {
    const { gateway, api } = await start()
    const answer = await sendRaw(gateway.port, request)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(api.handshakes).toEqual([])
  })

  test.each<[string, string]>([
    ['with a body', `${handshake('/open/1', version13, 'Content-Length: 5')}hello`],
    ['with a chunked body', `${handshake('/open/1', version13, 'Transfer-Encoding: chunked')}0\r\n\r\n`],
    ['by another method', handshake('/open/1', version13, 'Content-Length: 0').replace('GET', 'POST')],
    ['in HTTP/1.0', handshake('/open/1', version13).replace('HTTP/1.1', 'HTTP/1.0')],
    ['of another protocol', handshake('/open/1', version13).replace('websocket', 'h2c')],
  ])('a handshake %s is a plain request, the last of its connection', async (_what, request) => {
    const { gateway, api } = await start()
    const hidden = 'GET /plain/secret HTTP/1.1\r\nHost: a.test\r\n\r\n'
    const answer = await sendRaw(gateway.port, request + hidden)
    expect(answer).toMatch(/^HTTP\/1.1 200 .*plain$/s)
    expect(answer.match(/HTTP\/1.1/g)).toHaveLength(1)
    expect(api.handshakes).toEqual([])
  })

  test('a second request hidden behind the first is never read by anybody', async () => {
    const { gateway, api } = await start()
    const hidden = 'GET /plain/secret HTTP/1.1\r\nHost: a.test\r\n\r\n'
    const answer = await sendRaw(gateway.port, handshake('/open/1', version13) + hidden)
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect(answer.match(/HTTP\/1.1/g)).toHaveLength(1)
    expect(api.handshakes).toEqual([])
  })

  test('a handshake behind a request that is not answered yet: the answer to that is the last one', async () => {
    const { gateway, api } = await start()
    const first = 'GET /plain/1 HTTP/1.1\r\nHost: a.test\r\n\r\n'
    for (let count = 0; count < 20; count++) {
      const answer = await sendRaw(gateway.port, first + handshake('/open/1', version13))
      expect(answer.match(/HTTP\/1.1/g)?.length ?? 0).toBeLessThanOrEqual(1)
    }
    expect(api.handshakes).toEqual([])
    expect((await refusalOf(openWebSocket(`${gateway.url}/plain/1`))).status).toBe(200)
  })

  test('an upstream that only seems to agree opens no tunnel: 502', async () => {
    const { gateway, api } = await start()
    api.onUpgrade = (_request, socket) =>
      void socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: bm8=\r\n\r\nsecret',
      )
    const { status, body } = await refusalOf(openWebSocket(`${gateway.url}/open/1`))
    expect([status, JSON.parse(body).code]).toEqual([502, 'upstream_protocol_error'])
    expect(body).not.toContain('secret')
    await until(() => expect(api.connections.size).toBe(0))
  })

  test.each([
    ['a status that is none', 'HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n'],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['another version', 'HTTP/2.0 403 Forbidden\r\nContent-Length: 0\r\n\r\n'],
    ['a coding that nobody takes away', 'HTTP/1.1 403 No\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'],
  ])('an upstream that answers with %s: 502', async (_what, bytes) => {
    const { gateway, api } = await start()
    api.onUpgrade = (_request, socket) => void socket.write(bytes)
    const { status, body } = await refusalOf(openWebSocket(`${gateway.url}/open/1`))
    expect([status, JSON.parse(body).code]).toEqual([502, 'upstream_protocol_error'])
    await until(() => expect(api.connections.size).toBe(0))
  })

  test('an upstream that answers instead is heard', async () => {
    const { gateway, api } = await start()
    api.onUpgrade = (_request, socket) =>
      void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nX-Why: full\r\nConnection: close\r\n\r\nno way')
    const { status, body, answer } = await refusalOf(openWebSocket(`${gateway.url}/open/1`))
    expect([status, body, answer.headers['x-why']]).toEqual([403, 'no way', 'full'])
    expect(answer.headers).toHaveProperty('x-request-id')
  })

  test('an upstream that answers instead and then stands still is left after idleTimeout', async () => {
    const { gateway, api } = await start({ upstream: { idleTimeout: '100ms' } })
    api.onUpgrade = (_request, socket) => void socket.write('HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\n\r\nno')
    expect(await sendRaw(gateway.port, handshake('/open/1', version13))).toMatch(/^HTTP\/1\.1 403 [\s\S]*\r\n\r\nno$/)
    await until(() => expect(api.connections.size).toBe(0))
  })
})

describe('when the other side fails', () => {
  test('an upstream that is not there: 502; one that is silent: 504', async () => {
    const silent = createTcpServer((socket) => void socket.on('error', () => {}))
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    cleanup.push(() => silent.close())
    const { gateway } = await start({
      config: () => ({
        upstreams: {
          gone: { url: 'http://127.0.0.1:1' },
          silent: { url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, headersTimeout: '200ms' },
        },
        routes: ['gone', 'silent'].map((id) => ({
          id,
          path: `/${id}`,
          auth: 'none',
          upstream: id,
          websocket: true,
        })),
      }),
    })
    const codeOf = async (path: string) => {
      const { status, body } = await refusalOf(openWebSocket(gateway.url + path))
      return [status, JSON.parse(body).code]
    }
    expect(await codeOf('/gone')).toEqual([502, 'upstream_unavailable'])
    expect(await codeOf('/silent')).toEqual([504, 'upstream_timeout'])
  })

  test('a client that vanishes frees the upstream, and an upstream that vanishes frees the client', async () => {
    const { gateway, api } = await start()
    const first = await openWebSocket(`${gateway.url}/open/1`)
    first.socket.terminate()
    await until(() => expect(api.connections.size).toBe(0))

    const second = await openWebSocket(`${gateway.url}/open/1`)
    for (const connection of api.connections) connection.resetAndDestroy()
    expect(await second.ended).toBe('1006 ')
    await until(async () => expect((await gateway.metrics.render()).text).toContain('surrogate_gateway_websockets 0'))
  })

  test('a client that leaves while the upstream is being asked takes that request with it', async () => {
    const { gateway, api } = await start()
    api.onUpgrade = () => {}
    const client = connect(gateway.port, '127.0.0.1', () => client.write(handshake('/open/1', version13)))
    await until(() => expect(api.connections.size).toBe(1))
    client.destroy()
    await until(() => expect(api.connections.size).toBe(0))
  })

  test('only so many at once: 503, until one has left', async () => {
    const { gateway } = await start({ upstream: { maxWebSockets: 1 } })
    const first = await openWebSocket(`${gateway.url}/open/1`)
    expect((await refusalOf(openWebSocket(`${gateway.url}/open/1`))).status).toBe(503)
    first.socket.terminate()
    const next = await until(() => openWebSocket(`${gateway.url}/open/1`))
    next.socket.terminate()
  })

  test('a client that does not read slows the upstream down instead of filling memory', async () => {
    const { gateway, api } = await start()
    const { socket } = await openWebSocket(`${gateway.url}/open/1`)
    socket.pause()
    await until(() => expect(api.sockets).toHaveLength(1))
    const sender = api.sockets[0]!
    const message = Buffer.alloc(1_000_000)
    for (let sent = 0; sent < 200; sent++) sender.send(message)
    // What is not on its way waits in the memory of the sender, whose business it is.
    await settled(() => sender.bufferedAmount)
    expect(sender.bufferedAmount).toBeGreaterThan(150_000_000)
    socket.terminate()
  })
})

describe('a WebSocket ends with what let it in', () => {
  test('when its token expires: 1008, on both sides', async () => {
    let ahead = 0
    const { gateway, api } = await start({ now: () => new Date(Date.now() + ahead) })
    const [short, long] = await Promise.all(
      [120, 600].map((seconds) =>
        gateway.issuer.sign({ scope: 'read:orders', exp: Math.floor(Date.now() / 1000) + seconds }),
      ),
    )
    const [ending, staying] = [
      await openWebSocket(`${gateway.url}/live/1`, bearer(short!)),
      await openWebSocket(`${gateway.url}/live/1`, bearer(long!)),
    ]
    ahead = 180_000
    expect(await ending.ended).toBe('1008 the token has expired')
    await until(() => expect(api.closed).toEqual(['1008 the token has expired']))
    staying.socket.send('still here')
    await until(() => expect(staying.received).toEqual(['still here']))
    staying.socket.terminate()
  })

  test('when its token is revoked: 1008, as soon as the gateway knows', async () => {
    const feed = await startFeed()
    const { gateway } = await start({
      config: (issuer) => ({
        issuers: [{ issuer, client: { id: 'g', secret: 's' }, revocations: { mode: 'feed', url: feed.url } }],
      }),
    })
    const sign = (jti: string) => gateway.issuer.sign({ scope: 'read:orders', jti })
    const open = async (jti: string) => {
      const token = await sign(jti)
      return until(() => openWebSocket(`${gateway.url}/live/1`, bearer(token)))
    }
    const [ending, staying] = [await open('bad'), await open('good')]
    feed.revoke('bad')
    expect(await ending.ended).toBe('1008 the token was revoked')
    staying.socket.send('still here')
    await until(() => expect(staying.received).toEqual(['still here']))
    staying.socket.terminate()
  })

  test('when nobody can tell any more whether it was revoked: 1013, unless that is served', async () => {
    let ahead = 0
    const feed = await startFeed()
    const settings = { url: feed.url, mode: 'feed', maxStale: '5m' }
    const open = async (whenStale: string) => {
      const { gateway } = await start({
        now: () => new Date(Date.now() + ahead),
        config: (issuer) => ({
          issuers: [{ issuer, client: { id: 'g', secret: 's' }, revocations: { ...settings, whenStale } }],
        }),
      })
      const token = await gateway.issuer.sign({ scope: 'read:orders', exp: Math.floor(Date.now() / 1000) + 86_400 })
      return until(() => openWebSocket(`${gateway.url}/live/1`, bearer(token)))
    }
    const [denied, served] = [await open('deny'), await open('serve')]
    ahead = 301_000
    expect(await denied.ended).toBe('1013 it cannot be known whether the token was revoked')
    served.socket.send('still here')
    await until(() => expect(served.received).toEqual(['still here']))
    served.socket.terminate()
  })

  test('when the key of its token is withdrawn: 1008', async () => {
    let ahead = 0
    const { gateway, token, live } = await start({ now: () => new Date(Date.now() + ahead) })
    const { ended } = await openWebSocket(live, bearer(token))
    await gateway.issuer.rotate({ drop: true })
    // A token of the new key makes the gateway look, once it may ask again.
    ahead = 11_000
    await until(async () => expect((await gateway.call('/live/1')).status).toBe(200))
    expect(await ended).toBe('1008 the key of the token was withdrawn')
  })

  test('when neither side says anything for too long: 1001', async () => {
    const { gateway } = await start({ upstream: { webSocketIdleTimeout: '300ms' } })
    const { ended } = await openWebSocket(`${gateway.url}/open/1`)
    expect(await ended).toBe('1001 nothing was sent for too long')
  })

  test('when the gateway stops: 1001, told to both, without waiting for either', async () => {
    const { gateway, api, token, live } = await start()
    const [one, other] = [await openWebSocket(live, bearer(token)), await openWebSocket(`${gateway.url}/open/1`)]
    // Deaf: it will not answer the close frame.
    other.socket.pause()
    const closing = gateway.close()
    expect(await one.ended).toBe('1001 the gateway is going away')
    await closing
    await until(() => expect(api.closed).toEqual(['1001 the gateway is going away', '1001 the gateway is going away']))
    other.socket.terminate()
  })

  test('never within a message that is on its way', async () => {
    let upstream: Socket | undefined
    const { gateway, api } = await start({ upstream: { webSocketIdleTimeout: '500ms' } })
    api.onUpgrade = (request, socket) => {
      upstream = socket as Socket
      socket.on('error', () => {})
      const accept = acceptOf(String(request.headers['sec-websocket-key']))
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
      // The first five of ten characters.
      socket.write(Buffer.from([0x81, 10, ...Buffer.from('hello')]))
    }
    const { received, ended } = await openWebSocket(`${gateway.url}/open/1`)
    // The upstream is told first, since nothing of the client is under way.
    await once(upstream!, 'data')
    upstream!.write(Buffer.from([...Buffer.from('world'), 0x81, 4, ...Buffer.from('lost')]))
    expect(await ended).toBe('1001 nothing was sent for too long')
    expect(received).toEqual(['helloworld'])
  })
})

const acceptOf = (key: string) => hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')

/** A feed of revocations with nothing in it until `revoke`. */
const startFeed = async () => {
  const entries: object[] = []
  const waiting: (() => void)[] = []
  const server = createServer((incoming, response) => {
    const query = new URL(incoming.url!, 'http://feed').searchParams
    const since = Number(query.get('since') ?? 0)
    const answer = () => {
      const page = { entries: entries.slice(since), cursor: entries.length, more: false }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page))
    }
    if (query.get('wait') === '0' || entries.length > since) answer()
    else waiting.push(answer)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/revocations`,
    revoke(jti: string) {
      const expiresAt = Math.floor(Date.now() / 1000) + 3_600
      entries.push({ seq: entries.length + 1, kind: 'jti', value: jti, issuedBefore: null, expiresAt })
      for (const answer of waiting.splice(0)) answer()
    },
  }
}
