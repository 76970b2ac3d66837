import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { orders } from '../../support/gateway.ts'
import { type GatewayWorkers, startGatewayWorkers } from '../../support/gateway-workers.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'
import { startWebSocketApi, type WebSocketApi } from '../../support/websocket-api.ts'

/** What several workers share: one compiler's work, one set of keys, one feed, one count. */

let issuer: TokenIssuer
let api: WebSocketApi
let gateway: GatewayWorkers
/** A feed of revocations: what it was asked, and how it says something. */
const feed = { url: '', asked: [] as string[], revoke: (_sid: string) => {}, close: () => {} }

const openFeed = async () => {
  let waiting: (() => void)[] = []
  const entries: object[] = []
  const server = createServer((request, response) => {
    const query = new URL(request.url!, 'http://feed').searchParams
    feed.asked.push(query.toString())
    const since = Number(query.get('since') ?? 0)
    const answer = () => {
      const body = { entries: entries.slice(since), cursor: entries.length, more: false }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (query.get('wait') === '0' || entries.length > since) answer()
    else waiting.push(answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  feed.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/revocations`
  feed.revoke = (sid) => {
    const expiresAt = Math.floor(Date.now() / 1000) + 86_400
    entries.push({ kind: 'sid', value: sid, issuedBefore: null, expiresAt })
    for (const answer of waiting.splice(0)) answer()
    waiting = []
  }
  feed.close = () => {
    server.close()
    server.closeAllConnections()
  }
}

beforeAll(async () => {
  issuer = await startTokenIssuer()
  await openFeed()
  api = await startWebSocketApi()
  gateway = await startGatewayWorkers({
    allowInsecure: ['http-issuer'],
    issuers: [
      {
        issuer: issuer.issuer,
        client: { id: 'gateway', secret: 'secret-of-the-gateway' },
        revocations: { mode: 'feed', url: feed.url },
      },
    ],
    upstreams: { api: { url: api.url } },
    routes: [
      { id: 'open', path: '/open/**', auth: 'none', upstream: 'api' },
      { id: 'orders', path: '/orders/**', audience: [orders], upstream: 'api', websocket: true },
      {
        id: 'limited',
        path: '/limited/**',
        auth: 'none',
        upstream: 'api',
        rateLimit: [{ by: 'address', requests: 100, per: '1h' }],
      },
    ],
  })
  await until(async () => expect(await gateway.readiness()).toMatchObject({ ok: true }))
})
afterAll(async () => {
  await gateway?.close()
  await api?.close()
  feed.close()
  await issuer?.close()
})

/** On a connection of its own each, so that the workers take turns. */
const statuses = async (count: number, path: string, headers: Record<string, string> = {}): Promise<number[]> => {
  const call = async () => {
    const answer = await fetch(gateway.url + path, { headers: { ...headers, connection: 'close' } })
    await answer.arrayBuffer()
    return answer.status
  }
  return Promise.all(Array.from({ length: count }, call))
}

const requestsOf = (text: string, route: string): number =>
  text
    .split('\n')
    .filter((line) => line.startsWith(`surrogate_gateway_requests_total{route="${route}"`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)

test('both workers serve, and the metrics are of the whole', async () => {
  expect(gateway.workers()).toHaveLength(2)
  for (let at = 0; at < 5; at++) expect(await statuses(8, `/open/${at}`)).toEqual(Array(8).fill(200))
  await until(() => {
    const output = gateway.child.output()
    expect(output).toMatch(/"worker":1[^\n]*asked \/open/)
    expect(output).toMatch(/"worker":2[^\n]*asked \/open/)
  })
  const text = await gateway.metrics()
  expect(requestsOf(text, 'open')).toBe(40)
  expect(text).toMatch(/^surrogate_gateway_request_seconds_count\{route="open"\} 40$/m)
  expect(text).toMatch(/^process_resident_memory_bytes \d/m)
  expect(text).toMatch(/^process_resident_memory_bytes\{worker="1"\} \d/m)
  expect(text).toMatch(/^process_resident_memory_bytes\{worker="2"\} \d/m)
})

test('rules are compiled, keys asked for and the feed read once', async () => {
  const authorization = `Bearer ${await issuer.sign()}`
  expect(await statuses(8, '/orders/1', { authorization })).toEqual(Array(8).fill(200))
  expect(await gateway.compiled()).toBe(1)
  expect(issuer.requests.filter((path) => path === '/oidc/jwks')).toHaveLength(1)
  expect(feed.asked.filter((query) => !query.includes('since'))).toHaveLength(1)
  expect(await gateway.metrics()).toMatch(/^surrogate_gateway_revocations\{issuer="[^"]+"\} 0$/m)
})

test('a key that is new is asked for once, and both workers have it', async () => {
  const before = issuer.requests.length
  await issuer.rotate()
  const authorization = `Bearer ${await issuer.sign()}`
  await until(async () => expect(await statuses(8, '/orders/1', { authorization })).toEqual(Array(8).fill(200)))
  expect(issuer.requests.slice(before).filter((path) => path === '/oidc/jwks')).toHaveLength(1)
})

test('what is revoked is refused by both', async () => {
  const authorization = `Bearer ${await issuer.sign({ sid: 'ps_1' })}`
  expect(await statuses(8, '/orders/1', { authorization })).toEqual(Array(8).fill(200))
  feed.revoke('ps_1')
  await until(async () => expect(await statuses(8, '/orders/1', { authorization })).toEqual(Array(8).fill(401)))
})

test('a rate limit holds over both', async () => {
  const answers = [...(await statuses(60, '/limited/1')), ...(await statuses(60, '/limited/1'))]
  expect(answers.filter((status) => status === 200)).toHaveLength(100)
  expect(answers.filter((status) => status === 429)).toHaveLength(20)
  const answer = await fetch(`${gateway.url}/limited/1`)
  expect(answer.headers.get('ratelimit')).toMatch(/^"address";r=0;t=\d+$/)
})

test('WebSockets go through either', async () => {
  const authorization = `Bearer ${await issuer.sign()}`
  const echoed = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/orders/live`, { headers: { authorization } })
      socket.on('open', () => socket.send(text))
      socket.on('message', (data) => {
        socket.close()
        resolve(String(data))
      })
      socket.on('error', reject)
    })
  expect(await Promise.all(['a', 'b', 'c', 'd'].map(echoed))).toEqual(['a', 'b', 'c', 'd'])
})
