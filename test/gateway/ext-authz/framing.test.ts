import { once } from 'node:events'
import { connect, constants, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2'
import { type AddressInfo, createConnection, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createGrpcServer } from '../../../gateway/ext-authz/grpc-server.ts'
import { checkOf, connectExtAuthz } from '../../support/ext-authz.ts'
import { startTestGateway } from '../../support/gateway.ts'

// gRPC over HTTP/2, as bytes: what a library would never send.

let gateway: Awaited<ReturnType<typeof startTestGateway>>
let message: Buffer
const path = '/envoy.service.auth.v3.Authorization/Check'

beforeAll(async () => {
  gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      extAuthz: { port: 0 },
      routes: [{ id: 'public', path: '/public/**', auth: 'none' }],
    }),
  })
  const envoy = connectExtAuthz(gateway.extAuthzPort)
  message = envoy.definition.requestSerialize(checkOf({ path: '/public/x' }))
  envoy.close()
})
afterAll(() => gateway.close())

/** With its prefix, in pieces of `size` bytes. */
const framed = (bytes: Buffer, { length = bytes.length, compressed = 0, size = Number.POSITIVE_INFINITY } = {}) => {
  const prefix = Buffer.from([compressed, 0, 0, 0, 0])
  prefix.writeUInt32BE(length, 1)
  const all = Buffer.concat([prefix, bytes])
  const pieces: Buffer[] = []
  for (let at = 0; at < all.length; at += size) pieces.push(all.subarray(at, at + size))
  return pieces
}

interface Answer {
  head: IncomingHttpHeaders
  /** The status of gRPC, wherever it stands. */
  status: string | string[] | undefined
  bytes: number
  code: number
}

/** One call on a connection of its own; `end: false` leaves the request open. */
const call = async (
  pieces: readonly Buffer[],
  { fields = {}, end = true, port = gateway.extAuthzPort }: CallOptions = {},
): Promise<Answer> => {
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    const stream = session.request({
      ...{ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
      ...fields,
    })
    const answer: Answer = { head: {}, status: undefined, bytes: 0, code: -1 }
    stream.on('response', (head) => {
      answer.head = head
      answer.status = head['grpc-status'] as string | undefined
    })
    stream.on('trailers', (trailers) => {
      answer.status = trailers['grpc-status']
    })
    stream.on('data', (chunk: Buffer) => {
      answer.bytes += chunk.length
    })
    stream.on('error', () => {})
    const closed = new Promise((resolve) => stream.once('close', resolve))
    for (const piece of pieces) await new Promise((resolve) => stream.write(piece, resolve))
    if (end) stream.end()
    await closed
    return { ...answer, code: stream.rstCode }
  } finally {
    session.destroy()
  }
}
interface CallOptions {
  fields?: OutgoingHttpHeaders
  end?: boolean
  port?: number
}

test('a check is answered, in one piece or byte for byte', async () => {
  for (const size of [Number.POSITIVE_INFINITY, 1, 7]) {
    const answer = await call(framed(message, { size }))
    expect(answer).toMatchObject({ status: '0', code: constants.NGHTTP2_NO_ERROR })
    expect(answer.head).toMatchObject({ ':status': 200, 'content-type': 'application/grpc' })
    expect(answer.bytes).toBeGreaterThan(5)
  }
})

describe('is an error of gRPC, with no answer', () => {
  const internal = '13'
  test.each<[string, () => readonly Buffer[], string, CallOptions?]>([
    ['nothing', () => [], internal],
    ['a part of the prefix', () => [Buffer.alloc(3)], internal],
    ['a message that is cut off', () => framed(message.subarray(1), { length: message.length }), internal],
    ['more bytes than the prefix says', () => framed(message, { length: message.length - 1 }), internal],
    ['two messages', () => [...framed(message), ...framed(message)], internal],
    ['a compressed message', () => framed(message, { compressed: 1 }), internal],
    ['bytes that are no message', () => framed(Buffer.alloc(40, 0xff)), internal],
    ['an encoding', () => framed(message), '12', { fields: { 'grpc-encoding': 'gzip' } }],
    ['another method', () => framed(message), '12', { fields: { ':path': '/envoy.service.auth.v3.Authorization/X' } }],
    ['a message that says it has 2 GB', () => framed(Buffer.alloc(0), { length: 2 ** 31 }), '8', { end: false }],
  ])('%s', async (_name, pieces, status, options) => {
    const answer = await call(pieces(), options)
    expect(answer).toMatchObject({ status, bytes: 0, code: constants.NGHTTP2_NO_ERROR })
    expect(answer.head[':status']).toBe(200)
  })
})

test('a message of nothing is a check that says nothing: a denial', async () => {
  const answer = await call(framed(Buffer.alloc(0)))
  expect(answer.status).toBe('0')
  expect(answer.bytes).toBeGreaterThan(5)
})

describe('nobody but Envoy fills the memory', () => {
  test('who is not trusted is denied before a message is read', async () => {
    const closed = await startTestGateway({
      config: () => ({ trustedProxies: ['192.0.2.1'], extAuthz: { port: 0 }, routes: [] }),
    })
    const half = framed(Buffer.alloc(100_000), { length: 2_000_000 })
    const answer = await call(half, { end: false, port: closed.extAuthzPort })
    expect(answer).toMatchObject({ status: '0', code: constants.NGHTTP2_NO_ERROR })
    expect(answer.bytes).toBeGreaterThan(5)
    expect((await call(framed(message), { port: closed.extAuthzPort })).bytes).toBe(answer.bytes)
    await closed.close()
  })

  test('a question about health is short', async () => {
    const fields = { ':path': '/grpc.health.v1.Health/Check' }
    expect(await call(framed(Buffer.alloc(0)), { fields })).toMatchObject({ status: '0' })
    const long = await call(framed(Buffer.alloc(0), { length: 10_000 }), { fields, end: false })
    expect(long).toMatchObject({ status: '8', bytes: 0 })
  })
})

test('what is not gRPC is refused by HTTP', async () => {
  for (const fields of [
    { 'content-type': 'application/json' },
    { 'content-type': 'application/grpc-web' },
    { ':method': 'GET' },
  ]) {
    expect((await call([], { fields })).head[':status']).toBe(415)
  }
})

describe('of a connection', () => {
  const settings = { maxConcurrentStreams: 1, maxSessionMemory: 1 }
  const serve = async (keepAlive: { interval: number; timeout: number }) => {
    const grpc = createGrpcServer([], { ...settings, keepAlive })
    const server = createServer((socket) => grpc.serve(socket))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return { server, port: (server.address() as AddressInfo).port }
  }

  test('the other side that says nothing is gone', async () => {
    const { server, port } = await serve({ interval: 20, timeout: 20 })
    const silent = createConnection(port, '127.0.0.1').resume()
    await once(silent, 'close')
    server.close()
  })

  test('the other side that answers stays', async () => {
    const { server, port } = await serve({ interval: 20, timeout: 10_000 })
    const session = connect(`http://127.0.0.1:${port}`)
    for (let asked = 0; asked < 3; asked++) await once(session, 'ping')
    expect(session.destroyed).toBe(false)
    session.destroy()
    server.close()
  })
})
