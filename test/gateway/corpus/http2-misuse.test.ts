import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { TestGateway } from '../../support/gateway.ts'
import {
  errorCodes,
  flags,
  frame,
  frames,
  frameTypes,
  type Http2Frames,
  type Http2FramesOptions,
  hpack,
  openHttp2Frames,
  requestFields,
  settingIds,
} from '../../support/http2-frames.ts'
import { until } from '../../support/until.ts'
import { startCorpusGateway } from './gateway.ts'

/** Frames that RFC 9113 and RFC 7541 do not allow: nothing of them goes upstream, and the gateway stands. */

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startCorpusGateway({ tls: true })
})
afterAll(() => gateway.close())
beforeEach(() => {
  gateway.upstream.seen.length = 0
})

let client: Http2Frames
const connect = async (options: Partial<Http2FramesOptions> = {}) => {
  client = await openHttp2Frames({ port: gateway.port, ...options })
}
afterEach(() => client.close())

const block = hpack.block(requestFields('/public/x'))
const post = hpack.block(requestFields('/public/x', { method: 'POST' }))
const empty = Buffer.alloc(0)

/** Another client is served. */
const expectStanding = async () => {
  const other = await openHttp2Frames({ port: gateway.port })
  expect(await other.outcome(other.request(requestFields('/public/good')))).toMatchObject({ status: 200 })
  await other.close()
}

test.each<[string, Buffer[]]>([
  ['a stream with an even number', [frames.headers(2, block)]],
  ['a request on the stream of the connection', [frames.headers(0, block)]],
  ['data on the stream of the connection', [frames.data(0, 'x')]],
  ['data on a stream that nobody opened', [frames.data(1, 'x')]],
  ['a reset of a stream that nobody opened', [frames.rstStream(1)]],
  ['a reset of the connection', [frames.rstStream(0)]],
  ['a window update of a stream that nobody opened', [frames.windowUpdate(1, 1)]],
  ['a window update of nothing', [frames.windowUpdate(0, 0)]],
  ['a window of the connection beyond its size', [frames.windowUpdate(0, 0x7fffffff)]],
  ['a window update of three bytes', [frame(frameTypes.windowUpdate, 0, 0, Buffer.alloc(3))]],
  ['a continuation of nothing', [frames.continuation(1, block, { endHeaders: true })]],
  ['a frame within a head', [frames.headers(1, block, { endHeaders: false }), frames.ping()]],
  [
    'the head of another stream within a head',
    [frames.headers(1, block, { endHeaders: false }), frames.headers(3, block)],
  ],
  [
    'the continuation of another stream',
    [frames.headers(1, block, { endHeaders: false }), frames.continuation(3, empty, { endHeaders: true })],
  ],
  ['a push by the client', [frame(frameTypes.pushPromise, flags.endHeaders, 1, Buffer.alloc(4))]],
  ['settings on a stream', [frame(frameTypes.settings, 0, 1, empty)]],
  ['settings of five bytes', [frame(frameTypes.settings, 0, 0, Buffer.alloc(5))]],
  ['an acknowledgement that says something', [frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(6))]],
  ['push that is neither on nor off', [frames.settings([settingIds.enablePush, 2])]],
  ['a window of streams beyond its size', [frames.settings([settingIds.initialWindowSize, 0x80000000])]],
  ['frames smaller than they may be', [frames.settings([5, 1])]],
  ['a ping of seven bytes', [frame(frameTypes.ping, 0, 0, Buffer.alloc(7))]],
  ['a ping on a stream', [frame(frameTypes.ping, 0, 1, Buffer.alloc(8))]],
  ['a goodbye on a stream', [frame(frameTypes.goaway, 0, 1, Buffer.alloc(8))]],
  ['a frame larger than it may be', [frame(frameTypes.headers, 0x5, 1, Buffer.alloc(20_000))]],
  ['more padding than there is', [frame(frameTypes.headers, 0xd, 1, Buffer.concat([Buffer.from([255]), block]))]],
  ['a field of the tables with number 0', [frames.headers(1, Buffer.from([0x80]))]],
  ['a field that no table has', [frames.headers(1, hpack.indexed(70))]],
  ['a number without end', [frames.headers(1, Buffer.from([0xff, ...Array.from({ length: 20 }, () => 0xff)]))]],
  ['a table larger than it may be', [frames.headers(1, Buffer.concat([hpack.tableSize(1_000_000), block]))]],
  ['a table that changes behind a field', [frames.headers(1, Buffer.concat([block, hpack.tableSize(0)]))]],
  ['a text longer than the head', [frames.headers(1, Buffer.from([0x00, 0x7f, 0x10, 0x61]))]],
  [
    'a code of Huffman that is none',
    [frames.headers(1, Buffer.from([0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x01, 0x61]))],
  ],
  ['HTTP/1.1', [Buffer.from('GET /public/x HTTP/1.1\r\nHost: api.test\r\n\r\n')]],
  ['the preface again', [Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')]],
])('%s ends the connection', async (_, sent) => {
  await connect()
  client.send(...sent)
  await until(() => expect(client.closed).toBe(true))
  expect(client.goaway).not.toBe(0)
  expect(gateway.upstream.seen).toEqual([])
  await expectStanding()
})

describe('numbers of streams', () => {
  test('that go down: the second request is never one', async () => {
    await connect()
    client.send(frames.headers(5, block))
    expect((await client.outcome(5)).status).toBe(200)
    client.send(frames.headers(3, block))
    await expectStanding()
    expect(client.soFar(3).status).toBeUndefined()
    expect(gateway.upstream.seen.filter(({ url }) => url.endsWith('/x'))).toHaveLength(1)
  })

  test('that were used: the second request is never one', async () => {
    await connect()
    client.send(frames.headers(1, block))
    expect((await client.outcome(1)).status).toBe(200)
    client.send(frames.headers(1, block))
    await expectStanding()
    expect(gateway.upstream.seen.filter(({ url }) => url.endsWith('/x'))).toHaveLength(1)
  })

  test('the last one there is', async () => {
    await connect()
    client.send(frames.headers(0x7fffffff, block))
    expect((await client.outcome(0x7fffffff)).status).toBe(200)
    await expectStanding()
  })
})

describe('bodies', () => {
  test('a stream that is reset within its body is no whole request upstream', async () => {
    await connect()
    client.send(frames.headers(1, post, { end: false }), frames.data(1, 'abc', { end: false }))
    client.send(frames.rstStream(1))
    await expectStanding()
    expect(gateway.upstream.seen.filter(({ body }) => body === 'abc')).toEqual([])
  })

  test('a connection that is lost within a body is no whole request upstream', async () => {
    await connect()
    client.send(frames.headers(1, post, { end: false }), frames.data(1, 'abc', { end: false }))
    await client.close()
    await expectStanding()
    expect(gateway.upstream.seen.filter(({ body }) => body === 'abc')).toEqual([])
  })

  test('padding is no part of them', async () => {
    await connect()
    const padded = Buffer.concat([Buffer.from([4]), Buffer.from('abcXXXX')])
    client.send(
      frames.headers(1, post, { end: false }),
      frame(frameTypes.data, flags.endStream | flags.padded, 1, padded),
    )
    expect((await client.outcome(1)).status).toBe(200)
    expect(gateway.upstream.seen).toMatchObject([{ body: 'abc' }])
  })

  test('more data than the window allows', async () => {
    // Takes connections, and reads nothing.
    const deaf = createServer({ pauseOnConnect: true })
    const sockets = new Set<Socket>()
    deaf.on('connection', (socket) => sockets.add(socket.on('error', () => {})))
    await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve))
    const before = await startCorpusGateway({
      tls: true,
      upstream: `http://127.0.0.1:${(deaf.address() as AddressInfo).port}`,
    })
    onTestFinished(async () => {
      for (const socket of sockets) socket.destroy()
      deaf.close()
      await before.close()
    })
    await connect({ port: before.port })
    client.send(frames.headers(1, post, { end: false }))
    await until(() => {
      client.send(...Array.from({ length: 100 }, () => frames.data(1, 'x'.repeat(16_000), { end: false })))
      expect(client.soFar(1).reset).toBe(errorCodes.flowControlError)
    })
    const other = await openHttp2Frames({ port: before.port })
    expect(await other.outcome(other.request(requestFields('/admin/x')))).toMatchObject({ status: 401 })
    await other.close()
  })

  test('trailers that do not end the stream are none', async () => {
    await connect()
    client.send(frames.headers(1, post, { end: false }), frames.data(1, 'abc', { end: false }))
    client.send(frames.headers(1, hpack.block([['x-a', 'b']]), { end: false }))
    expect((await client.outcome(1)).reset).toBeDefined()
    await expectStanding()
    expect(gateway.upstream.seen.filter(({ body }) => body === 'abc')).toEqual([])
  })
})

describe('on the plain port', () => {
  let plain: TestGateway
  beforeAll(async () => {
    plain = await startCorpusGateway({ tls: false })
  })
  afterAll(() => plain.close())

  test('HTTP/2 with prior knowledge is refused, and nothing behind it is read', async () => {
    await connect({ port: plain.port, clearText: true })
    client.request(requestFields('/public/x'))
    await until(() => expect(client.closed).toBe(true))
    expect(plain.upstream.seen).toEqual([])
  })
})
