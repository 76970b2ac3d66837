import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import type { JWTPayload } from 'jose'
import { afterEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { resolveByConfig } from '../../../bin/policy/resolve.ts'
import { parseGatewayConfig } from '../../../gateway/config/load.ts'
import { protect } from '../../../gateway/express.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { readCases } from '../../../policies/authoring/cases.ts'
import { orders, startTestGateway } from '../../support/gateway.ts'
import { startTokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const mfa = 'urn:surrogate:acr:mfa'
const phr = 'urn:surrogate:acr:phr'
const inSeconds = () => Math.floor(Date.now() / 1000)
const metadata = 'resource_metadata="https://api.test/.well-known/oauth-protected-resource/orders"'

const route = { audience: [orders], scopes: ['read:orders'], upstream: 'orders' }
const routes = [
  { ...route, id: 'plain', path: '/plain' },
  { ...route, id: 'strong', path: '/strong', acr: [phr, mfa] },
  { ...route, id: 'fresh', path: '/fresh', maxAuthAge: '5m' },
  { ...route, id: 'both', path: '/both', acr: mfa, maxAuthAge: '90s' },
]

const start = async (more: object = {}) => {
  const gateway = await startTestGateway({ config: () => ({ routes, ...more }) })
  cleanup.push(gateway.close)
  const call = async (path: string, claims: JWTPayload = {}, headers: Record<string, string> = {}) => {
    const token = await gateway.issuer.sign({ scope: 'read:orders', ...claims })
    const response = await gateway.call(path, { headers: { authorization: `Bearer ${token}`, ...headers } })
    return { status: response.status, challenge: response.headers.get('www-authenticate'), body: await response.json() }
  }
  return { gateway, call }
}

test('a sign-in that is too weak is refused with what the route accepts, and never reaches the upstream', async () => {
  const { gateway, call } = await start()
  const refused = await call('/strong', { acr: 'urn:surrogate:acr:basic', auth_time: inSeconds() })
  expect(refused).toEqual({
    status: 401,
    challenge: `Bearer error="insufficient_user_authentication", error_description="A stronger sign-in is needed.", acr_values="${phr} ${mfa}", ${metadata}`,
    body: {
      type: 'urn:surrogate:problem:insufficient_user_authentication',
      title: 'The user must sign in again, or in a stronger way.',
      status: 401,
      code: 'insufficient_user_authentication',
      detail: 'A stronger sign-in is needed.',
      instance: expect.stringMatching(/^[0-9a-f-]{36}$/),
    },
  })
  expect(gateway.upstream.seen).toEqual([])
  expect((await call('/strong', { acr: mfa })).status).toBe(200)
  expect((await call('/strong', { acr: phr })).status).toBe(200)
})

test('a sign-in that is too old is refused with the age that is allowed', async () => {
  const { call } = await start()
  const refused = await call('/fresh', { acr: mfa, auth_time: inSeconds() - 302 })
  expect(refused).toMatchObject({
    status: 401,
    challenge: `Bearer error="insufficient_user_authentication", error_description="A more recent sign-in is needed.", max_age="300", ${metadata}`,
  })
  expect((await call('/fresh', { auth_time: inSeconds() - 290 })).status).toBe(200)
})

test('a challenge names everything that the route asks for, so that one more sign-in is enough', async () => {
  const { call } = await start()
  const asked = `acr_values="${mfa}", max_age="90"`
  for (const claims of [
    { acr: mfa, auth_time: inSeconds() - 100 },
    { acr: 'urn:surrogate:acr:basic', auth_time: inSeconds() },
  ]) {
    const { status, challenge } = await call('/both', claims)
    expect([status, challenge]).toEqual([401, expect.stringContaining(asked)])
  }
  expect((await call('/both', { acr: mfa, auth_time: inSeconds() })).status).toBe(200)
})

test.each<[string, string, JWTPayload]>([
  ['no acr', '/strong', { auth_time: inSeconds() }],
  ['an acr that is a list', '/strong', { acr: [mfa] }],
  ['an acr that begins like one of the list', '/strong', { acr: `${mfa} ${phr}` }],
  ['no auth_time', '/fresh', { acr: phr }],
  ['an auth_time that is text', '/fresh', { auth_time: String(inSeconds()) }],
  ['an iat of now, from a refresh, and no auth_time', '/fresh', { iat: inSeconds() }],
])('a token with %s proves nothing', async (_, path, claims) => {
  const { call } = await start()
  expect(await call(path, claims)).toMatchObject({ status: 401, body: { code: 'insufficient_user_authentication' } })
  expect((await call('/plain', claims)).status).toBe(200)
})

test('a cached token is asked again on every route, and grows too old', async () => {
  let ahead = 0
  const gateway = await startTestGateway({ config: () => ({ routes }), now: () => new Date(Date.now() + ahead) })
  cleanup.push(gateway.close)
  const token = await gateway.issuer.sign({ scope: 'read:orders', auth_time: inSeconds(), exp: inSeconds() + 3_600 })
  const statuses = async () =>
    Promise.all(['/plain', '/fresh', '/strong'].map(async (path) => (await gateway.call(path, { token })).status))
  expect(await statuses()).toEqual([200, 200, 401])
  ahead = 302_000
  expect(await statuses()).toEqual([200, 401, 401])
})

test('the decision log says that this was the reason', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'step-up-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const file = join(folder, 'decisions.jsonl')
  const { call } = await start({ decisionLog: { to: file } })
  await call('/strong')
  await until(async () =>
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({
      result: { allow: false, reason: 'insufficient_user_authentication' },
      http: { status: 401, route: 'strong' },
    }),
  )
})

test('another proxy that asks gets the challenge for its client', async () => {
  const { call } = await start({
    trustedProxies: ['127.0.0.1'],
    forwardAuth: { path: '/.surrogate/auth', dialect: 'nginx' },
  })
  const token = { 'x-original-method': 'GET', 'x-original-uri': '/strong', 'x-forwarded-proto': 'http' }
  expect(await call('/.surrogate/auth', {}, token)).toMatchObject({
    status: 401,
    challenge: expect.stringContaining(`acr_values="${phr} ${mfa}"`),
  })
})

test('protect() asks the same', async () => {
  const issuer = await startTokenIssuer()
  const acr = [mfa, phr] as const
  const guard = protect({ issuer: issuer.issuer, audience: orders, acr, maxAuthAge: '5m', logger: silentLogger })
  const app = express().get('/transfer', guard, (_request, response) => void response.json('done'))
  const server = app.listen(0, '127.0.0.1')
  cleanup.push(issuer.close, guard.close, () => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const call = async (claims: JWTPayload) => {
    const authorization = `Bearer ${await issuer.sign(claims)}`
    const response = await fetch(`http://127.0.0.1:${port}/transfer`, { headers: { authorization } })
    return [response.status, response.headers.get('www-authenticate')]
  }
  expect(await call({ acr: mfa, auth_time: inSeconds() })).toEqual([200, null])
  expect(await call({ acr: mfa })).toEqual([
    401,
    `Bearer error="insufficient_user_authentication", error_description="A more recent sign-in is needed.", acr_values="${mfa} ${phr}", max_age="300"`,
  ])
})

describe('the settings', () => {
  const parse = (members: object) =>
    parseGatewayConfig(
      stringify({
        version: 1,
        allowInsecure: ['no-revocations'],
        issuers: [{ issuer: 'https://id.test', client: { id: 'gateway', secret: 's' } }],
        upstreams: { orders: { url: 'http://localhost:1' } },
        routes: [{ ...route, id: 'r', path: '/x', ...members }],
      }),
      { file: 'gateway.yaml', env: {} },
    )
  test('one value or several', () => {
    expect(parse({}).routes[0]).toMatchObject({ acr: [] })
    expect(parse({ acr: mfa, maxAuthAge: '1h' }).routes[0]).toMatchObject({ acr: [mfa], maxAuthAge: 3_600_000 })
  })
  test.each<[string, object, string]>([
    ['a value with a space would be two', { acr: `${mfa} ${phr}` }, 'must be a value of the claim acr'],
    ['a quotation mark would end the challenge', { acr: ['a"b'] }, 'must be a value of the claim acr'],
    ['an empty list asks for nothing', { acr: [] }, 'must name a value at least'],
    ['max_age has no fractions', { maxAuthAge: '1500ms' }, 'must be whole seconds'],
    ['a number has no unit', { maxAuthAge: 300 }, 'must be a duration'],
    ['nobody signs in on a public route', { auth: 'none', scopes: [], acr: mfa }, 'a route with auth: none'],
    ['personal access tokens', { acceptPersonalAccessTokens: true, maxAuthAge: '5m' }, 'maxAuthAge would refuse every'],
  ])('%s', (_, members, message) => {
    expect(() => parse(members)).toThrow(message)
  })
})

test('policy cases meet the routes of a file as requests do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'step-up-'))
  cleanup.push(() => rm(folder, { recursive: true }))
  const request = { path: '/both' }
  const expected = { status: 401, reason: 'insufficient_user_authentication' }
  const cases = [
    { name: 'too old', request, token: { sub: 'u1', acr: mfa, auth_time: 100 }, now: 191, expect: expected },
    { name: 'recent', request, token: { sub: 'u1', acr: mfa, auth_time: 100 }, now: 190, expect: { status: 200 } },
  ]
  await writeFile(join(folder, 'cases.yaml'), stringify(cases))
  const file = {
    version: 1,
    issuers: [{ issuer: 'https://id.test' }],
    upstreams: { orders: { url: 'http://localhost:1' } },
    routes,
  }
  const resolve = resolveByConfig(parseGatewayConfig(stringify(file), { file: 'gateway.yaml', env: {} }))
  const [old, recent] = await readCases(folder)
  expect(resolve(old!)).toEqual({ answer: expected })
  expect(resolve(recent!)).toMatchObject({ input: { token: { acr: mfa, auth_time: 100, impersonation: false } } })
})
