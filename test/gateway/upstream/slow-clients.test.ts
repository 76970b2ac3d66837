import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setInterval as every } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { upstream as upstreamSettings } from '../../../gateway/config/settings/upstream.ts'
import { ClientRate } from '../../../gateway/upstream/client-rate.ts'
import { createUpstream } from '../../../gateway/upstream/upstream.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const gatewayBefore = async (
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  settings: Record<string, unknown>,
): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    upstream: listener,
    config: ({ upstream }) => ({
      upstreams: { api: { url: upstream.url, ...settings } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }],
    }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

/** A client that does nothing by itself. */
const openClient = async ({ port }: TestGateway, text: string): Promise<{ socket: Socket; received: () => string }> => {
  const socket = connect(port, '127.0.0.1')
  cleanup.push(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.pause()
  socket.write(text)
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
  })
  socket.pause()
  return { socket, received: () => received }
}

const get = (path = '/') => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const post = (length: number, body: string) => `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${body}`
const postChunked = (body: string) =>
  `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n`

const statusOf = async (gateway: TestGateway): Promise<number> => {
  const answer = await fetch(`${gateway.url}/small`)
  await answer.bytes()
  return answer.status
}

/** Writes without end, as far as it is taken; `/small` gets a word. */
const endless = (closed: () => void) => (request: IncomingMessage, response: ServerResponse) => {
  if (request.url === '/small') return void response.end('ok')
  const chunk = Buffer.alloc(65_536)
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  }
  response.on('drain', more)
  response.on('close', closed)
  more()
}

describe('readers', () => {
  test('who stand still lose their slots, and the upstream its readers; others get them', async () => {
    let closed = 0
    const gateway = await gatewayBefore(
      endless(() => closed++),
      { maxRequests: 3, idleTimeout: '400ms' },
    )
    const clients = await Promise.all([1, 2, 3].map(() => openClient(gateway, get())))
    await until(async () => expect(await statusOf(gateway)).toBe(503))
    await until(async () => expect(await statusOf(gateway)).toBe(200))
    await until(() => expect(closed).toBe(3))
    for (const { socket } of clients) {
      const ended = once(socket, 'close')
      socket.resume()
      await ended
    }
  })

  test('who take a few bytes now and then lose theirs', async () => {
    let closed = 0
    const gateway = await gatewayBefore(
      endless(() => closed++),
      { maxRequests: 1, idleTimeout: '400ms' },
    )
    const { socket } = await openClient(gateway, get())
    const dripping = setInterval(() => socket.read(10), 20)
    cleanup.push(() => clearInterval(dripping))
    await until(() => expect(closed).toBe(1))
    expect(await statusOf(gateway)).toBe(200)
  })

  test('who go on reading keep theirs for as long as it takes', async () => {
    let closed = 0
    const idleTimeout = 400
    const gateway = await gatewayBefore(
      endless(() => closed++),
      { maxRequests: 1, idleTimeout: `${idleTimeout}ms` },
    )
    const { socket } = await openClient(gateway, get())
    let read = 0
    // So much in each turn that the connection, whose buffers hold megabytes, takes something new.
    const inOneTurn = 4_000_000
    socket.on('data', (chunk) => {
      read += chunk.length
      if (read % inOneTurn < chunk.length) socket.pause()
    })
    const begun = performance.now()
    for await (const _ of every(5)) {
      socket.resume()
      if (socket.destroyed || (read > 10 * inOneTurn && performance.now() - begun > 4 * idleTimeout)) break
    }
    expect([closed, socket.destroyed]).toEqual([0, false])
  })
})

test('what came while the gateway itself stood still counts: nobody was silent', async () => {
  let stood = 0
  const gateway = await gatewayBefore(
    (request, response) => {
      // The upstream, the client and the gateway of this test are one process.
      for (const until = performance.now() + 700; performance.now() < until; );
      stood++
      request.resume().once('end', () => response.end('ok'))
    },
    { headersTimeout: '200ms', idleTimeout: '200ms' },
  )
  expect(await statusOf(gateway)).toBe(200)
  const { received, socket } = await openClient(gateway, post(100_000, 'x'.repeat(50_000)))
  socket.resume()
  await until(() => expect(stood).toBe(2))
  socket.write('x'.repeat(50_000))
  await until(() => expect(received()).toMatch(/^HTTP\/1\.1 200 /))
})

describe('senders', () => {
  test.each([
    ['a short body, which the upstream has not heard of', post(10_000, 'abc'), 0],
    ['a long one', post(100_000, 'abc'), 1],
    ['one of unknown length', postChunked('abc'), 1],
  ])('who stand still in %s get 408 and lose their slots', async (_what, text, expected) => {
    let asked = 0
    let closed = 0
    const gateway = await gatewayBefore(
      (request, response) => {
        if (request.url === '/small') return void response.end('ok')
        asked++
        request.on('error', () => {})
        response.on('close', () => closed++)
      },
      { maxRequests: 1, idleTimeout: '400ms' },
    )
    const { socket, received } = await openClient(gateway, text)
    await until(async () => expect(await statusOf(gateway)).toBe(503))
    socket.resume()
    await once(socket, 'close')
    expect(received()).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*"code":"request_timeout"/)
    expect(await statusOf(gateway)).toBe(200)
    await until(() => expect([asked, closed]).toEqual([expected, expected]))
  })

  test('who send a few bytes now and then get 408', async () => {
    const gateway = await gatewayBefore((request) => void request.resume(), { maxRequests: 1, idleTimeout: '400ms' })
    const { socket, received } = await openClient(gateway, post(100_000, 'abc'))
    const dripping = setInterval(() => socket.write('x'), 20)
    cleanup.push(() => clearInterval(dripping))
    socket.resume()
    await once(socket, 'close')
    expect(received()).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('who leave before their body has come give their slots back', async () => {
    const gateway = await gatewayBefore((_, response) => void response.end('ok'), { maxRequests: 1 })
    const { socket } = await openClient(gateway, post(10_000, 'abc'))
    await until(async () => expect(await statusOf(gateway)).toBe(503))
    socket.destroy()
    await until(async () => expect(await statusOf(gateway)).toBe(200))
  })
})

test('bodies that are held back and sent together do not pass the limit together', async () => {
  let most = 0
  const waiting = new Set<ServerResponse>()
  const gateway = await gatewayBefore(
    (_, response) => {
      waiting.add(response)
      most = Math.max(most, waiting.size)
    },
    { maxRequests: 2 },
  )
  const clients = await Promise.all(Array.from({ length: 30 }, () => openClient(gateway, post(4, ''))))
  for (const { socket } of clients) socket.resume()
  await until(() => expect(clients.filter(({ received }) => received().startsWith('HTTP/1.1 503 '))).toHaveLength(28))
  for (const { socket } of clients) socket.write('body')
  await until(() => expect(waiting.size).toBe(2))
  for (const response of waiting) response.end('ok')
  await until(() => expect(clients.filter(({ received }) => received().startsWith('HTTP/1.1 200 '))).toHaveLength(2))
  expect(most).toBe(2)
})

describe('the rate of a client', () => {
  /** Looked at once a second, moving so many bytes before each look: when it was found too slow, in s. */
  const tooSlowAfter = (bytesBefore: (second: number) => number, seconds = 600): number | undefined => {
    const rate = new ClientRate(60_000)
    for (let second = 0; second < seconds; second++) {
      rate.moved(bytesBefore(second))
      if (rate.isTooSlow(second * 1_000, 0)) return second
    }
    return undefined
  }

  test.each([
    ['nothing', () => 0, 60],
    ['999 bytes a second', () => 999, 60],
    ['1 kB a second', () => 1_000, undefined],
    ['60 kB once in a minute', (second: number) => (second % 60 === 59 ? 60_000 : 0), undefined],
    ['much, and then nothing', (second: number) => (second < 70 ? 1_000_000 : 0), 129],
  ])('of %s', (_what, bytesBefore, expected) => {
    expect(tooSlowAfter(bytesBefore)).toBe(expected)
  })

  test('counts only while the client is waited for', () => {
    const rate = new ClientRate(60_000)
    for (let minute = 0; minute < 10; minute++) {
      expect(rate.isTooSlow(minute * 60_000, 0)).toBe(false)
      rate.rest()
    }
  })

  test('with idleTimeout: 0s is that of a minute', async () => {
    const settings = upstreamSettings.parse({ url: 'http://localhost', idleTimeout: '0s' })
    const upstream = createUpstream({
      name: 'a',
      settings,
      tls: undefined,
      logger: silentLogger,
      metrics: createMetrics(),
    })
    expect([upstream.clientTimeout, upstream.idleTimeout]).toEqual([60_000, 0])
    await upstream.close()
  })
})
