import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const start = (timeouts: Record<string, string> = {}) =>
  startTestGateway({
    config: ({ upstream }) => ({
      upstreams: { orders: { url: upstream.url } },
      routes: [
        { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
        { id: 'small', path: '/small', auth: 'none', upstream: 'orders', bodySize: 10 },
        { id: 'medium', path: '/medium', auth: 'none', upstream: 'orders', bodySize: 20_000 },
      ],
      limits: { headerCount: 20, targetLength: 300, headerSize: 8192, ...timeouts },
    }),
  })

let gateway: TestGateway
beforeAll(async () => {
  gateway = await start()
})
afterAll(() => gateway.close())
beforeEach(() => {
  gateway.upstream.seen.length = 0
  gateway.upstream.answer = (_request, response) => void response.end('seen')
})

const send = (...lines: string[]) => sendRaw(gateway.port, lines.join('\r\n'))

/** Statuses of every answer that came back on the connection. */
const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

const close = ['Connection: close', '', '']

describe('one request in, one request out', () => {
  test('pipelined requests go upstream in their order, the next one when the one before is answered', async () => {
    const order: string[] = []
    gateway.upstream.answer = (_request, response, { url, body }) => {
      order.push(`asked ${url}`)
      setImmediate(() => {
        order.push(`answered ${url}`)
        response.end(body)
      })
    }
    const post = (path: string) => [`POST ${path} HTTP/1.1`, 'Host: a', 'Content-Length: 3', '']
    const answer = await send(
      ...[...post('/public/1'), `abc${post('/public/2')[0]}`, ...post('/public/2').slice(1)],
      ...['defGET /public/3 HTTP/1.1', 'Host: a', ...close],
    )
    expect(statuses(answer)).toEqual([200, 200, 200])
    expect(order).toEqual([1, 2, 3].flatMap((n) => [`asked /public/${n}`, `answered /public/${n}`]))
  })

  test.each<[string, string[]]>([
    ['no HTTP', ['G\r /x HTTP/1.1', 'Host: a', '', '']],
    ['CONNECT', ['CONNECT a:443 HTTP/1.1', 'Host: a', '', '']],
    ['a header field that is none', ['GET /public HTTP/1.1', 'Host: a', ' : x', '', '']],
  ])('%s behind a request never answers that request, and ends the connection', async (_, lines) => {
    const asked = Promise.withResolvers<void>()
    gateway.upstream.answer = (_request, response) => void asked.promise.then(() => response.end('the real answer'))
    const socket = connect(gateway.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => (received += chunk))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(['GET /public/1 HTTP/1.1', 'Host: a', '', ...lines].join('\r\n'))
    await until(() => expect(gateway.upstream.seen).toHaveLength(1))
    asked.resolve()
    await closed
    expect(statuses(received)).toEqual([200])
    expect(received).toContain('the real answer')
  })

  test('an upgrade is answered as the plain request it also is, the last of its connection', async () => {
    const answer = await send(
      'GET /public HTTP/1.1',
      'Host: a',
      'Connection: Upgrade, HTTP2-Settings',
      'Upgrade: h2c',
      'HTTP2-Settings: AAMAAABkAAQ',
      '',
      'GET /admin HTTP/1.1',
      'Host: a',
      ...close,
    )
    expect(statuses(answer)).toEqual([200])
    expect(answer.toLowerCase()).toContain('connection: close')
    expect(gateway.upstream.seen.map(({ url }) => url)).toEqual(['/public'])
    expect(Object.keys(gateway.upstream.seen[0]!.headers)).not.toEqual(expect.arrayContaining(['upgrade']))
  })

  test('Expect: 100-continue is answered when the request may go on, not before', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => (received += chunk))
    socket.write('POST /nowhere HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n')
    await until(() => expect(received).toContain('404'))
    expect(received).not.toContain('100 Continue')
    socket.destroy()

    const allowed = connect(gateway.port, '127.0.0.1')
    received = ''
    allowed.on('data', (chunk) => (received += chunk))
    allowed.write(
      'POST /public HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n',
    )
    await until(() => expect(received).toContain('100 Continue'))
    allowed.write('abc')
    await until(() => expect(received).toContain('200 OK'))
    expect(gateway.upstream.seen[0]).toMatchObject({ body: 'abc' })
    expect(gateway.upstream.seen[0]!.headers).not.toHaveProperty('expect')
  })
})

describe('limits', () => {
  test('a body of exactly the limit passes', async () => {
    expect(
      statuses(
        await send('POST /small HTTP/1.1', 'Host: a', 'Content-Length: 10', ...close.slice(0, 2), 'a'.repeat(10)),
      ),
    ).toEqual([200])
  })

  test('a chunked body that grows over the limit: 413, and the upstream never gets a whole request', async () => {
    const chunk = `2710\r\n${'x'.repeat(10_000)}\r\n`
    const answer = await send(
      'POST /medium HTTP/1.1',
      'Host: a',
      'Transfer-Encoding: chunked',
      '',
      chunk + chunk + chunk,
    )
    expect(statuses(answer)).toEqual([413])
    await until(() => expect(gateway.upstream.seen.every(({ body }) => body === '<aborted>')).toBe(true))
  })

  test('fields of exactly the limit pass, beside a target of exactly its limit', async () => {
    const target = `/public/${'x'.repeat(292)}`
    // `Host`, `a`, `x-large`, `Connection`, `close` are 26 bytes of the 8192.
    const fields = (bytes: number) => ['Host: a', `x-large: ${'x'.repeat(bytes - 27)}`, ...close]
    expect(statuses(await send(`GET ${target} HTTP/1.1`, ...fields(8_192)))).toEqual([200])
    expect(statuses(await send(`GET ${target} HTTP/1.1`, ...fields(8_193)))).toEqual([431])
  })

  test('more fields than Node keeps are refused, not cut off', async () => {
    const answer = await send('GET /public HTTP/1.1', ...Array.from({ length: 1100 }, () => 'a:'), 'Host: a', ...close)
    expect(statuses(answer)).toEqual([431])
  })

  test.each<[string, string]>([
    ['a head that never ends', 'GET /public HTTP/1.1\r\nHost: a\r\n'],
    ['a body that never comes', 'POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n'],
  ])('%s: 408', async (_, text) => {
    const impatient = await start({ headersTimeout: '200ms', requestTimeout: '400ms' })
    onTestFinished(impatient.close)
    const answer = await sendRaw(impatient.port, text)
    expect(statuses(answer)).toEqual([408])
    expect(answer).toContain('"code":"request_timeout"')
    expect(impatient.upstream.seen).toEqual([])
  })
})

test('a refused request keeps its connection, unless much of its body is still to come', async () => {
  const kept = await send(
    'POST /nowhere HTTP/1.1',
    'Host: a',
    'Content-Length: 3',
    '',
    'abcGET /public HTTP/1.1',
    'Host: a',
    ...close,
  )
  expect(statuses(kept)).toEqual([404, 200])
  const closed = await send('POST /nowhere HTTP/1.1', 'Host: a', 'Content-Length: 1000000', '', 'abc')
  expect(statuses(closed)).toEqual([404])
  expect(closed.toLowerCase()).toContain('connection: close')
})
