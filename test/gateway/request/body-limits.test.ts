import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { json, postHead, startBodyGateway } from '../../support/body-policies.ts'
import { sendRaw, type TestGateway } from '../../support/gateway.ts'
import { createTlsFiles, openHttp2 } from '../../support/tls-listener.ts'
import { until } from '../../support/until.ts'

/** Bodies that policies look at must not be a way to fill the memory, or to hold anything for long. */

const chunked = 'Transfer-Encoding: chunked'
const token = ({ issuer }: TestGateway) => issuer.sign({ client_id: 'c1' })

/** A client that sends this much and then waits. */
const openClient = async ({ port }: TestGateway, text: string): Promise<{ socket: Socket; received: () => string }> => {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => {})
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
  })
  await once(socket, 'connect')
  socket.write(text, 'latin1')
  return { socket, received: () => received }
}

describe('strangers', () => {
  test('are refused before a byte of a body is read', async () => {
    const gateway = await startBodyGateway({
      route: { rateLimit: { by: 'subject', requests: 1, per: '1h' }, acr: 'strong' },
    })
    const refusedBy = async (bearer: string, ...fields: string[]) => {
      const { received } = await openClient(gateway, postHead(bearer, chunked, ...fields))
      await until(() => expect(received()).toMatch(/^HTTP/))
      return received()
    }
    expect(await refusedBy('x')).toMatch(/^HTTP\/1\.1 401 .*invalid_token/s)
    expect(await refusedBy(await token(gateway))).toMatch(/^HTTP\/1\.1 401 .*insufficient_user_authentication/s)
    expect(await refusedBy(await token(gateway))).toMatch(/^HTTP\/1\.1 429 /)
    // Nor is one asked for.
    expect(await refusedBy('x', 'Expect: 100-continue')).toMatch(/^HTTP\/1\.1 401 /)
  })

  test('who are let in are asked for it once', async () => {
    const gateway = await startBodyGateway()
    const head = postHead(await token(gateway), 'Content-Length: 12', 'Expect: 100-continue', 'Connection: close')
    const { socket, received } = await openClient(gateway, head)
    await until(() => expect(received()).toMatch(/^HTTP\/1\.1 100 /))
    socket.write('{"amount":1}')
    await once(socket, 'close')
    expect(received().match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200'])
  })

  test('who announce too much are not asked for it', async () => {
    const gateway = await startBodyGateway()
    const bearer = await token(gateway)
    const head = (length: number) =>
      postHead(bearer, `Content-Length: ${length}`, 'Expect: 100-continue', 'Connection: close')
    expect(await sendRaw(gateway.port, head(65_537))).toMatch(/^HTTP\/1\.1 413 /)
    const typed = head(10).replace('application/json', 'text/plain')
    expect(await sendRaw(gateway.port, typed, { until: /unsupported_media_type/ })).toMatch(/^HTTP\/1\.1 415 /)
  })
})

describe('a client that stops in the middle', () => {
  test.each([
    ['of a length', 'Content-Length: 500'],
    ['in chunks', chunked],
  ])('%s is told 408, and what it sent is forgotten', async (_name, framing) => {
    const gateway = await startBodyGateway({
      route: { policyBody: { type: 'json', maxBytes: 500 } },
      config: ({ url }) => ({ upstreams: { api: { url, idleTimeout: '200ms' } } }),
    })
    const begun = framing === chunked ? 'c\r\n{"amount":1,\r\n' : '{"amount":1,'
    const { socket, received } = await openClient(gateway, postHead(await token(gateway), framing) + begun)
    await until(async () => expect(await gateway.held()).toBe(12))
    await once(socket, 'close')
    expect(received()).toMatch(/^HTTP\/1\.1 408 .*"code":"request_timeout"/s)
    await until(async () => expect(await gateway.held()).toBe(0))
    expect(gateway.upstream.seen).toEqual([])
  })

  test('is told 408 at the end of requestTimeout, too', async () => {
    const gateway = await startBodyGateway({
      config: () => ({ limits: { headersTimeout: '300ms', requestTimeout: '300ms' } }),
    })
    const head = postHead(await token(gateway), chunked)
    const { socket, received } = await openClient(gateway, `${head}c\r\n{"amount":1,\r\n`)
    await until(async () => expect(await gateway.held()).toBe(12))
    await once(socket, 'close')
    expect(received()).toMatch(/^HTTP\/1\.1 408 .*"code":"request_timeout"/s)
    await until(async () => expect(await gateway.held()).toBe(0))
    expect(gateway.upstream.seen).toEqual([])
  })

  test('and leaves is forgotten at once', async () => {
    const gateway = await startBodyGateway()
    const head = postHead(await token(gateway), 'Content-Length: 5000')
    const { socket } = await openClient(gateway, `${head}{"amount":1,`)
    await until(async () => expect(await gateway.held()).toBe(12))
    socket.destroy()
    await until(async () => expect(await gateway.held()).toBe(0))
    expect(gateway.upstream.seen).toEqual([])
  })

  test('over HTTP/2 is told 408, or forgotten when it leaves', async () => {
    const files = createTlsFiles()
    onTestFinished(() => files.remove())
    const gateway = await startBodyGateway({
      route: { policyBody: { type: 'json', maxBytes: 500 } },
      config: ({ url }) => ({
        listen: { port: 0, tls: { certificates: [files.pair('localhost')] } },
        upstreams: { api: { url, idleTimeout: '200ms' } },
      }),
    })
    const { session, close } = await openHttp2(gateway.url, { ca: files.authority.certificate })
    onTestFinished(close)
    const head = { ':method': 'POST', ':path': '/payments', authorization: `Bearer ${await token(gateway)}`, ...json }
    const open = () => {
      const stream = session.request({ ':authority': 'localhost', ...head }, { endStream: false })
      stream.on('error', () => {})
      stream.write('{"amount":1,')
      return stream
    }
    const standing = open()
    const [answer] = await once(standing, 'response')
    expect(answer[':status']).toBe(408)
    const leaving = open()
    await until(async () => expect(await gateway.held()).toBe(12))
    leaving.close(8)
    await until(async () => expect(await gateway.held()).toBe(0))
    expect(gateway.upstream.seen).toEqual([])
  })
})

describe('the memory of all bodies', () => {
  test('is bounded: what is too much is told to come back, and others are served again when it is given back', async () => {
    const gateway = await startBodyGateway({
      route: { policyBody: { type: 'json', maxBytes: '128kB' } },
      config: () => ({ limits: { policyBodies: '256kB' } }),
    })
    const head = postHead(await token(gateway), 'Content-Length: 100000')
    const clients = await Promise.all(
      Array.from({ length: 20 }, () => openClient(gateway, `${head}"${'a'.repeat(90_000)}`)),
    )
    const refused = () => clients.filter(({ received }) => received().startsWith('HTTP/1.1 503 '))
    await until(() => expect(refused().length).toBeGreaterThanOrEqual(18))
    expect(await gateway.held()).toBeLessThanOrEqual(262_144)
    expect(refused()[0]!.received()).toMatch(/retry-after: 1\r\n/i)
    const { text } = await gateway.metrics.render()
    expect(text).toMatch(/surrogate_gateway_held_bodies_refused_total \d\d/)

    for (const { socket } of clients) socket.destroy()
    await until(async () => expect(await gateway.held()).toBe(0))
    const answer = await gateway.call('/payments', { method: 'POST', body: '{"amount":1}', headers: json })
    expect(answer.status).toBe(200)
    await until(async () => expect(await gateway.held()).toBe(0))
  })

  test('holds a body until its answer is out, and not longer', async () => {
    const gateway = await startBodyGateway()
    let answer = () => {}
    gateway.upstream.answer = (_request, response) => {
      answer = () => void response.end('ok')
    }
    const asked = gateway.call('/payments', { method: 'POST', body: '{"amount":1}', headers: json })
    await until(() => expect(gateway.upstream.seen).toHaveLength(1))
    expect(await gateway.held()).toBe(12)
    answer()
    expect((await asked).status).toBe(200)
    await until(async () => expect(await gateway.held()).toBe(0))
  })

  test('a body in a thousand pieces takes no more than twice its bytes', async () => {
    const gateway = await startBodyGateway()
    const { socket } = await openClient(gateway, postHead(await token(gateway), chunked))
    let sent = 0
    for (const piece of ['{"x":"', ...Array<string>(1_000).fill('a')]) {
      socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`)
      sent += piece.length
    }
    await until(async () => expect(await gateway.held()).toBeGreaterThanOrEqual(sent))
    expect(await gateway.held()).toBeLessThanOrEqual(2 * sent)
    socket.destroy()
  })

  test('is not given to what is longer than the route says, however it comes', async () => {
    const gateway = await startBodyGateway({ route: { policyBody: { type: 'json', maxBytes: 100 } } })
    const head = postHead(await token(gateway), chunked)
    const { received } = await openClient(gateway, `${head}80\r\n"${'a'.repeat(127)}\r\n`)
    await until(() => expect(received()).toMatch(/^HTTP\/1\.1 413 .*connection: close/is))
    await until(async () => expect(await gateway.held()).toBe(0))
  })
})

test('a connection goes on after a body that was refused', async () => {
  const gateway = await startBodyGateway()
  const bearer = await token(gateway)
  const bad = '{"amount":1,"amount":2}'
  const good = '{"amount":1}'
  const received = await sendRaw(
    gateway.port,
    postHead(bearer, `Content-Length: ${bad.length}`) +
      bad +
      postHead(bearer, `Content-Length: ${good.length}`, 'Connection: close') +
      good,
  )
  expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400', 'HTTP/1.1 200'])
  expect(gateway.upstream.seen.map(({ body }) => body)).toEqual([good])
})

// How much of the body has come when it is refused is a matter of time; the lengths make both happen.
test('nothing is served behind an answer that closes the connection', async () => {
  const gateway = await startBodyGateway()
  const bearer = await token(gateway)
  const good = '{"amount":1}'
  let closed = 0
  for (const length of [66_000, 70_000, 100_000, 131_000, 140_000, 200_000, 262_000, 300_000]) {
    const { seen } = gateway.upstream
    const before = seen.length
    const long = `"${'a'.repeat(length)}"`
    const received = await sendRaw(
      gateway.port,
      postHead(bearer, `Content-Length: ${long.length}`) +
        long +
        postHead(bearer, `Content-Length: ${good.length}`, 'Connection: close') +
        good,
    )
    const [head] = received.split('\r\n\r\n', 1)
    expect(head).toMatch(/^HTTP\/1\.1 413 /)
    expect((await gateway.call('/payments', { method: 'POST', body: '{"amount":2}', headers: json })).status).toBe(200)
    const isClosed = /^connection: close$/im.test(head!)
    if (isClosed) closed++
    expect(
      seen.slice(before).map(({ body }) => body),
      `${length}`,
    ).toEqual(isClosed ? ['{"amount":2}'] : [good, '{"amount":2}'])
  }
  expect(closed).toBeGreaterThan(0)
})
