import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import { request } from 'node:https'
import { connect } from 'node:tls'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'
import { startWebSocketApi } from '../../support/websocket-api.ts'

/** What streams of HTTP/2 have that requests of HTTP/1.1 have not, or have otherwise. */

const files = createTlsFiles()
const ca = files.authority.certificate
const pair = files.pair('localhost')
const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})
afterAll(() => files.remove())

const start = async (
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  config: Record<string, unknown> = {},
  upstreamSettings: Record<string, unknown> = {},
): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    upstream: listener,
    config: ({ upstream }) => ({
      listen: { port: 0, tls: { certificates: [pair] } },
      upstreams: { api: { url: upstream.url, ...upstreamSettings } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api', bodySize: 100_000 }],
      ...config,
    }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

const openClient = async (gateway: TestGateway, settings = {}) => {
  const client = await openHttp2(gateway.url, { ca, settings })
  cleanup.push(() => client.close())
  const ask = (path: string, headers: OutgoingHttpHeaders = {}, endStream = true): ClientHttp2Stream => {
    const stream = client.session.request({ ':authority': 'localhost', ':path': path, ...headers }, { endStream })
    stream.on('error', () => {})
    return stream
  }
  return { ...client, ask }
}

const headOf = async (stream: ClientHttp2Stream): Promise<IncomingHttpHeaders> => (await once(stream, 'response'))[0]
const askHttp1 = ({ url }: TestGateway): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { ca, servername: 'localhost', agent: false }, (answer) => resolve(answer.resume()))
    sent.on('error', reject).end()
  })
const closeOf = async (stream: ClientHttp2Stream): Promise<number> => {
  stream.resume()
  if (!stream.destroyed) await new Promise((resolve) => stream.once('close', resolve))
  return stream.rstCode
}

describe('answers', () => {
  test('stream as they come, with their head first', async () => {
    let out: ServerResponse | undefined
    const gateway = await start((_, response) => {
      out = response
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    })
    const { ask } = await openClient(gateway)
    const stream = ask('/events')
    expect(await headOf(stream)).toMatchObject({ ':status': 200, 'content-type': 'text/event-stream' })
    for (const text of ['data: 1\n\n', 'data: 2\n\n']) {
      out!.write(text)
      expect(String((await once(stream, 'data'))[0])).toBe(text)
    }
    out!.end()
    expect(await closeOf(stream)).toBe(constants.NGHTTP2_NO_ERROR)
  })

  test('have every field of a name, none of the connection, and trailers for those who ask', async () => {
    const gateway = await start((_, response) => {
      response.writeHead(200, [
        ...['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2', 'Connection', 'keep-alive, x-mine', 'X-Mine', '1'],
        ...['Trailer', 'x-sum', 'X-Two', 'a', 'X-Two', 'b'],
      ])
      response.write('body')
      response.addTrailers({ 'x-sum': '42' })
      response.end()
    })
    const { send } = await openClient(gateway)
    const plain = await send({ ':path': '/' })
    expect(plain).toMatchObject({ status: 200, body: 'body', trailers: undefined })
    expect(plain.headers).toMatchObject({ 'set-cookie': ['a=1', 'b=2'], 'x-two': 'a, b' })
    expect(Object.keys(plain.headers)).not.toEqual(expect.arrayContaining(['connection']))
    expect(plain.headers).not.toHaveProperty('x-mine')
    expect(await send({ ':path': '/', te: 'trailers' })).toMatchObject({ body: 'body', trailers: { 'x-sum': '42' } })
  })

  test('have the fields that an upstream repeats as it sent them, as over HTTP/1.1', async () => {
    const repeated = ['content-type', 'text/plain', 'content-type', 'text/html', 'etag', '"a"', 'etag', '"b"']
    const gateway = await start((_, response) => void response.writeHead(200, repeated).end('ok'))
    const { ask } = await openClient(gateway)
    const stream = ask('/')
    const raw = await new Promise<string[]>((resolve) => stream.on('response', (_head, _flags, all) => resolve(all)))
    expect(raw.slice(2, 2 + repeated.length)).toEqual(repeated)
    const overHttp1 = await askHttp1(gateway)
    expect(overHttp1.rawHeaders.slice(0, repeated.length)).toEqual(repeated)
  })

  test.each([204, 304])('%i has no body', async (status) => {
    const gateway = await start((_, response) => void response.writeHead(status, { etag: '"a"' }).end())
    const { send } = await openClient(gateway)
    expect(await send({ ':path': '/', te: 'trailers' })).toMatchObject({ status, body: '', headers: { etag: '"a"' } })
  })

  test('that break off upstream are reset', async () => {
    const gateway = await start((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half')
      response.socket!.setNoDelay()
      setImmediate(() => response.socket!.destroy())
    })
    const { ask } = await openClient(gateway)
    expect(await closeOf(ask('/'))).toBe(constants.NGHTTP2_INTERNAL_ERROR)
  })

  test('are paused upstream while a client takes nothing, and its other streams go on', async () => {
    let written = 0
    const gateway = await start((request, response) => {
      if (request.url === '/small') return void response.end('ok')
      response.writeHead(200)
      const more = () => {
        while (written < 50_000_000 && response.write(Buffer.alloc(65_536))) written += 65_536
      }
      response.on('drain', more)
      more()
    })
    const client = await openClient(gateway)
    const stream = client.ask('/large')
    await headOf(stream)
    stream.pause()
    for (let count = 0; count < 3; count++) expect((await client.send({ ':path': '/small' })).body).toBe('ok')
    // What sockets hold, and little more.
    expect(written).toBeLessThan(20_000_000)
  })

  test('a client that takes one too slowly loses it, and the upstream is free again', async () => {
    let closed = false
    const gateway = await start(
      (_, response) => {
        response.on('close', () => {
          closed = true
        })
        response.writeHead(200)
        const more = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536)));
        }
        response.on('drain', more)
        more()
      },
      {},
      { idleTimeout: '100ms' },
    )
    const { ask } = await openClient(gateway)
    const stream = ask('/')
    await headOf(stream)
    stream.pause()
    await until(() => expect(closed).toBe(true))
    expect(await closeOf(stream)).not.toBe(constants.NGHTTP2_NO_ERROR)
  })
})

describe('requests', () => {
  test('say upstream how they came', async () => {
    const seen: (string | undefined)[] = []
    const gateway = await start((request, response) => {
      seen.push(request.headers.via)
      response.end()
    })
    const { send } = await openClient(gateway)
    await send({ ':path': '/', via: '1.1 front' })
    await askHttp1(gateway)
    expect(seen).toEqual(['1.1 front, 2.0 surrogate', '1.1 surrogate'])
  })

  test('lose their trailers, as over HTTP/1.1, whose body has as many as a head may have fields', async () => {
    let trailers: unknown
    const gateway = await start((request, response) => {
      request.resume().on('end', () => {
        trailers = request.trailers
        response.end('ok')
      })
    })
    const client = await openClient(gateway)
    const withTrailers = (fields: OutgoingHttpHeaders) => {
      const stream = client.session.request(
        { ':path': '/', ':authority': 'localhost', ':method': 'POST' },
        { waitForTrailers: true },
      )
      stream.on('error', () => {})
      stream.on('wantTrailers', () => stream.sendTrailers(fields))
      stream.end('body')
      return stream
    }
    expect(await headOf(withTrailers({ 'x-auth-sub': 'root', 'x-sum': '1' }))).toMatchObject({ ':status': 200 })
    expect(trailers).toEqual({})
    const bomb = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`x-${index}`, 'a']))
    expect(await closeOf(withTrailers(bomb))).not.toBe(constants.NGHTTP2_NO_ERROR)
  })

  test('taken back end upstream, before and within their answer', async () => {
    const events: string[] = []
    const gateway = await start((request, response) => {
      events.push(`begin ${request.url}`)
      response.on('close', () => events.push(`end ${request.url}`))
      if (request.url === '/within') response.writeHead(200).write('x')
    })
    const { ask } = await openClient(gateway)
    for (const path of ['/before', '/within']) {
      const stream = ask(path)
      if (path === '/within') await headOf(stream)
      await until(() => expect(events).toContain(`begin ${path}`))
      stream.close(constants.NGHTTP2_CANCEL)
      await until(() => expect(events).toContain(`end ${path}`))
    }
    const { text } = await gateway.metrics.render()
    expect(text).toContain('surrogate_gateway_upstream_running{upstream="api"} 0')
  })

  // `close` of Node's client would send the end of the body before the reset.
  test.each([undefined, new Error('gone')])(
    'that break off in their body are never taken for whole (%s)',
    async (error) => {
      const seen: string[] = []
      const gateway = await start((request) => {
        seen.push('begin')
        request
          .on('end', () => seen.push('end'))
          .on('error', () => seen.push('error'))
          .resume()
      })
      const { ask } = await openClient(gateway)
      const stream = ask('/', { ':method': 'POST' }, false)
      stream.write(Buffer.alloc(30_000))
      await until(() => expect(seen).toEqual(['begin']))
      stream.destroy(error)
      await until(() => expect(seen).toEqual(['begin', 'error']))
    },
  )

  test('answered before their end are answered whole, and need not be sent further', async () => {
    const gateway = await start((_, response) => void response.writeHead(403).end('no'.repeat(1_000)))
    const client = await openClient(gateway)
    for (let count = 0; count < 120; count++) {
      const stream = client.ask('/', { ':method': 'POST' }, false)
      stream.write(Buffer.alloc(20_000))
      expect(await headOf(stream)).toMatchObject({ ':status': 403 })
      let length = 0
      stream.on('data', (chunk: Buffer) => {
        length += chunk.length
      })
      expect(await closeOf(stream)).toBe(constants.NGHTTP2_NO_ERROR)
      expect(length).toBe(2_000)
    }
  }, 30_000)

  test('refused early, asked by HEAD or expecting 100 leave their connection as it was', async () => {
    const gateway = await start((request, response) => {
      if (request.method === 'HEAD') return void response.writeHead(200, { 'content-length': 5_000_000 }).end()
      request.resume().on('end', () => response.end('ok'))
    })
    const client = await openClient(gateway)
    let farewell = false
    client.session.once('goaway', () => {
      farewell = true
    })
    // Together more than the window of the connection.
    for (let count = 0; count < 30; count++) {
      const refused = client.ask('/', { ':method': 'POST', 'content-length': 100_001 }, false)
      refused.write(Buffer.alloc(60_000))
      expect(await headOf(refused)).toMatchObject({ ':status': 413 })
      expect(await closeOf(refused)).toBe(constants.NGHTTP2_NO_ERROR)
    }
    let continued = false
    const expecting = client.ask('/', { ':method': 'POST', 'content-length': 100_001, expect: '100-continue' }, false)
    expecting.on('continue', () => {
      continued = true
    })
    expect(await headOf(expecting)).toMatchObject({ ':status': 413 })
    expect(await closeOf(expecting)).toBe(constants.NGHTTP2_NO_ERROR)
    const head = await client.send({ ':path': '/', ':method': 'HEAD' })
    expect(head).toMatchObject({ status: 200, body: '', headers: { 'content-length': '5000000' } })
    const whole = await client.send({ ':path': '/', ':method': 'POST' }, Buffer.alloc(100_000))
    expect(whole).toMatchObject({ status: 200, body: 'ok' })
    expect([continued, farewell]).toEqual([false, false])
  })

  test('with too large a body: 413, announced or not', async () => {
    const gateway = await start((request, response) => void request.resume().on('end', () => response.end()))
    const client = await openClient(gateway)
    const announced = client.ask('/', { ':method': 'POST', 'content-length': 100_001 }, false)
    expect(await headOf(announced)).toMatchObject({ ':status': 413 })
    expect(await closeOf(announced)).toBe(constants.NGHTTP2_NO_ERROR)
    const other = client.ask('/', { ':method': 'POST' }, false)
    other.write(Buffer.alloc(100_001))
    expect(await headOf(other)).toMatchObject({ ':status': 413 })
    expect(await closeOf(other)).toBe(constants.NGHTTP2_NO_ERROR)
    expect((await client.send({ ':path': '/' })).status).toBe(200)
  })

  test('whose body is not as long as announced are reset', async () => {
    const seen: string[] = []
    const gateway = await start(
      (request) =>
        void request
          .on('end', () => seen.push('end'))
          .on('error', () => {})
          .resume(),
    )
    const { ask } = await openClient(gateway)
    for (const length of [4, 6]) {
      const stream = ask('/', { ':method': 'POST', 'content-length': length }, false)
      stream.end('12345')
      expect(await closeOf(stream)).not.toBe(constants.NGHTTP2_NO_ERROR)
    }
    expect(seen).toEqual([])
  })

  test('whose body does not come in time: 408', async () => {
    const gateway = await start(() => {}, { limits: { requestTimeout: '300ms', headersTimeout: '300ms' } })
    const { ask } = await openClient(gateway)
    for (const first of [Buffer.alloc(10), Buffer.alloc(30_000)]) {
      const stream = ask('/', { ':method': 'POST', ...(first.length === 10 && { 'content-length': 20 }) }, false)
      stream.write(first)
      expect(await headOf(stream)).toMatchObject({ ':status': 408 })
      expect(await closeOf(stream)).toBe(constants.NGHTTP2_NO_ERROR)
    }
  })

  test('with too many or too large fields: 431, and 414', async () => {
    const gateway = await start((_, response) => void response.end())
    const { send } = await openClient(gateway)
    const many = Object.fromEntries(Array.from({ length: 110 }, (_, index) => [`x-${index}`, 'a']))
    expect((await send({ ':path': '/', ...many })).status).toBe(431)
    expect((await send({ ':path': '/', 'x-large': 'a'.repeat(33_000) })).status).toBe(431)
    expect((await send({ ':path': `/${'a'.repeat(8_200)}` })).status).toBe(414)
    await expect(send({ ':path': '/', 'x-bomb': Array.from({ length: 400 }, () => 'a') })).rejects.toThrow()
    expect((await send({ ':path': '/' })).status).toBe(200)
  })

  test('that expect 100 get it when their body is wanted', async () => {
    const gateway = await start((request, response) => void request.pipe(response))
    const { ask } = await openClient(gateway)
    const stream = ask('/', { ':method': 'POST', expect: '100-continue' }, false)
    await once(stream, 'continue')
    stream.end('hello')
    expect(String((await once(stream, 'data'))[0])).toBe('hello')
    expect(await headOf(ask('/', { ':method': 'POST', expect: 'more' }, false))).toMatchObject({ ':status': 400 })
  })
})

describe('connections', () => {
  test('that are left idle are closed with a farewell', async () => {
    const gateway = await start((_, response) => void response.end(), { limits: { keepAliveTimeout: '1s' } })
    const { session, send } = await openClient(gateway)
    const farewell = once(session, 'goaway')
    await send({ ':path': '/' })
    expect((await farewell)[0]).toBe(constants.NGHTTP2_NO_ERROR)
    await until(() => expect(session.closed).toBe(true))
  })

  test('end when the gateway stops, after their running requests', async () => {
    const waiting: ServerResponse[] = []
    const gateway = await start((_, response) => void waiting.push(response))
    const { session, send } = await openClient(gateway)
    const idle = await openClient(gateway)
    const first = send({ ':path': '/' })
    await until(() => expect(waiting).toHaveLength(1))
    const farewell = once(session, 'goaway')
    const closing = gateway.close()
    expect((await farewell)[0]).toBe(constants.NGHTTP2_NO_ERROR)
    await until(() => expect(idle.session.destroyed).toBe(true))
    waiting[0]!.end('whole')
    expect((await first).body).toBe('whole')
    await closing
  })

  test('are broken off after drain.timeout, and free the upstream', async () => {
    let closed = false
    const gateway = await start(
      (_, response) =>
        void response.on('close', () => {
          closed = true
        }),
      { drain: { timeout: '100ms' } },
    )
    const { ask } = await openClient(gateway)
    const stream = ask('/')
    const ended = once(stream, 'close')
    await until(async () =>
      expect((await gateway.metrics.render()).text).toContain('upstream_running{upstream="api"} 1'),
    )
    await gateway.close()
    await ended
    expect(closed).toBe(true)
  })

  test('of clients that take back requests without end are ended', async () => {
    let begun = 0
    const gateway = await start(() => void begun++)
    const { session, ask } = await openClient(gateway)
    for (let round = 0; round < 20 && !session.destroyed; round++) {
      const streams = Array.from({ length: 50 }, () => ask('/'))
      await new Promise((resolve) => setImmediate(resolve))
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
      await new Promise((resolve) => setImmediate(resolve))
    }
    await until(() => expect(session.destroyed).toBe(true))
    expect((await gateway.metrics.render()).text).toContain('surrogate_gateway_http2_ended_total{reason="resets"} 1')
    expect(begun).toBeLessThanOrEqual(250)
  })
})

test('HTTP/1.1 and WebSockets go on beside it', async () => {
  const api = await startWebSocketApi()
  cleanup.push(() => api.close())
  const gateway = await startTestGateway({
    config: () => ({
      listen: { port: 0, tls: { certificates: [pair] } },
      upstreams: { api: { url: api.url } },
      routes: [{ id: 'live', path: '/live/**', auth: 'none', upstream: 'api', websocket: true }],
    }),
  })
  cleanup.push(() => gateway.close())
  const socket = new WebSocket(`wss://localhost:${gateway.port}/live/1`, [], { ca })
  cleanup.push(() => socket.terminate())
  await once(socket, 'open')
  socket.send('hello')
  expect(String((await once(socket, 'message'))[0])).toBe('hello')
  expect(api.handshakes[0]!.headers['x-forwarded-proto']).toBe('https')

  const raw = connect({ port: gateway.port, host: '127.0.0.1', ca, servername: 'localhost' })
  cleanup.push(() => raw.destroy())
  raw.write('GET /live/1 HTTP/1.1\r\n\r\n')
  expect(String((await once(raw, 'data'))[0])).toMatch(/^HTTP\/1\.1 400 /)
})
