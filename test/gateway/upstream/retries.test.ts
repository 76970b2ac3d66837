import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { freePort } from '../../support/free-port.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { openWebSocket, refusalOf, startWebSocketApi } from '../../support/websocket-api.ts'

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

/** A server that counts what begins to arrive, and does as `behave` says once a head is there. */
const startServer = async (behave: (socket: Socket, nth: number) => void) => {
  const heads: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    let received = ''
    let answered = 0
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const all = received.match(/(?:GET|HEAD|PUT|POST|DELETE|PATCH|OPTIONS) [\s\S]*?\r\n\r\n/g) ?? []
      for (const head of all.slice(answered)) {
        answered++
        heads.push(head)
        behave(socket, heads.length)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heads, sockets }
}

const answer = (status: number, body = 'x', ...fields: string[]) =>
  [`HTTP/1.1 ${status} X`, `content-length: ${body.length}`, ...fields, '', body].join('\r\n')
const ok = (socket: Socket) => void socket.write(answer(200, 'well'))
const saying =
  (status: number, ...fields: string[]) =>
  (socket: Socket) =>
    void socket.write(answer(status, 'failed', ...fields))
const resetting = (socket: Socket) => void socket.resetAndDestroy()
const closing = (socket: Socket) => void socket.end()

/** In turn, so that the first request of a test goes to the first target. */
const gatewayTo = async (
  targets: (string | { url: string; labels: Record<string, string> })[],
  upstream: Record<string, unknown> = {},
  route: Record<string, unknown> = {},
): Promise<TestGateway> => {
  const listed = targets.map((target) => (typeof target === 'string' ? { url: target } : target))
  const gateway = await startTestGateway({
    config: () => ({
      upstreams: { api: { targets: listed, balance: 'round-robin', retries: {}, slowStart: '0s', ...upstream } },
      routes: [{ id: 'all', path: '/**', auth: 'none', upstream: 'api', ...route }],
    }),
  })
  cleanup.push(async () => {
    await until(async () => expect(await runningOf(gateway)).toBe(0))
    await gateway.close()
  })
  return gateway
}

const runningOf = async ({ metrics }: TestGateway): Promise<number> => {
  const { text } = await metrics.render()
  return Number(/surrogate_gateway_upstream_running\{upstream="api"\} (\d+)/.exec(text)?.[1])
}

const retriesOf = async ({ metrics }: TestGateway): Promise<Record<string, number>> =>
  Object.fromEntries(
    [...(await metrics.render()).text.matchAll(/upstream_retries_total\{.*cause="([^"]+)"\} (\d+)/g)].map(
      ([, cause, count]) => [cause, Number(count)],
    ),
  )

const nobody = async () => `http://127.0.0.1:${await freePort()}`

describe('a target that cannot be connected to', () => {
  test.each(['GET', 'PUT', 'POST'])('%s goes to another one, since nothing was sent', async (method) => {
    const good = await startServer(ok)
    const gateway = await gatewayTo([await nobody(), good.url])
    const body = method === 'GET' ? {} : { body: 'small' }
    for (let count = 0; count < 4; count++) {
      const response = await fetch(gateway.url, { method, ...body })
      expect([response.status, await response.text()]).toEqual([200, 'well'])
    }
    expect(good.heads).toHaveLength(4)
    expect((await retriesOf(gateway)).connect).toBeGreaterThan(0)
  })

  test('a body that streams goes to another one whole: nothing of it was read before', async () => {
    let received = 0
    const good = await startServer(() => {})
    const gateway = await gatewayTo([await nobody(), good.url])
    const body = Buffer.alloc(300_000, 'x')
    const answering = setInterval(() => {
      for (const socket of good.sockets) if (socket.bytesRead > body.length) ok(socket)
      received = Math.max(...[...good.sockets].map((socket) => socket.bytesRead), 0)
    }, 10)
    cleanup.push(() => clearInterval(answering))
    for (let count = 0; count < 2; count++) {
      expect((await fetch(gateway.url, { method: 'POST', body, headers: { connection: 'close' } })).status).toBe(200)
    }
    expect(received).toBeGreaterThan(body.length)
    expect(good.heads).toHaveLength(2)
  })

  test('without retries it is 502', async () => {
    const good = await startServer(ok)
    const gateway = await gatewayTo([await nobody(), good.url], { retries: undefined })
    const statuses = [(await fetch(gateway.url)).status, (await fetch(gateway.url)).status]
    expect(statuses.sort()).toEqual([200, 502])
  })

  test('and with retries: false of the route too', async () => {
    const good = await startServer(ok)
    const gateway = await gatewayTo([await nobody(), good.url], {}, { retries: false })
    const statuses = [(await fetch(gateway.url)).status, (await fetch(gateway.url)).status]
    expect(statuses.sort()).toEqual([200, 502])
  })

  test('the only one is asked again, and then it is 502', async () => {
    const gateway = await gatewayTo([await nobody()], { retries: { attempts: 3 } })
    expect((await fetch(gateway.url)).status).toBe(502)
    expect(await retriesOf(gateway)).toEqual({ connect: 2 })
  })
})

describe('a connection that ends before an answer', () => {
  test.each([
    ['resets', resetting],
    ['closes', closing],
  ])('an upstream that %s gets a GET and a DELETE once, the other target too', async (_, behave) => {
    const [bad, good] = [await startServer(behave), await startServer(ok)]
    const gateway = await gatewayTo([bad.url, good.url])
    expect((await fetch(gateway.url)).status).toBe(200)
    expect((await fetch(gateway.url, { method: 'DELETE' })).status).toBe(200)
    expect((await fetch(gateway.url)).status).toBe(200)
    expect(bad.heads.length + good.heads.length).toBe(3 + Object.values(await retriesOf(gateway))[0]!)
    expect(good.heads).toHaveLength(3)
  })

  test('a kept connection that the upstream resets costs a GET nothing, and a POST is not repeated', async () => {
    // Every second request of a connection finds it dead.
    const behave = (socket: Socket, nth: number) => (nth % 2 === 1 ? ok(socket) : resetting(socket))
    const server = await startServer(behave)
    const gateway = await gatewayTo([server.url])
    expect((await fetch(gateway.url)).status).toBe(200)
    expect((await fetch(gateway.url)).status).toBe(200)
    expect(server.heads).toHaveLength(3)
    const posted = await fetch(gateway.url, { method: 'POST', body: 'once' })
    expect(posted.status).toBe(502)
    expect(server.heads.filter((head) => head.startsWith('POST'))).toHaveLength(1)
    expect(await retriesOf(gateway)).toEqual({ 'refused-stream': 1 })
  })

  test.each([
    ['POST with a small body', 'POST', 'small'],
    ['PATCH with a small body', 'PATCH', 'small'],
    ['POST without a body', 'POST', undefined],
    ['PUT with a body that streams', 'PUT', 'x'.repeat(100_000)],
  ])('%s is never sent twice once it was sent', async (_, method, body) => {
    const [one, other] = [await startServer(resetting), await startServer(resetting)]
    const gateway = await gatewayTo([one.url, other.url], { retries: { attempts: 5 } })
    const response = await fetch(gateway.url, { method, ...(body !== undefined && { body }) })
    expect(response.status).toBe(502)
    expect(one.heads.length + other.heads.length).toBe(1)
  })

  test('within an answer: it is broken off, and nothing is repeated', async () => {
    const breaking = (socket: Socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf', () => socket.resetAndDestroy())
    const [one, other] = [await startServer(breaking), await startServer(breaking)]
    const gateway = await gatewayTo([one.url, other.url])
    await expect(fetch(gateway.url).then((response) => response.text())).rejects.toThrow()
    expect(one.heads.length + other.heads.length).toBe(1)
  })

  test('a process that dies with requests costs the POST only', async () => {
    const { child, url } = await startProcess('setTimeout(() => {}, 1e6)')
    const good = await startServer(ok)
    const gateway = await gatewayTo([url, good.url])
    const both = ['GET', 'POST'].flatMap((method) => [send(gateway, method), send(gateway, method)])
    // Of four requests two go to each.
    await until(() => expect(good.heads).toHaveLength(2))
    await until(async () => expect(await runningOf(gateway)).toBe(2))
    child.kill('SIGKILL')
    const statuses = await Promise.all(both)
    expect(good.heads.filter((head) => head.startsWith('POST')).length).toBeLessThanOrEqual(2)
    expect(statuses.slice(0, 2)).toEqual([200, 200])
    const lost = statuses.filter((status) => status === 502).length
    const retried = (await retriesOf(gateway))['refused-stream'] ?? 0
    expect(lost + retried).toBe(2)
  })
})

const send = async ({ url }: TestGateway, method: string) => (await fetch(url, { method })).status

/** A server of its own process that writes its port, and then does `behave` with every request. */
const startProcess = async (behave: string): Promise<{ child: ChildProcess; url: string }> => {
  const program = `require('http').createServer((request, response) => { ${behave} })
    .listen(0, '127.0.0.1', function () { console.log(this.address().port) })`
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  cleanup.push(() => child.kill('SIGKILL'))
  const [port] = (await once(child.stdout!, 'data')) as [Buffer]
  return { child, url: `http://127.0.0.1:${Number(port)}` }
}

describe('an answer that may be replaced by that of another target', () => {
  test.each([502, 503, 504])('%d', async (status) => {
    const [bad, good] = [await startServer(saying(status)), await startServer(ok)]
    const gateway = await gatewayTo([bad.url, good.url])
    for (let count = 0; count < 4; count++) expect((await fetch(gateway.url)).status).toBe(200)
    const posted = await Promise.all([0, 1].map(() => fetch(gateway.url, { method: 'POST', body: 'x' })))
    expect(posted.map((response) => response.status).sort()).toEqual([200, status])
  })

  test('one that never ends is dropped at once', async () => {
    const endless = (socket: Socket) => void socket.write('HTTP/1.1 503 X\r\ncontent-length: 1000000\r\n\r\nbegin')
    const [bad, good] = [await startServer(endless), await startServer(ok)]
    const gateway = await gatewayTo([bad.url, good.url])
    expect(await Promise.all([send(gateway, 'GET'), send(gateway, 'GET')])).toEqual([200, 200])
    await until(() => expect([...bad.sockets].every((socket) => socket.destroyed || socket.readableEnded)).toBe(true))
  })

  test('the last one goes to the client, whole', async () => {
    const [one, other] = [await startServer(saying(503)), await startServer(saying(503))]
    const gateway = await gatewayTo([one.url, other.url])
    const response = await fetch(gateway.url)
    expect([response.status, await response.text()]).toEqual([503, 'failed'])
    expect(one.heads.length + other.heads.length).toBe(2)
  })

  test('Retry-After: the same target is not asked again before its time, another one is', async () => {
    const bad = await startServer(saying(503, 'retry-after: 5'))
    const alone = await gatewayTo([bad.url])
    const response = await fetch(alone.url)
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
    expect(bad.heads).toHaveLength(1)
    const good = await startServer(ok)
    const gateway = await gatewayTo([bad.url, good.url])
    expect([await send(gateway, 'GET'), await send(gateway, 'GET')]).toEqual([200, 200])
  })

  test('one that is not among `on` is passed on', async () => {
    const [bad, good] = [await startServer(saying(503)), await startServer(ok)]
    const gateway = await gatewayTo([bad.url, good.url], { retries: { on: ['connect', 502] } })
    expect([await send(gateway, 'GET'), await send(gateway, 'GET')].sort()).toEqual([200, 503])
  })

  test('none in time is like 504', async () => {
    const [silent, good] = [await startServer(() => {}), await startServer(ok)]
    const gateway = await gatewayTo([silent.url, good.url], { headersTimeout: '100ms' })
    expect([await send(gateway, 'GET'), await send(gateway, 'GET')]).toEqual([200, 200])
    expect(await retriesOf(gateway)).toEqual({ 504: 1 })
    expect([await send(gateway, 'POST'), await send(gateway, 'POST')].sort()).toEqual([200, 504])
  })
})

test('the budget holds under a storm: retries do not double the load', async () => {
  const [one, other] = [await startServer(saying(503)), await startServer(saying(503))]
  const gateway = await gatewayTo([one.url, other.url], { retries: { attempts: 10, budget: '20%' } })
  const requests = 300
  for (let sent = 0; sent < requests; sent += 30) {
    await Promise.all(Array.from({ length: 30 }, () => fetch(gateway.url).then((response) => response.text())))
  }
  const retried = one.heads.length + other.heads.length - requests
  expect(retried).toBeGreaterThanOrEqual(10)
  expect(retried).toBeLessThanOrEqual(requests * 0.2)
  expect((await gateway.metrics.render()).text).toMatch(/upstream_retries_refused_total\{upstream="api"\} [1-9]/)
})

test('a request keeps one slot through all of its attempts', async () => {
  const [bad, held] = [await startServer(saying(503)), await startServer(() => {})]
  const gateway = await gatewayTo([bad.url, held.url], { maxRequests: 1 })
  const outgoing = request(gateway.url)
  outgoing.on('error', () => {})
  outgoing.end()
  await until(() => expect(held.heads).toHaveLength(1))
  expect(await runningOf(gateway)).toBe(1)
  const refused = await fetch(gateway.url)
  expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([503, 'server.unavailable'])
  // Whoever leaves in between ends the attempt under way.
  outgoing.destroy()
  await until(() => expect([...held.sockets].every((socket) => socket.readableEnded || socket.destroyed)).toBe(true))
})

describe('WebSockets', () => {
  const live = { websocket: true }

  test('go to another target when there is no connection', async () => {
    const api = await startWebSocketApi()
    cleanup.push(() => api.close())
    const gateway = await gatewayTo([await nobody(), api.url], {}, live)
    for (let count = 0; count < 3; count++) {
      const { socket, ended } = await openWebSocket(`${gateway.url}/x`)
      socket.close()
      await ended
    }
    expect(api.handshakes).toHaveLength(3)
    expect((await retriesOf(gateway)).connect).toBeGreaterThan(0)
  })

  test('are asked for once when something was sent', async () => {
    const [one, other] = [await startServer(resetting), await startServer(resetting)]
    const gateway = await gatewayTo([one.url, other.url], {}, live)
    expect((await refusalOf(openWebSocket(`${gateway.url}/x`))).status).toBe(502)
    expect(one.heads.length + other.heads.length).toBe(1)
  })

  test('with maxWebSockets: 1 another attempt takes no second place', async () => {
    const gateway = await gatewayTo([await nobody(), await nobody()], { maxWebSockets: 1 }, live)
    expect((await refusalOf(openWebSocket(`${gateway.url}/x`))).status).toBe(502)
    expect(await retriesOf(gateway)).toEqual({ connect: 1 })
  })
})

describe('the time of a route', () => {
  const codeOf = async (response: Response) => [response.status, ((await response.json()) as { code: string }).code]

  test('ends a request whose answer has not begun with 504, and tells the upstream', async () => {
    const silent = await startServer(() => {})
    const gateway = await gatewayTo([silent.url], {}, { timeout: '1s' })
    expect(await codeOf(await fetch(gateway.url))).toEqual([504, 'upstream_timeout'])
    expect(silent.heads).toHaveLength(1)
    await until(() => expect([...silent.sockets].every((socket) => socket.readableEnded)).toBe(true))
  })

  test('breaks off an answer that has begun, though it moves', async () => {
    const slow = await startServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
      const timer = setInterval(() => socket.write('1\r\nx\r\n'), 10)
      socket.on('close', () => clearInterval(timer))
    })
    const gateway = await gatewayTo([slow.url], {}, { timeout: '300ms' })
    const response = await fetch(gateway.url)
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow()
  })

  test('counts all attempts', async () => {
    const [bad, silent] = [await startServer(saying(503)), await startServer(() => {})]
    const gateway = await gatewayTo([bad.url, silent.url], {}, { timeout: '200ms' })
    expect(await codeOf(await fetch(gateway.url))).toEqual([504, 'upstream_timeout'])
  })

  test('a client that is still sending is told that it was too slow', async () => {
    const held = await startServer(() => {})
    const gateway = await gatewayTo([held.url], {}, { timeout: '100ms' })
    const outgoing = request(gateway.url, { method: 'POST', headers: { 'content-length': '10' } })
    outgoing.on('error', () => {})
    outgoing.write('half')
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    response.resume()
    expect(response.statusCode).toBe(408)
    expect(held.heads).toHaveLength(0)
  })

  test('ends a WebSocket that does not open, and none that is open', async () => {
    const silent = await startServer(() => {})
    const gateway = await gatewayTo([silent.url], {}, { timeout: '100ms', websocket: true })
    expect((await refusalOf(openWebSocket(`${gateway.url}/x`))).status).toBe(504)
    const api = await startWebSocketApi()
    cleanup.push(() => api.close())
    const other = await gatewayTo([api.url], {}, { timeout: '1s', websocket: true })
    const { socket, received, ended } = await openWebSocket(`${other.url}/x`)
    const begun = performance.now()
    await until(() => expect(performance.now() - begun).toBeGreaterThan(1_200))
    socket.send('still here')
    await until(() => expect(received).toEqual(['still here']))
    socket.close()
    await ended
  })

  test('a request that was answered in time leaves nothing behind', async () => {
    const good = await startServer(ok)
    const gateway = await gatewayTo([good.url], {}, { timeout: '100ms' })
    for (let count = 0; count < 5; count++) expect(await send(gateway, 'GET')).toBe(200)
  })
})

describe('targets of a route', () => {
  const canary = { match: { header: 'x-track', value: 'canary' }, labels: { track: 'canary' } }

  test('get the requests with the header; without it all targets are used', async () => {
    const [stable, tried] = [await startServer(ok), await startServer(ok)]
    const targets = [
      { url: stable.url, labels: { track: 'stable' } },
      { url: tried.url, labels: { track: 'canary' } },
    ]
    const gateway = await gatewayTo(targets, {}, { targets: canary })
    for (let count = 0; count < 4; count++) await fetch(gateway.url, { headers: { 'x-track': 'canary' } })
    expect([stable.heads.length, tried.heads.length]).toEqual([0, 4])
    for (const value of ['Canary', 'canary2', 'canary, canary']) {
      for (let count = 0; count < 2; count++) await fetch(gateway.url, { headers: { 'x-track': value } })
    }
    expect([stable.heads.length, tried.heads.length]).toEqual([3, 7])
  })

  test('stay among themselves: another target is no substitute', async () => {
    const stable = await startServer(ok)
    const targets = [
      { url: stable.url, labels: { track: 'stable' } },
      { url: await nobody(), labels: { track: 'canary' } },
    ]
    const gateway = await gatewayTo(targets, {}, { targets: canary })
    expect((await fetch(gateway.url, { headers: { 'x-track': 'canary' } })).status).toBe(502)
    expect(stable.heads).toHaveLength(0)
  })
})

test('who is hashed goes to one target', async () => {
  const [one, other] = [await startServer(ok), await startServer(ok)]
  const gateway = await gatewayTo([one.url, other.url], { balance: { hash: 'header:x-tenant' } })
  const seenBy = async (tenant: string) => {
    const before = one.heads.length
    for (let count = 0; count < 4; count++) await fetch(gateway.url, { headers: { 'x-tenant': tenant } })
    return one.heads.length - before
  }
  const counts = await Promise.all(['a'].map(seenBy))
  for (let tenant = 0; tenant < 20; tenant++) counts.push(await seenBy(`tenant ${tenant}`))
  expect(new Set(counts)).toEqual(new Set([0, 4]))
})

test.each([['subject'], ['header:x-tenant']])('who has no %s goes to any target', async (hash) => {
  const [one, other] = [await startServer(ok), await startServer(ok)]
  const gateway = await gatewayTo([one.url, other.url], { balance: { hash } })
  await until(async () => {
    expect(await send(gateway, 'GET')).toBe(200)
    expect([one.heads.length > 0, other.heads.length > 0]).toEqual([true, true])
  })
})
