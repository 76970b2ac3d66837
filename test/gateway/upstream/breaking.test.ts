import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startRawTarget, wellAnswer } from '../../support/raw-targets.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const rawTarget = async (behave: Parameters<typeof startRawTarget>[0]) => {
  const target = await startRawTarget(behave)
  cleanup.push(() => target.close())
  return target
}

const figure = async ({ metrics }: TestGateway, pattern: RegExp): Promise<number> =>
  [...(await metrics.render()).text.matchAll(pattern)].reduce((sum, [, value]) => sum + Number(value), 0)

/** In turn, so that the first request goes to the first target. Every test ends with no slot and no target in use. */
const gatewayTo = async (targets: { url: string }[], upstream: Record<string, unknown> = {}, route: object = {}) => {
  const gateway = await startTestGateway({
    config: () => ({
      upstreams: {
        api: { targets: targets.map(({ url }) => ({ url })), balance: 'round-robin', slowStart: '0s', ...upstream },
      },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api', ...route }],
    }),
  })
  cleanup.push(async () => {
    await until(async () => {
      expect(await figure(gateway, /gateway_upstream_running\{.*\} (\d+)/g)).toBe(0)
      expect(await figure(gateway, /gateway_target_running\{.*\} (\d+)/g)).toBe(0)
    })
    await gateway.close()
  })
  return gateway
}

const failedOf = (gateway: TestGateway) => figure(gateway, /gateway_target_requests_total\{.*outcome="failed"\} (\d+)/g)

/** Status and body; `broken`: the answer ended early. */
const get = async (gateway: TestGateway, init: RequestInit = {}): Promise<[number, string]> => {
  const response = await fetch(gateway.url, init)
  return [response.status, await response.text().catch(() => 'broken')]
}

const ending = (text: string) => (socket: Socket) => void socket.end(text)

describe('an upstream that closes its half of the connection', () => {
  test.each([
    ['before an answer', '', [502], 1],
    ['in the middle of the head', 'HTTP/1.1 200 OK\r\ncontent-le', [502], 1],
    ['after the head, with a length', 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n', [200, 'broken'], 0],
    ['in the middle of a body with a length', 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nwe', [200, 'broken'], 0],
    ['in the middle of a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nwe', [200, 'broken'], 0],
    ['before the last chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nwell\r\n', [200, 'broken'], 0],
    ['at the end of a body without a length', 'HTTP/1.1 200 OK\r\n\r\nwell', [200, 'well'], 0],
    ['after the head, without a length', 'HTTP/1.1 200 OK\r\n\r\n', [200, ''], 0],
    ['after an interim answer', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n', [502], 1],
    ['after its answer', wellAnswer, [200, 'well'], 0],
  ])('%s', async (_, text, expected, failed) => {
    const target = await rawTarget(ending(text))
    const gateway = await gatewayTo([target])
    for (let count = 1; count <= 3; count++) {
      expect(await get(gateway)).toEqual(expect.objectContaining(expected))
      expect(target.heads).toHaveLength(count)
    }
    await until(async () => expect(await failedOf(gateway)).toBe(3 * failed))
    await until(() => expect(target.sockets.size).toBe(0))
  })
})

describe('an upstream that answers before the body has come', () => {
  const sendPart = async (gateway: TestGateway) => {
    const outgoing = httpRequest(gateway.url, { method: 'POST', headers: { 'content-length': '1000000' } })
    outgoing.on('error', () => {})
    outgoing.write(Buffer.alloc(100_000))
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    let body = ''
    for await (const chunk of response) body += chunk
    outgoing.destroy()
    return [response.statusCode, body]
  }
  const tooLarge = 'HTTP/1.1 413 X\r\ncontent-length: 4\r\n\r\nmuch'

  test.each([
    ['and goes on', (socket: Socket) => void socket.write(tooLarge)],
    ['and closes', ending(tooLarge)],
    [
      'and resets once it was read',
      (socket: Socket) => void socket.write(tooLarge, () => setImmediate(() => socket.destroy())),
    ],
  ])('%s: the client gets the answer', async (_, behave) => {
    const target = await rawTarget(behave)
    const gateway = await gatewayTo([target], { retries: {}, ejection: { consecutiveFailures: 1 } })
    expect(await sendPart(gateway)).toEqual([413, 'much'])
    expect(target.heads).toHaveLength(1)
    expect(await failedOf(gateway)).toBe(0)
  })
})

test('interim answers without end are no answer', async () => {
  const flooding = await rawTarget((socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(100)));
    }
    socket.on('drain', more)
    more()
  })
  const gateway = await gatewayTo([flooding], { headersTimeout: '300ms' })
  expect(await get(gateway)).toEqual([504, expect.any(String)])
  expect(flooding.heads).toHaveLength(1)
  await until(() => expect(flooding.sockets.size).toBe(0))
})

test('an upstream that takes requests and never answers is ejected; each of its GETs goes elsewhere once', async () => {
  const [silent, one, other] = [
    await rawTarget(() => {}),
    await rawTarget((socket) => void socket.write(wellAnswer)),
    await rawTarget((socket) => void socket.write(wellAnswer)),
  ]
  const gateway = await gatewayTo([silent, one, other], {
    headersTimeout: '200ms',
    retries: { attempts: 5 },
    ejection: { consecutiveFailures: 2, for: '60s' },
  })
  for (let count = 0; count < 12; count++) expect(await get(gateway)).toEqual([200, 'well'])
  expect(silent.heads).toHaveLength(2)
  expect(one.heads.length + other.heads.length).toBe(12)
  expect(await figure(gateway, /target_ejections_total\{.*\} (\d+)/g)).toBe(1)
})
