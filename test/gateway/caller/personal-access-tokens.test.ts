import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createLogger } from '../../../platform/logger.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { until } from '../../support/until.ts'

let issuer: TestIssuer
let client: TestApplication
let user: string
beforeAll(async () => {
  issuer = await startTestIssuer()
  await issuer.createResource({ indicator: orders, scopes: ['read:orders', 'write:orders'] })
  client = await issuer.createApplication({ type: 'MachineToMachine', name: 'Gateway' })
  await issuer.grantApplication(client, issuer.managementResource, ['revocations'])
})
afterAll(() => issuer.close())
beforeEach(async () => {
  user = (await issuer.createUser()).id
  await issuer.grantUser(user, orders, ['read:orders'])
})

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

const lines: string[] = []
const logger = createLogger({
  name: 'gateway',
  level: 'trace',
  destination: new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk))
      done()
    },
  }),
})

/** A gateway with a route that takes personal access tokens and one that does not, whose clock can be moved. */
const start = async (issuerSettings: object = {}): Promise<TestGateway & { later(ms: number): void }> => {
  let ahead = 0
  const route = { audience: [orders], upstream: 'orders' }
  const gateway = await startTestGateway({
    logger,
    now: () => new Date(Date.now() + ahead),
    config: () => ({
      issuers: [{ issuer: issuer.issuer, client, revocations: { mode: 'feed' }, ...issuerSettings }],
      routes: [
        {
          ...route,
          id: 'read',
          path: '/orders/**',
          methods: ['GET'],
          scopes: ['read:orders'],
          acceptPersonalAccessTokens: true,
        },
        {
          ...route,
          id: 'write',
          path: '/orders/**',
          methods: ['POST'],
          scopes: ['write:orders'],
          acceptPersonalAccessTokens: true,
        },
        { ...route, id: 'strict', path: '/strict', scopes: ['read:orders'] },
      ],
    }),
  })
  stops.push(gateway.close)
  await until(async () => expect((await gateway.health.ready()).ok).toBe(true))
  return Object.assign(gateway, {
    later(ms: number) {
      ahead += ms
    },
  })
}

const make = async (members: object = {}): Promise<string> => {
  const answer = await issuer.api('POST', `/users/${user}/personal-access-tokens`, { name: 'CI', ...members })
  expect(answer.status).toBe(201)
  return answer.body.value
}
const remove = (name = 'CI') => issuer.api('POST', `/users/${user}/personal-access-tokens/delete`, { name })
/** Of this user's tokens so far. */
const exchanges = async () =>
  (await issuer.sql(`SELECT FROM logs WHERE key = 'ExchangeTokenBy.TokenExchange' AND user_id = $1`, [user])).length
const answerOf = async (answer: Response) => ({
  status: answer.status,
  challenge: answer.headers.get('www-authenticate'),
  code: ((await answer.json()) as { code?: string }).code,
})

test('a personal access token gets through as the access token it is exchanged for; the upstream never sees it', async () => {
  const gateway = await start()
  const token = await make()
  const answer = await gateway.call('/orders/1', { token })
  expect(answer.status).toBe(200)
  const [seen] = gateway.upstream.seen
  expect(seen!.headers).toMatchObject({
    'x-auth-sub': user,
    'x-auth-scope': 'read:orders',
    'x-auth-client-id': client.id,
  })
  const jwt = String(seen!.headers['authorization']).replace('Bearer ', '')
  expect(await issuer.verify(jwt, orders)).toMatchObject({ sub: user, scope: 'read:orders', amr: ['pat'] })
  expect(JSON.stringify(gateway.upstream.seen) + lines.join('')).not.toContain(token.slice(4))
})

test('it is exchanged once, however many requests come at once and within the next minute', async () => {
  const gateway = await start()
  const token = await make()
  const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.call('/orders/1', { token })))
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  gateway.later(59_000)
  expect((await gateway.call('/orders/1', { token })).status).toBe(200)
  expect(await exchanges()).toBe(1)
  gateway.later(2_000)
  expect((await gateway.call('/orders/1', { token })).status).toBe(200)
  expect(await exchanges()).toBe(2)
})

test('a deleted one is refused as soon as the feed tells', async () => {
  const gateway = await start()
  const token = await make()
  expect((await gateway.call('/orders/1', { token })).status).toBe(200)
  expect((await remove()).status).toBe(204)
  await until(async () => expect((await gateway.call('/orders/1', { token })).status).toBe(401))
})

test('where the feed is not followed a deleted one is refused after a minute', async () => {
  const gateway = await start({ revocations: { mode: 'off' } })
  const token = await make()
  expect((await gateway.call('/orders/1', { token })).status).toBe(200)
  expect((await remove()).status).toBe(204)
  gateway.later(61_000)
  expect(await answerOf(await gateway.call('/orders/1', { token }))).toEqual({
    status: 401,
    challenge: expect.stringContaining('error="invalid_token"'),
    code: 'invalid_token',
  })
})

test('suspending its user ends it at once, although the exchange is remembered', async () => {
  const gateway = await start()
  const token = await make()
  expect((await gateway.call('/orders/1', { token })).status).toBe(200)
  await issuer.api('PATCH', `/users/${user}/is-suspended`, { isSuspended: true })
  await until(async () => expect((await gateway.call('/orders/1', { token })).status).toBe(401))
  expect(await exchanges()).toBe(1)
})

test('what the user or the token may not do stays a missing scope, and tokens of each scope are kept apart', async () => {
  const gateway = await start()
  await issuer.grantUser(user, orders, ['write:orders'])
  const [all, narrow] = [await make(), await make({ name: 'narrow', scopes: ['read:orders'] })]
  expect((await gateway.call('/orders/1', { token: narrow })).status).toBe(200)
  expect(await answerOf(await gateway.call('/orders/1', { token: narrow, method: 'POST' }))).toEqual({
    status: 401,
    challenge: expect.stringMatching(/^Bearer error="insufficient_scope", scope="write:orders"/),
    code: 'insufficient_scope',
  })
  expect((await gateway.call('/orders/1', { token: all, method: 'POST' })).status).toBe(200)
})

test('a route that does not accept them refuses them, and accepts access tokens as ever', async () => {
  const gateway = await start()
  const token = await make()
  expect(await answerOf(await gateway.call('/strict', { token }))).toMatchObject({ status: 401, code: 'invalid_token' })
  expect(await exchanges()).toBe(0)
  await gateway.call('/orders/1', { token })
  const jwt = String(gateway.upstream.seen[0]!.headers['authorization']).replace('Bearer ', '')
  for (const path of ['/strict', '/orders/1']) expect((await gateway.call(path, { token: jwt })).status).toBe(200)
})

test('one that was never issued is 401, and what cannot be one is not asked about', async () => {
  const asked: string[] = []
  const tokenEndpoint = await standIn((request, response) => {
    asked.push(String(request.url))
    response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
  })
  const gateway = await start({ tokenEndpoint })
  for (const token of ['pat_', 'pat_short', `pat_${'x'.repeat(300)}`, 'pat_with.dots.in_it_and_long_enough']) {
    expect(await answerOf(await gateway.call('/orders/1', { token }))).toMatchObject({ status: 401 })
  }
  expect(asked).toEqual([])
  const token = `pat_${'A'.repeat(43)}`
  for (let again = 0; again < 3; again++) {
    expect(await answerOf(await gateway.call('/orders/1', { token }))).toMatchObject({ status: 401 })
  }
  expect(asked).toHaveLength(1)
  gateway.later(6_000)
  await gateway.call('/orders/1', { token })
  expect(asked).toHaveLength(2)
})

/** An HTTP server in the place of the issuer's token endpoint. */
const standIn = async (listener: RequestListener): Promise<string> => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`
}

const json = (status: number, body: string): RequestListener => {
  return (_request, response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

test.each([
  ['breaks the connection', ((request) => request.socket.destroy()) as RequestListener],
  ['fails', json(500, '{"error":"server_error"}')],
  ['answers what is no JSON', json(200, '<html>')],
  ['answers something else', json(200, '{"token":"x"}')],
  [
    'answers without end',
    ((_, response) => void response.writeHead(200).end('x'.repeat(1_000_000))) as RequestListener,
  ],
  ['does not know the gateway', json(401, '{"error":"invalid_client"}')],
  ['does not know the resource of the route', json(400, '{"error":"invalid_target"}')],
])('an issuer that %s is 503, and the next request asks again', async (_, listener) => {
  let listen = listener
  const tokenEndpoint = await standIn((request, response) => listen(request, response))
  const gateway = await start({ tokenEndpoint })
  const token = await make()
  expect(await answerOf(await gateway.call('/orders/1', { token }))).toEqual({
    status: 503,
    challenge: null,
    code: 'issuer_unavailable',
  })
  expect(gateway.upstream.seen).toEqual([])
  expect(lines.join('')).not.toContain(token.slice(4))
  expect(lines.join('')).not.toContain(client.secret!)
  listen = json(400, '{"error":"invalid_grant"}')
  expect((await gateway.call('/orders/1', { token })).status).toBe(401)
})

test('an answer with a token that is not good is not believed', async () => {
  const forged = `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.e30.`
  const tokenEndpoint = await standIn(json(200, JSON.stringify({ access_token: forged, expires_in: 3600 })))
  const gateway = await start({ tokenEndpoint })
  expect((await gateway.call('/orders/1', { token: await make() })).status).toBe(401)
  expect(gateway.upstream.seen).toEqual([])
})

test('a proxy that asks for decisions is told the access token that takes its place, and to keep it where nobody may see it', async () => {
  const route = { audience: [orders], scopes: ['read:orders'], acceptPersonalAccessTokens: true }
  const gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      forwardAuth: { dialect: 'traefik' },
      issuers: [{ issuer: issuer.issuer, client, revocations: { mode: 'feed' } }],
      routes: [
        { ...route, id: 'told', path: '/told' },
        { ...route, id: 'kept', path: '/kept', forwardAuthorization: false },
      ],
    }),
  })
  stops.push(gateway.close)
  await until(async () => expect((await gateway.health.ready()).ok).toBe(true))
  const token = await make()
  const ask = (uri: string) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'x-forwarded-method': 'GET',
      'x-forwarded-uri': uri,
      'x-forwarded-host': 'api.test',
      'x-forwarded-proto': 'https',
    }
    return fetch(`${gateway.url}/.surrogate/auth`, { headers })
  }
  const told = await ask('/told')
  expect([told.status, told.headers.get('x-auth-sub')]).toEqual([200, user])
  const jwt = told.headers.get('authorization')!.replace('Bearer ', '')
  expect(await issuer.verify(jwt, orders)).toMatchObject({ sub: user, amr: ['pat'] })
  const kept = await ask('/kept')
  expect([kept.status, kept.headers.get('x-auth-sub'), kept.headers.get('authorization')]).toEqual([200, user, ''])
})
