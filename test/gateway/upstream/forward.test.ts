import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { capturedLogger } from '../../support/captured-logger.ts'
import { startTestGateway, startUpstream, type TestGateway } from '../../support/gateway.ts'
import { settled, until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const gatewayBefore = async (
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  settings: Record<string, unknown> = {},
  route: Record<string, unknown> = {},
): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    upstream: listener,
    config: ({ upstream }) => ({
      upstreams: { api: { url: upstream.url, ...settings } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api', ...route }],
    }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

/** An upstream that speaks raw bytes. */
const rawUpstream = async (onConnection: (socket: Socket) => void): Promise<string> => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  cleanup.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const gatewayTo = async (url: string, settings: Record<string, unknown> = {}) =>
  gatewayBefore(() => {}, { url, ...settings })

const problemOf = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]

describe('streaming', () => {
  test('an answer arrives piece by piece', async () => {
    const pieces: (() => void)[] = []
    const gateway = await gatewayBefore((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: 1\n\n')
      pieces.push(() => void response.end('data: 2\n\n'))
    })
    const response = await fetch(gateway.url)
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    expect(await reader.read()).toEqual({ done: false, value: 'data: 1\n\n' })
    pieces[0]!()
    expect(await reader.read()).toEqual({ done: false, value: 'data: 2\n\n' })
    expect((await reader.read()).done).toBe(true)
  })

  test('a body arrives upstream piece by piece', async () => {
    let received = ''
    const gateway = await gatewayBefore((incoming, response) => {
      incoming.on('data', (chunk) => (received += chunk))
      incoming.on('end', () => response.end('done'))
    })
    const outgoing = request(gateway.url, { method: 'POST' })
    outgoing.write('one')
    await until(() => expect(received).toBe('one'))
    outgoing.end('two')
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    answer.resume()
    expect(received).toBe('onetwo')
  })

  test('20 MB go through unchanged in both directions at once', async () => {
    const gateway = await gatewayBefore((incoming, response) => incoming.pipe(response))
    const body = Buffer.alloc(20_000_000, 'surrogate ')
    const response = await fetch(gateway.url, { method: 'POST', body })
    expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true)
  })

  test('a client that does not read slows the upstream down instead of filling memory', async () => {
    let written = 0
    const size = 200_000_000
    const chunk = Buffer.alloc(65_536)
    const gateway = await gatewayBefore((_, response) => {
      const more = () => {
        while (written < size) {
          written += chunk.length
          if (!response.write(chunk)) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    })
    const outgoing = request(gateway.url).end()
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    answer.pause()
    // Settled: everything on the way is full, and that is far less than the whole.
    await settled(() => written)
    expect(written).toBeLessThan(50_000_000)
    answer.destroy()
  })

  test('an upstream that does not read slows the client down', async () => {
    const gateway = await gatewayBefore((incoming) => {
      incoming.pause()
      // The gateway hears that the client has gone only when it reads again.
      cleanup.push(() => incoming.destroy())
    })
    const outgoing = request(gateway.url, { method: 'POST' })
    outgoing.on('error', () => {})
    cleanup.push(() => outgoing.destroy())
    let written = 0
    const chunk = Buffer.alloc(65_536)
    const more = () => {
      do written += chunk.length
      while (outgoing.write(chunk) && written < 200_000_000)
      outgoing.once('drain', more)
    }
    more()
    await settled(() => written)
    expect(written).toBeLessThan(50_000_000)
  })
})

describe('a client that goes away', () => {
  test.each(['before the answer', 'within the answer', 'within its body'])(
    '%s ends the upstream request',
    async (when) => {
      const closed = Promise.withResolvers<void>()
      const gateway = await gatewayBefore((incoming, response) => {
        response.on('close', () => closed.resolve())
        if (when === 'within the answer') response.write('x')
        else incoming.resume()
      })
      const outgoing = request(gateway.url, {
        method: 'POST',
        headers: when === 'within its body' ? { 'content-length': 100_000 } : {},
      })
      outgoing.on('error', () => {})
      if (when === 'within its body') outgoing.write('x'.repeat(20_000))
      else outgoing.end()
      if (when === 'within the answer') await once(outgoing, 'response')
      else await until(async () => expect(await runningUpstream(gateway)).toBe(1))
      outgoing.destroy()
      await closed.promise
      await until(async () => expect(await runningUpstream(gateway)).toBe(0))
    },
  )
})

/** Requests that are with the upstream now. */
const runningUpstream = async ({ metrics }: TestGateway): Promise<number> =>
  Number(/surrogate_gateway_upstream_running\{upstream="api"\} (\d+)/.exec((await metrics.render()).text)?.[1])

describe('an upstream that fails', () => {
  test('is not there: 502', async () => {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const gateway = await gatewayTo(`http://127.0.0.1:${port}`)
    expect(await problemOf(await fetch(gateway.url))).toEqual([502, 'upstream_unavailable'])
  })

  test('hangs up: 502, and the request was sent once', async () => {
    let connections = 0
    const url = await rawUpstream((socket) => {
      connections++
      socket.once('data', () => socket.destroy())
    })
    const gateway = await gatewayTo(url)
    expect(await problemOf(await fetch(gateway.url))).toEqual([502, 'upstream_unavailable'])
    expect(connections).toBe(1)
  })

  test.each([
    ['speaks something else', 'SSH-2.0-OpenSSH\r\n'],
    ['frames in two ways', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['sends a broken header', 'HTTP/1.1 200 OK\r\nX-A\0: 1\r\nContent-Length: 0\r\n\r\n'],
  ])('%s: 502', async (_, bytes) => {
    const gateway = await gatewayTo(await rawUpstream((socket) => socket.once('data', () => socket.end(bytes))))
    expect(await problemOf(await fetch(gateway.url))).toEqual([502, 'upstream_protocol_error'])
  })

  test('is away: 502 for each request, and a line in the log for each route and second', async () => {
    const { logger, lines } = capturedLogger()
    const closed = await startUpstream()
    await closed.close()
    const gateway = await startTestGateway({
      logger,
      config: () => ({ upstreams: { orders: { url: closed.url } } }),
    })
    cleanup.push(() => gateway.close())
    for (let count = 0; count < 50; count++) {
      expect(await problemOf(await fetch(`${gateway.url}/public`))).toEqual([502, 'upstream_unavailable'])
    }
    const told = lines.filter(({ msg }) => msg === 'a request failed on our side')
    expect(told.length).toBeGreaterThan(0)
    expect(told.length).toBeLessThan(25)
    expect(told[0]).toMatchObject({ route: 'public', code: 'upstream_unavailable', err: { code: 'ECONNREFUSED' } })
  })

  test('is silent: 504 after headersTimeout', async () => {
    const gateway = await gatewayBefore(() => {}, { headersTimeout: '100ms' })
    expect(await problemOf(await fetch(gateway.url))).toEqual([504, 'upstream_timeout'])
  })

  test('sends one interim answer after the other: 504 after headersTimeout', async () => {
    const interim = 'HTTP/1.1 102 Processing\r\n\r\n'
    const url = await rawUpstream((socket) => {
      const timer = setInterval(() => socket.write(interim), 10)
      socket.on('close', () => clearInterval(timer))
    })
    const gateway = await gatewayTo(url, { headersTimeout: '100ms' })
    expect(await problemOf(await fetch(gateway.url))).toEqual([504, 'upstream_timeout'])
  })

  test('is not to blame for a client that sends slowly', async () => {
    let received = ''
    const gateway = await gatewayBefore(
      (incoming, response) => {
        if (incoming.method === 'GET') return
        incoming.on('data', (chunk) => {
          received += chunk
        })
        incoming.on('end', () => response.end(received))
      },
      { headersTimeout: '400ms' },
    )
    const outgoing = request(gateway.url, { method: 'POST' })
    outgoing.write('one ')
    await until(() => expect(received).toBe('one '))
    // Another request runs into the timeout meanwhile, twice: the upload has been waiting for longer than that.
    for (let round = 0; round < 2; round++) expect((await fetch(gateway.url)).status).toBe(504)
    outgoing.end('two')
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect([answer.statusCode, (await answer.setEncoding('utf8').toArray()).join('')]).toEqual([200, 'one two'])
  })

  test('stops within its answer: the client sees it broken, never whole', async () => {
    const bytes = 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'
    const gateway = await gatewayTo(await rawUpstream((socket) => socket.once('data', () => socket.end(bytes))))
    const response = await fetch(gateway.url)
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow()
  })

  test('falls silent within its answer: broken after idleTimeout', async () => {
    const gateway = await gatewayBefore((_, response) => void response.write('abc'), { idleTimeout: '100ms' })
    const response = await fetch(gateway.url)
    await expect(response.text()).rejects.toThrow()
  })

  test('answers before it has read the body: the client gets the answer', async () => {
    const gateway = await gatewayBefore(
      (_, response) => void response.writeHead(409, { connection: 'close' }).end('no'),
    )
    const outgoing = request(gateway.url, { method: 'POST', headers: { 'content-length': 50_000_000 } })
    outgoing.on('error', () => {})
    outgoing.write('x'.repeat(100_000))
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    expect(answer.statusCode).toBe(409)
    expect(answer.headers.connection).toBe('close')
    outgoing.destroy()
  })

  test('has too much to do: 503 at once', async () => {
    const waiting: ServerResponse[] = []
    const gateway = await gatewayBefore((_, response) => void waiting.push(response), { maxRequests: 2 })
    const first = [fetch(gateway.url), fetch(gateway.url)]
    await until(() => expect(waiting).toHaveLength(2))
    expect(await problemOf(await fetch(gateway.url))).toEqual([503, 'server.unavailable'])
    for (const response of waiting) response.end('ok')
    for (const response of first) expect((await response).status).toBe(200)
    const later = fetch(gateway.url)
    await until(() => expect(waiting).toHaveLength(3))
    waiting[2]!.end('ok')
    expect((await later).status).toBe(200)
  })
})

describe('answers', () => {
  test.each([204, 304])('%i without a body', async (status) => {
    const gateway = await gatewayBefore((_, response) => void response.writeHead(status, { etag: '"x"' }).end())
    const response = await fetch(gateway.url)
    expect([response.status, response.headers.get('etag'), await response.text()]).toEqual([status, '"x"', ''])
  })

  test('HEAD keeps the length of what GET would get', async () => {
    const gateway = await gatewayBefore((_, response) => void response.writeHead(200, { 'content-length': 12 }).end())
    const response = await fetch(gateway.url, { method: 'HEAD' })
    expect([response.status, response.headers.get('content-length'), await response.text()]).toEqual([200, '12', ''])
  })

  test('several cookies, redirects and compressed bodies pass untouched', async () => {
    const gateway = await gatewayBefore((_, response) => {
      response
        .writeHead(302, {
          location: 'http://elsewhere.test/',
          'set-cookie': ['a=1', 'b=2'],
          'content-encoding': 'x-own',
        })
        .end('body')
    })
    const response = await fetch(gateway.url, { redirect: 'manual' })
    expect(response.status).toBe(302)
    expect(response.headers.get('location')).toBe('http://elsewhere.test/')
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    expect(response.headers.get('content-encoding')).toBe('x-own')
  })

  test.each([256, 16_384, 16_385, 70_000])(
    '%i bytes of every value pass untouched, with head and body in one write or not',
    async (length) => {
      const body = Buffer.from(Uint8Array.from({ length }, (_, index) => index))
      const gateway = await gatewayBefore((_, response) => {
        response.writeHead(200, { 'content-length': length, 'x-name': 'caf\xe9' }).end(body)
      })
      const response = await fetch(gateway.url)
      expect(response.headers.get('x-name')).toBe('caf\xe9')
      expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true)
    },
  )

  test('interim answers stay on the hop', async () => {
    const gateway = await gatewayBefore((_, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' })
      response.end('ok')
    })
    expect(await (await fetch(gateway.url)).text()).toBe('ok')
  })
})

describe('where requests go', () => {
  test.each([
    ['/api/v1/**', '/api/v1', '', '/api/v1/orders/1%2C2/?x=1', '/orders/1%2C2/?x=1'],
    ['/api/v1/**', '/api/v1', '', '/api/v1', '/'],
    ['/api/v1/**', '/api/v1', '', '/api/v1/', '/'],
    ['/api/v1/**', '/api', '/base', '/api/v1/x', '/base/v1/x'],
    ['/**', null, '/base/', '/x', '/base/x'],
    ['/a:b/**', '/a:b', '', '/a%3Ab/x', '/x'],
  ])('%s without %s before %s: %s → %s', async (path, stripPrefix, base, target, expected) => {
    let url: string | undefined
    const gateway = await startTestGateway({
      upstream: (incoming, response) => {
        url = incoming.url
        response.end()
      },
      config: ({ upstream }) => ({
        upstreams: { api: { url: upstream.url + base } },
        routes: [{ id: 'all', path, stripPrefix, auth: 'none', upstream: 'api' }],
      }),
    })
    cleanup.push(() => gateway.close())
    await fetch(gateway.url + target)
    expect(url).toBe(expected)
  })

  test('Authorization stays behind where the route says so', async () => {
    const gateway = await startTestGateway({
      config: ({ upstream }) => ({
        upstreams: { api: { url: upstream.url } },
        routes: [
          {
            id: 'all',
            path: '/**',
            audience: ['https://api.test/orders'],
            forwardAuthorization: false,
            upstream: 'api',
          },
        ],
      }),
    })
    cleanup.push(() => gateway.close())
    expect((await gateway.call('/')).status).toBe(200)
    expect(gateway.upstream.seen[0]!.headers).toMatchObject({ 'x-auth-sub': 'u1' })
    expect(gateway.upstream.seen[0]!.headers).not.toHaveProperty('authorization')
  })
})

test('stopping lets the running request finish, and takes no new connection', async () => {
  const waiting: ServerResponse[] = []
  const gateway = await startTestGateway({
    upstream: (_, response) => void waiting.push(response),
    config: ({ upstream }) => ({
      upstreams: { api: { url: upstream.url } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }],
    }),
  })
  const running = fetch(gateway.url)
  await until(() => expect(waiting).toHaveLength(1))
  const closing = gateway.close()
  await until(() => expect(fetch(gateway.url)).rejects.toThrow())
  waiting[0]!.end('finished')
  expect(await (await running).text()).toBe('finished')
  await closing
})
