import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type ProtectOptions, protect } from '../../gateway/express.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { orders } from '../support/gateway.ts'
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts'
import { startTokenIssuer } from '../support/token-issuer.ts'
import { until } from '../support/until.ts'

/**
 * Guards of an Express application before our own issuer: what is revoked, personal access tokens, several issuers,
 * logs.
 */

let issuer: TestIssuer
let client: { id: string; secret: string }
let user: string
beforeAll(async () => {
  issuer = await startTestIssuer()
  await issuer.createResource({ indicator: orders, scopes: ['read:orders', 'write:orders'] })
  const { id, secret } = await issuer.createApplication({ type: 'MachineToMachine', name: 'Application' })
  client = { id, secret: secret! }
  await issuer.grantApplication(client, issuer.managementResource, ['revocations'])
  await issuer.grantApplication(client, orders, ['read:orders'])
  user = (await issuer.createUser()).id
  await issuer.grantUser(user, orders, ['read:orders'])
})
afterAll(() => issuer.close())

const cleanup: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const listen = async (app: express.Express): Promise<string> => {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanup.push(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const start = async (options: Partial<ProtectOptions> = {}) => {
  const metrics = createMetrics()
  const guard = protect({
    issuer: issuer.issuer,
    client,
    revocations: { mode: 'feed' },
    audience: orders,
    scopes: ['read:orders'],
    logger: silentLogger,
    metrics,
    ...options,
  })
  const app = express()
  app.get('/orders', guard, (request, response) => {
    const { auth, headers } = request
    const { token, subject, actor, client: by } = auth!
    response.json({ scopes: token.scopes, subject, actor, client: by, authorization: headers.authorization })
  })
  app.post('/orders', guard.with({ id: 'writes', scopes: ['write:orders'] }), (_request, response) => {
    response.sendStatus(204)
  })
  cleanup.push(() => guard.close())
  const url = `${await listen(app)}/orders`
  const call = (token: string, method = 'GET') => fetch(url, { method, headers: { authorization: `Bearer ${token}` } })
  return { guard, call, url, metrics }
}

const personalToken = async (): Promise<string> => {
  const name = crypto.randomUUID()
  const answer = await issuer.api('POST', `/users/${user}/personal-access-tokens`, { name })
  expect(answer.status).toBe(201)
  return answer.body.value
}

test('a token that was revoked is refused within seconds, and the guard says whether it follows', async () => {
  const { guard, call } = await start()
  expect(guard.checks()).toEqual({})
  await guard.ready
  expect(Object.entries(guard.checks()).map(([name, { ok }]) => [name.split(' ')[0], ok])).toEqual([
    ['keys', true],
    ['revocations', true],
    ['policies', true],
  ])
  const suspended = (await issuer.createUser()).id
  await issuer.grantUser(suspended, orders, ['read:orders'])
  const answer = await issuer.exchange(client, await issuer.subjectToken(suspended), {
    resource: orders,
    scope: 'read:orders',
  })
  const token = answer.body.access_token
  expect((await call(token)).status).toBe(200)
  await issuer.api('PATCH', `/users/${suspended}/is-suspended`, { isSuspended: true })
  await until(async () => expect((await call(token)).status).toBe(401))
})

test('a personal access token gets in where it may, and handlers see the access token in its place', async () => {
  const { call } = await start({ acceptPersonalAccessTokens: true })
  const personal = await personalToken()
  const answer = await call(personal)
  expect(answer.status).toBe(200)
  const { authorization, ...rest } = (await answer.json()) as { authorization: string }
  expect(rest).toEqual({ scopes: ['read:orders'], subject: { id: user }, client: { id: client.id } })
  expect(authorization).toMatch(/^Bearer eyJ/)
  expect(await issuer.verify(authorization.slice('Bearer '.length), orders)).toMatchObject({ sub: user })
  const { call: strict } = await start()
  expect((await strict(personal)).status).toBe(401)
})

test('guards of one application differ in what they ask for, and share keys and revocations', async () => {
  const { call, guard, metrics } = await start()
  await guard.ready
  const token = await issuer.clientToken(client, orders, 'read:orders')
  expect((await call(token)).status).toBe(200)
  const refused = await call(token, 'POST')
  expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
    401,
    'Bearer error="insufficient_scope", scope="write:orders"',
  ])
  const { text } = await metrics.render()
  expect(text).toMatch(/requests_total\{route="protected",status="200"\} 1/)
  expect(text).toMatch(/requests_total\{route="writes",status="401"\} 1/)
  expect(text).toMatch(/surrogate_jwks_fetches_total\{[^}]*\} 1\n/)
})

test('several issuers, each with its own keys', async () => {
  const other = await startTokenIssuer()
  const stranger = await startTokenIssuer()
  cleanup.push(other.close, stranger.close)
  const { call, guard } = await start({
    issuer: [{ issuer: issuer.issuer, client, revocations: { mode: 'feed' } }, other.issuer],
    client: undefined,
    revocations: undefined,
  })
  const claims = { scope: 'read:orders', client_id: 'c1' }
  expect((await call(await issuer.clientToken(client, orders, 'read:orders'))).status).toBe(200)
  expect((await call(await other.sign(claims))).status).toBe(200)
  expect((await call(await stranger.sign(claims))).status).toBe(401)
  // A guard of the same application that takes the tokens of one of them.
  const own = guard.with({ id: 'own', issuers: [issuer.issuer] })
  const ownUrl = await listen(express().get('/', own, (_request, response) => void response.sendStatus(204)))
  const callOwn = (token: string) => fetch(ownUrl, { headers: { authorization: `Bearer ${token}` } })
  expect((await callOwn(await issuer.clientToken(client, orders, 'read:orders'))).status).toBe(204)
  expect((await callOwn(await other.sign(claims))).status).toBe(401)
  // The issuer's name on a token of somebody else.
  expect((await call(await other.sign({ ...claims, iss: issuer.issuer }))).status).toBeOneOf([401, 503])
})

test('rate limits, logs and a token that handlers must not see', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'guard-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const to = join(folder, 'decisions.jsonl')
  const { call, guard } = await start({
    rateLimit: { by: 'client', requests: 2, per: '1h' },
    decisionLog: { to, mask: ['/input/token/claims'] },
    forwardAuthorization: false,
  })
  const token = await issuer.clientToken(client, orders, 'read:orders')
  const first = await call(token)
  expect(first.headers.get('ratelimit')).toContain('r=1')
  expect(await first.json()).not.toHaveProperty('authorization')
  expect((await call(token)).status).toBe(200)
  expect((await call(token)).status).toBe(429)
  await guard.close()
  const events = (await readFile(to, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(events.map(({ http }) => http.status)).toEqual([200, 200, 429])
  expect(events[0]).toMatchObject({ erased: ['/input/token/claims'] })
})

test('insecure options are refused like those of a file', () => {
  const options = { issuer: 'http://id.test', audience: orders }
  expect(() => protect(options)).toThrow('allowInsecure: [http-issuer]')
  const allowed = protect({ ...options, allowInsecure: ['http-issuer'], logger: silentLogger })
  cleanup.push(() => allowed.close())
})
