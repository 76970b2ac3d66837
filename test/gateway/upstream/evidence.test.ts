import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { outcomeOf } from '../../../gateway/upstream/attempt-outcome.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startRawTarget, wellAnswer } from '../../support/raw-targets.ts'
import { until } from '../../support/until.ts'

/** What clients may cause must not make a target look ill: they could take all of them out. */

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const outcomesOf = async ({ metrics }: TestGateway): Promise<Record<string, number>> => {
  const found = (await metrics.render()).text.matchAll(/target_requests_total\{.*outcome="([a-z]+)"\} (\d+)/g)
  return Object.fromEntries([...found].map(([, outcome, count]) => [outcome, Number(count)]))
}

const gatewayTo = async (
  behave: Parameters<typeof startRawTarget>[0],
  { upstream = {}, route = {}, scheme = 'http' }: { upstream?: object; route?: object; scheme?: string } = {},
) => {
  const target = await startRawTarget(behave)
  cleanup.push(() => target.close())
  const gateway = await startTestGateway({
    config: () => ({
      upstreams: {
        api: { url: target.url.replace('http', scheme), ejection: { consecutiveFailures: 1 }, ...upstream },
      },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api', ...route }],
    }),
  })
  cleanup.push(() => gateway.close())
  return { gateway, target }
}

const silent = () => {}
const head = (fields: string) => `POST / HTTP/1.1\r\nHost: a\r\n${fields}\r\n\r\n`

/** A client that writes what it is told and nothing else. */
const openClient = async ({ port }: TestGateway, text: string) => {
  const socket = connect(port, '127.0.0.1')
  cleanup.push(() => socket.destroy())
  let received = ''
  socket.on('error', () => {}).on('data', (chunk) => (received += chunk.toString('latin1')))
  await once(socket, 'connect')
  socket.write(text)
  return { socket, received: () => received }
}

describe('no evidence against a target:', () => {
  test('a body that comes too slowly', async () => {
    const { gateway } = await gatewayTo(silent, { upstream: { idleTimeout: '200ms' } })
    const { received } = await openClient(gateway, `${head('Content-Length: 100000')}x`)
    await until(() => expect(received()).toMatch(/^HTTP\/1\.1 408 /))
    await until(async () => expect(await outcomesOf(gateway)).toEqual({ answered: 0, failed: 0, neither: 1 }))
  })

  test.each([
    ['a small body', 'Content-Length: 4', 'body'],
    ['a body that streams', 'Transfer-Encoding: chunked', '4\r\nbody\r\n0\r\n\r\n'],
  ])('the time of the route being up, where the client may have used it up with %s', async (_, fields, body) => {
    const { gateway, target } = await gatewayTo(silent, { route: { timeout: '600ms' } })
    const { socket, received } = await openClient(gateway, head(fields))
    socket.write(body)
    await until(() => expect(target.heads).toHaveLength(1))
    await until(() => expect(received()).toMatch(/^HTTP\/1\.1 504 /))
    await until(async () => expect(await outcomesOf(gateway)).toEqual({ answered: 0, failed: 0, neither: 1 }))
  })

  test.each([
    ['before the answer', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['in the middle of its body', `${head('Content-Length: 100000')}part`],
    ['in the middle of a chunk', `${head('Transfer-Encoding: chunked')}fff\r\npart`],
  ])('a client that leaves %s', async (_, text) => {
    const { gateway, target } = await gatewayTo(silent)
    for (let count = 1; count <= 3; count++) {
      const { socket } = await openClient(gateway, text)
      await until(() => expect(target.heads).toHaveLength(count))
      socket.resetAndDestroy()
    }
    await until(async () => expect(await outcomesOf(gateway)).toEqual({ answered: 0, failed: 0, neither: 3 }))
  })

  test('a body that turns out to be too long, or not to be one', async () => {
    const { gateway } = await gatewayTo(silent, { route: { bodySize: 1_000 } })
    const long = await openClient(gateway, `${head('Transfer-Encoding: chunked')}800\r\n${'x'.repeat(0x800)}\r\n`)
    await until(() => expect(long.received()).toMatch(/^HTTP\/1\.1 413 /))
    await openClient(gateway, `${head('Transfer-Encoding: chunked')}1\r\nx\r\nno size\r\n`)
    await until(async () => expect(await outcomesOf(gateway)).toEqual({ answered: 0, failed: 0, neither: 2 }))
  })

  test('a client that does not read its answer', async () => {
    const { gateway } = await gatewayTo(
      (socket) => void socket.write(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\n\r\n'), Buffer.alloc(20_000_000)])),
      { upstream: { idleTimeout: '200ms' } },
    )
    const { socket } = await openClient(gateway, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    socket.pause()
    await until(async () => expect(await outcomesOf(gateway)).toEqual({ answered: 0, failed: 0, neither: 1 }))
  })

  test.each([400, 408, 413, 429, 431, 500, 501])('status %d, which may be about the request', async (status) => {
    const { gateway } = await gatewayTo((socket) => void socket.write(wellAnswer.replace('200', String(status))))
    expect((await fetch(gateway.url)).status).toBe(status)
    await until(async () => expect(await outcomesOf(gateway)).toEqual({ answered: 1, failed: 0, neither: 0 }))
  })

  test.each(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL'])('%s: this machine can open nothing more', (code) => {
    const attempt = { answered: false, clientBroke: false, expired: false, alone: true }
    expect(outcomeOf(Object.assign(new Error(code), { code }), attempt)).toBe('neither')
    expect(outcomeOf(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }), attempt)).toBe('failed')
  })
})

test('evidence: no answer to a request without a body, for all the time of the route', async () => {
  const { gateway } = await gatewayTo(silent, { route: { timeout: '100ms' } })
  expect((await fetch(gateway.url)).status).toBe(504)
  await until(async () => expect(await outcomesOf(gateway)).toEqual({ answered: 0, failed: 1, neither: 0 }))
})

describe('while a connection is opened', () => {
  /** It accepts, and never speaks TLS. */
  const hanging = (route: object) =>
    gatewayTo(silent, { scheme: 'https', upstream: { connectTimeout: '20s', maxRequests: 1 }, route })

  test('the end of the time of the route gives the slot back', async () => {
    const { gateway, target } = await hanging({ timeout: '200ms' })
    for (let count = 1; count <= 3; count++) {
      expect((await fetch(gateway.url)).status).toBe(504)
      expect(target.sockets.size).toBe(count)
    }
  })

  test('clients that come and go open no more connections than there are slots', async () => {
    const { gateway, target } = await hanging({})
    const outgoing = httpRequest(gateway.url)
    outgoing.on('error', () => {}).end()
    await until(() => expect(target.sockets.size).toBe(1))
    outgoing.destroy()
    for (let count = 0; count < 20; count++) {
      const again = httpRequest(gateway.url, { agent: false }).end()
      const [response] = (await once(again, 'response')) as [IncomingMessage]
      response.resume()
      expect(response.statusCode).toBe(503)
    }
    expect(target.sockets.size).toBe(1)
  })
})
