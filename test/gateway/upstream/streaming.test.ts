import { once } from 'node:events'
import { type IncomingMessage, type RequestListener, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const gatewayBefore = async (upstream: RequestListener, settings: object = {}): Promise<TestGateway> => {
  const gateway = await startTestGateway({
    upstream,
    config: ({ upstream: api }) => ({
      upstreams: { api: { url: api.url, ...settings } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api' }],
    }),
  })
  cleanup.push(() => gateway.close())
  return gateway
}

const runningAt = async (gateway: TestGateway): Promise<string | undefined> =>
  /surrogate_gateway_upstream_running\{upstream="api"\} (\d+)/.exec((await gateway.metrics.render()).text)?.[1]

describe('server-sent events', () => {
  test('arrive one by one, however quiet it is between them, and end at the upstream when the reader leaves', async () => {
    const streams: ServerResponse[] = []
    const gateway = await gatewayBefore(
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
        response.flushHeaders()
        streams.push(response)
      },
      { headersTimeout: '5s', idleTimeout: '0s' },
    )
    const outgoing = request(`${gateway.url}/events`, { headers: { accept: 'text/event-stream' } }).end()
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    // The head is there before anything has happened.
    expect(answer.headers['content-type']).toBe('text/event-stream')
    for (const event of ['data: 1\n\n', ': still here\n\n', 'id: 7\ndata: 2\n\n']) {
      streams[0]!.write(event)
      const [chunk] = (await once(answer, 'data')) as [Buffer]
      expect(String(chunk)).toBe(event)
    }
    expect(await runningAt(gateway)).toBe('1')
    const ended = once(streams[0]!, 'close')
    answer.destroy()
    await ended
    await until(async () => expect(await runningAt(gateway)).toBe('0'))
  })
})

describe('large uploads', () => {
  test('100 MB to an upstream that reads slowly, without the gateway holding more than a little of it', async () => {
    const size = 100_000_000
    let received = 0
    let most = 0
    let sent = 0
    const gateway = await gatewayBefore((incoming, response) => {
      incoming.on('data', (chunk: Buffer) => {
        received += chunk.length
        most = Math.max(most, sent - received)
        incoming.pause()
        setImmediate(() => incoming.resume())
      })
      incoming.on('end', () => response.end(String(received)))
    })
    const outgoing = request(gateway.url, { method: 'PUT', headers: { 'content-length': size } })
    const chunk = Buffer.alloc(100_000)
    const answer = once(outgoing, 'response') as Promise<[IncomingMessage]>
    while (sent < size) {
      const flowing = outgoing.write(chunk)
      sent += chunk.length
      if (!flowing) await once(outgoing, 'drain')
    }
    outgoing.end()
    const [{ statusCode }] = await answer
    expect([statusCode, received]).toEqual([200, size])
    // On the way at once, in all buffers of client, gateway, upstream and the kernel between them.
    expect(most).toBeLessThan(30_000_000)
  })
})

describe('clients that leave', () => {
  test('at every moment, hundreds of them: nothing stays behind', async () => {
    const open = new Set<ServerResponse>()
    const gateway = await gatewayBefore((incoming, response) => {
      open.add(response)
      response.on('close', () => open.delete(response))
      incoming.resume()
      // Some get no answer, some a part of one.
      if (incoming.url === '/part') response.write('part')
    })
    const leave = async (head: string, after: number) => {
      const socket = connect(gateway.port, '127.0.0.1')
      socket.on('error', () => {})
      await once(socket, 'connect')
      socket.write(head)
      for (let turn = 0; turn < after; turn++) await new Promise(setImmediate)
      socket.destroy()
    }
    const heads = [
      'GET /none HTTP/1.1\r\nHost: a.test\r\n\r\n',
      'GET /part HTTP/1.1\r\nHost: a.test\r\n\r\n',
      'POST /none HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\nhello',
      'POST /part HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
      'POST /none HTTP/1.1\r\nHost: a.test\r\nContent-Length: 50\r\n\r\nhello',
    ]
    await Promise.all(Array.from({ length: 300 }, (_, index) => leave(heads[index % heads.length]!, index % 17)))
    await until(async () => {
      expect(await runningAt(gateway)).toBe('0')
      expect(open.size).toBe(0)
    })
    // And it still serves.
    const answer = await fetch(`${gateway.url}/part`)
    expect(answer.status).toBe(200)
    await answer.body!.cancel()
  })
})

describe('trailers of an answer', () => {
  const withTrailers: RequestListener = (_request, response) => {
    response.writeHead(200, { trailer: 'X-Checksum' })
    response.write('body')
    response.addTrailers({ 'X-Checksum': 'abc', 'Set-Cookie': 'a=1', 'X-Auth-Sub': 'admin', 'Cache-Control': 'public' })
    response.end()
  }

  test('reach a client that asks for them, but for fields that must not come late', async () => {
    const gateway = await gatewayBefore(withTrailers)
    const outgoing = request(gateway.url, { headers: { te: 'trailers', connection: 'te' } }).end()
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    let body = ''
    for await (const chunk of answer) body += chunk
    expect([body, answer.trailers]).toEqual(['body', { 'x-checksum': 'abc' }])
  })

  test('stay behind for everybody else', async () => {
    const gateway = await gatewayBefore(withTrailers)
    const answer = await sendRaw(gateway.port, 'GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/\r\n4\r\nbody\r\n0\r\n\r\n$/)
  })
})
