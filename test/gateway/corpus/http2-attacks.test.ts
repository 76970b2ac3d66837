import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { TestGateway } from '../../support/gateway.ts'
import {
  errorCodes,
  type Field,
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
import { openHttp2 } from '../../support/tls-listener.ts'
import { settled, until } from '../../support/until.ts'
import { startCorpusGateway } from './gateway.ts'

/**
 * One connection of HTTP/2 that wants to be expensive. Whatever it does, a client on another connection is answered
 * meanwhile, and everything that it held comes back.
 */

let gateway: TestGateway
let standard: TestGateway
let impatient: TestGateway
beforeAll(async () => {
  standard = await startCorpusGateway({ tls: true })
  const limits = { keepAliveTimeout: '1s', headersTimeout: '300ms', requestTimeout: '400ms' }
  impatient = await startCorpusGateway({ tls: true, idleTimeout: '400ms', limits })
})
afterAll(async () => {
  await standard.close()
  await impatient.close()
})

const cleanup: (() => unknown)[] = []
beforeEach(() => {
  gateway = standard
})
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
  gateway.upstream.seen.length = 0
  gateway.upstream.answer = (_request, response) => void response.end()
})

const attacker = async (options: Omit<Http2FramesOptions, 'port'> = {}): Promise<Http2Frames> => {
  const client = await openHttp2Frames({ port: gateway.port, ...options })
  cleanup.push(() => client.close())
  return client
}

const figure = async (name: string): Promise<number> => {
  const { text } = await gateway.metrics.render()
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}
const running = () => figure('surrogate_gateway_upstream_running')
const connections = () => figure('surrogate_gateway_http2_connections')

/** Asks again and again on a connection of its own, until the attack is over. Every answer is wanted. */
const goodClientDuring = async (attack: () => Promise<unknown>) => {
  const good = await openHttp2(`https://127.0.0.1:${gateway.port}`, { rejectUnauthorized: false })
  let over = false
  const attacked = attack().finally(() => {
    over = true
  })
  const statuses: number[] = []
  do statuses.push((await good.send({ ':path': '/public/good' })).status)
  while (!over || statuses.length < 5)
  good.close()
  await attacked
  expect(new Set(statuses)).toEqual(new Set([200]))
}

/** What is asked on `/hold` waits upstream, until this is called. */
const holdAnswers = () => {
  const held: ServerResponse[] = []
  gateway.upstream.answer = (_request, response, { url }) => {
    if (url.includes('/hold')) held.push(response)
    else response.end()
  }
  return () => {
    for (const response of held.splice(0)) response.end()
  }
}
const asked = () => gateway.upstream.seen.filter(({ url }) => url.includes('/hold')).length

const hold = hpack.block(requestFields('/public/hold'))
/** Many rounds, with a breath between them for whoever shares the thread. */
const rounds = async (client: Http2Frames, count: number, round: (index: number) => Buffer[]) => {
  for (let index = 0; index < count && !client.closed; index++) {
    client.send(...round(index))
    if (index % 20 === 19) await new Promise((resolve) => setImmediate(resolve))
  }
}
const ended = (client: Http2Frames) => until(() => expect(client.closed).toBe(true))

/** After an attack nothing of it is left. */
const expectNothingLeft = async () => {
  await until(async () => expect(await running()).toBe(0))
  await until(async () => expect(await connections()).toBe(0))
}

describe('requests that are taken back', () => {
  test('by the client, at once (rapid reset, CVE-2023-44487): the connection ends', async () => {
    holdAnswers()
    const client = await attacker()
    await goodClientDuring(async () => {
      await rounds(client, 5_000, () => {
        const stream = client.newStream()
        return [frames.headers(stream, hold), frames.rstStream(stream)]
      })
      await ended(client)
    })
    expect(asked()).toBeLessThan(500)
    await expectNothingLeft()
  })

  test('by the client, when they are upstream: the connection ends', async () => {
    holdAnswers()
    const client = await attacker()
    await goodClientDuring(async () => {
      for (let batch = 0; batch < 50 && !client.closed; batch++) {
        const before = asked()
        const streams = Array.from({ length: 50 }, () => client.newStream())
        client.send(...streams.map((stream) => frames.headers(stream, hold)))
        await until(() => expect(client.closed || asked() >= before + 50).toBe(true))
        client.send(...streams.map((stream) => frames.rstStream(stream)))
      }
      await ended(client)
    })
    expect(client.goaway).toBe(errorCodes.enhanceYourCalm)
    expect(asked()).toBeLessThan(500)
    await expectNothingLeft()
  })

  test.each<[string, (stream: number) => Buffer[]]>([
    ['a window update of nothing', (stream) => [frames.windowUpdate(stream, 0)]],
    ['a window beyond its size', (stream) => [frames.windowUpdate(stream, 0x7fffffff)]],
    ['data behind the end', (stream) => [frames.data(stream, 'x')]],
    ['fields behind the end', (stream) => [frames.headers(stream, hold)]],
    ['a stream that depends on itself', (stream) => [frames.priority(stream, stream)]],
    ['a priority of four bytes', (stream) => [frame(frameTypes.priority, 0, stream, Buffer.alloc(4))]],
  ])('by the gateway, for %s (MadeYouReset, CVE-2025-8671): bounded', async (_, provoke) => {
    const release = holdAnswers()
    const client = await attacker()
    await goodClientDuring(async () => {
      await rounds(client, 2_000, () => {
        const stream = client.newStream()
        return [frames.headers(stream, hold), ...provoke(stream)]
      })
      await settled(asked)
    })
    // At most what may be open at the same time, and what may be taken back.
    expect(asked()).toBeLessThan(500)
    release()
    await client.close()
    await expectNothingLeft()
  })

  test('more requests at the same time than a connection may have', async () => {
    const release = holdAnswers()
    const client = await attacker()
    await goodClientDuring(async () => {
      await rounds(client, 2_000, () => [frames.headers(client.newStream(), hold)])
      await settled(asked)
    })
    expect(asked()).toBeLessThanOrEqual(100)
    release()
    await client.close()
    await expectNothingLeft()
  })
})

describe('header fields without end', () => {
  const first = requestFields('/public/hold')
  const sixteenKilobytes = hpack.literal('x-large', 'x'.repeat(16_000))

  test.each<[string, Buffer]>([
    ['that fill memory', sixteenKilobytes],
    ['that are empty', Buffer.alloc(0)],
    ['of one field each', hpack.literal('a', 'b')],
  ])('CONTINUATION frames %s (CVE-2024-27316): the connection ends', async (_, block) => {
    const client = await attacker()
    await goodClientDuring(async () => {
      client.send(frames.headers(1, hpack.block(first), { endHeaders: false }))
      await rounds(client, 3_000, () => [frames.continuation(1, block)])
      await ended(client)
    })
    expect(asked()).toBe(0)
    expect(client.soFar(1).status).toBeUndefined()
    await expectNothingLeft()
  })

  test('a head that never ends holds its connection no longer than an idle one', async () => {
    gateway = impatient
    const client = await attacker()
    client.send(frames.headers(1, hpack.block(first), { endHeaders: false }))
    await ended(client)
    await expectNothingLeft()
  })

  test('references to one large field (HPACK bomb, CVE-2016-6581)', async () => {
    const client = await attacker()
    await goodClientDuring(async () => {
      for (let index = 0; index < 50 && !client.closed; index++) {
        const stream = client.newStream()
        const bomb = Array.from({ length: 12_000 }, () => hpack.indexed(62))
        const block = Buffer.concat([hpack.block(first), hpack.remembered('x-a', 'x'.repeat(3_500)), ...bomb])
        client.send(frames.headers(stream, block))
        const { status, reset } = await client.outcome(stream)
        expect(status === 431 || reset !== undefined).toBe(true)
      }
    })
    expect(asked()).toBe(0)
    await client.close()
    await expectNothingLeft()
  })

  test.each<[string, Field]>([
    ['crumbs of cookies', ['cookie', 'a=b']],
    ['crumbs of nothing', ['cookie', '']],
    ['fields', ['x-a', '']],
  ])('thousands of %s', async (_, field) => {
    const client = await attacker()
    await goodClientDuring(async () => {
      for (let index = 0; index < 20 && !client.closed; index++) {
        const stream = client.newStream()
        client.send(frames.headers(stream, hpack.block([...first, ...Array.from({ length: 1_500 }, () => field)])))
        const { status, reset } = await client.outcome(stream)
        expect(status === 431 || reset !== undefined).toBe(true)
      }
    })
    expect(asked()).toBe(0)
    await client.close()
    await expectNothingLeft()
  })

  test('crumbs of cookies are one field, which may be as large as fields may be', async () => {
    const client = await attacker()
    const crumbs = (size: number) => Array.from({ length: 60 }, (): Field => ['cookie', `a=${'x'.repeat(size)}`])
    const path = requestFields('/public/x')
    expect((await client.outcome(client.request([...path, ...crumbs(10)]))).status).toBe(200)
    expect((await client.outcome(client.request([...path, ...crumbs(150)]))).status).toBe(431)
  })
})

describe('clients that do not read', () => {
  const piece = Buffer.alloc(200_000, 'x')
  /** Large answers; how much of them the gateway has taken. */
  const answerMuch = () => {
    let taken = 0
    gateway.upstream.answer = (_request, response, { url }) => {
      if (!url.includes('/hold')) return void response.end()
      let left = 50
      const write = () => {
        while (left > 0 && !response.destroyed) {
          left--
          taken += piece.length
          if (!response.write(piece)) return void response.once('drain', write)
        }
        response.end()
      }
      write()
    }
    return () => taken
  }

  test.each<[string, Omit<Http2FramesOptions, 'port'>]>([
    ['a window of nothing', { settings: [[settingIds.initialWindowSize, 0]] }],
    ['a window of one byte', { settings: [[settingIds.initialWindowSize, 1]] }],
    ['a window that is never given back', { readsOn: false }],
  ])('%s on a hundred streams: what waits is bounded, and slots come back', async (_, options) => {
    gateway = impatient
    const taken = answerMuch()
    const client = await attacker(options)
    await goodClientDuring(async () => {
      client.send(...Array.from({ length: 100 }, () => frames.headers(client.newStream(), hold)))
      await until(() => expect(asked()).toBe(100))
      await settled(taken)
    })
    // Of 1 GB: what upstream, gateway and kernel hold for each of a hundred.
    expect(taken()).toBeLessThan(600_000_000)
    // The client is still there.
    await until(async () => expect(await running()).toBe(0))
    await client.close()
    await expectNothingLeft()
  })

  test('a window that opens byte by byte loses its slot too', async () => {
    gateway = impatient
    answerMuch()
    const client = await attacker({ settings: [[settingIds.initialWindowSize, 0]] })
    const stream = client.newStream()
    client.send(frames.headers(stream, hold))
    const drip = setInterval(() => client.send(frames.windowUpdate(stream, 1)), 50)
    cleanup.push(() => clearInterval(drip))
    await until(async () => expect(await running()).toBe(1))
    await until(async () => expect(await running()).toBe(0))
  })

  test('a socket that is not read: SETTINGS and PING that want answers', async () => {
    const client = await attacker()
    client.pause()
    await goodClientDuring(() =>
      rounds(client, 3_000, () => [frames.ping(), frames.settings([settingIds.initialWindowSize, 100])]),
    )
    await client.close()
    await expectNothingLeft()
  })

  test('a socket that is not read: requests and requests', async () => {
    const client = await attacker()
    client.pause()
    await goodClientDuring(() =>
      rounds(client, 5_000, () => [frames.headers(client.newStream(), hpack.block(requestFields('/public/x')))]),
    )
    await client.close()
    await expectNothingLeft()
  })
})

describe('clients that do not send', () => {
  test('a hundred bodies that never come: 408', async () => {
    gateway = impatient
    const client = await attacker()
    const post = requestFields('/public/hold', { method: 'POST' })
    const streams: number[] = []
    await goodClientDuring(async () => {
      for (let count = 0; count < 100; count++) {
        streams.push(client.request([...post, ['content-length', '100000']], { body: 'abc', end: false }))
      }
      const outcomes = await Promise.all(streams.map(client.outcome))
      expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([408]))
    })
    await client.close()
    await expectNothingLeft()
  })

  test('a body whose end does not come loses its slot', async () => {
    gateway = impatient
    const client = await attacker()
    client.request(requestFields('/public/hold', { method: 'POST' }), { body: 'abc', end: false })
    await until(async () => expect(await running()).toBe(1))
    await until(async () => expect(await running()).toBe(0))
  })

  test('data that nobody reads is not asked for: the window stays shut', async () => {
    const release = holdAnswers()
    const client = await attacker()
    // Refused without a look at its body.
    const stream = client.request(requestFields('/admin/x', { method: 'POST' }), { end: false })
    expect((await client.outcome(stream)).status).toBe(401)
    release()
    await client.close()
    await expectNothingLeft()
  })
})

describe('frames that do nothing', () => {
  let malformed = () => 1
  test.each<[string, () => Buffer[]]>([
    ['SETTINGS', () => [frames.settings([settingIds.initialWindowSize, 65_535])]],
    ['empty SETTINGS', () => [frames.settings()]],
    ['PING', () => [frames.ping()]],
    ['PRIORITY', () => [frames.priority(1, 3)]],
    ['window updates of the connection', () => [frames.windowUpdate(0, 1)]],
    ['requests without a path', () => [frames.headers(malformed(), hpack.block([[':method', 'GET']]))]],
    ['frames of a type that nobody knows', () => [frame(0xee, 0, 0, Buffer.alloc(100))]],
  ])('%s without end', async (_, round) => {
    const client = await attacker()
    malformed = () => client.newStream()
    await goodClientDuring(() => rounds(client, 3_000, round))
    await client.close()
    await expectNothingLeft()
  })

  test.each<[string, (stream: number) => Buffer]>([
    ['empty DATA frames (CVE-2019-9518)', (stream) => frames.data(stream, '', { end: false })],
    ['DATA frames of padding', (stream) => frame(frameTypes.data, 0x8, stream, Buffer.from([3, 0, 0, 0]))],
  ])('%s: the connection ends', async (_, empty) => {
    const client = await attacker()
    const stream = client.request(requestFields('/public/hold', { method: 'POST' }), { end: false })
    await goodClientDuring(async () => {
      await rounds(client, 3_000, () => [empty(stream)])
      await client.close()
    })
    await expectNothingLeft()
  })
})
