import { readFile } from 'node:fs/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { problems } from '../../../gateway/refusals/problems.ts'
import { connectExtAuthz } from '../../support/ext-authz.ts'
import { orders, startTestGateway } from '../../support/gateway.ts'

const cleanup: (() => unknown)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

const route = { audience: [orders], scopes: ['read:orders'] }

const start = async (config: Record<string, unknown> = {}) => {
  const gateway = await startTestGateway({
    config: () => ({
      trustedProxies: ['127.0.0.1'],
      extAuthz: { port: 0 },
      routes: [
        { ...route, id: 'read', path: '/orders/{id}', methods: ['GET'], policyHeaders: ['accept-language', 'x-plan'] },
        { ...route, id: 'hidden', path: '/hidden', forwardAuthorization: false },
        { id: 'public', path: '/public/**', auth: 'none' },
        { id: 'limited', path: '/limited', auth: 'none', rateLimit: [{ by: 'address', requests: 1, per: '1h' }] },
      ],
      ...config,
    }),
  })
  cleanup.push(gateway.close)
  const envoy = connectExtAuthz(gateway.extAuthzPort)
  cleanup.push(envoy.close)
  const token = await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', act: { sub: 'agent' }, sid: 's1' })
  return { gateway, envoy, token, authorization: `Bearer ${token}` }
}

describe('an allowed request', () => {
  test('gets its identity, and loses every field that could pass for one', async () => {
    const { envoy, authorization } = await start()
    const forged = {
      'x-auth-sub': 'root',
      x_auth_sub: 'root',
      'x.auth.act': 'nobody',
      'x-auth-organization': 'o1',
      'x-original-url': '/admin',
      'x-forwarded-host': 'evil.test',
      'x-forwarded-user': 'root',
      x_forwarded_for: '1.2.3.4',
      x_plan: 'gold',
      forwarded: 'for=1.2.3.4',
      'x-mine': '1',
      'x-nominated': '1',
      connection: 'x-nominated',
      'x-request-id': 'envoys-own',
    }
    const answer = await envoy.check({ path: '/orders/1', headers: { authorization, ...forged } })
    expect(answer).toMatchObject({
      allowed: true,
      code: 0,
      headers: {
        'x-auth-sub': 'u1',
        'x-auth-act': 'agent',
        'x-auth-scope': 'read:orders',
        'x-auth-client-id': 'c1',
        'x-auth-sid': 's1',
        authorization,
        'x-request-id': 'envoys-own',
      },
    })
    expect(answer.removed.sort()).toEqual([
      'forwarded',
      'x-auth-assertion',
      'x-auth-organization',
      'x-forwarded-host',
      'x-forwarded-user',
      'x-nominated',
      'x-original-url',
      'x.auth.act',
      'x_auth_sub',
      'x_forwarded_for',
      'x_plan',
    ])
    // Envoy removes after it has set.
    expect(answer.removed.filter((name) => name in answer.headers)).toEqual([])
  })

  test('without a caller has no identity at all', async () => {
    const { envoy } = await start()
    const answer = await envoy.check({ path: '/public/x', headers: { 'x-auth-sub': 'root' } })
    expect(answer.headers).toEqual({ 'x-request-id': expect.any(String) })
    expect(answer.removed).toEqual(expect.arrayContaining(['x-auth-sub', 'x-auth-act', 'x-auth-scope', 'x-auth-sid']))
  })

  test('has its token removed where the route keeps it from the API', async () => {
    const { envoy, authorization } = await start()
    const answer = await envoy.check({ path: '/hidden', headers: { authorization } })
    expect(answer.headers).not.toHaveProperty('authorization')
    expect(answer.removed).toContain('authorization')
  })

  test('has a token in the query removed in the one spelling that Envoy can be told', async () => {
    const { envoy } = await start()
    expect(await envoy.check({ path: '/public/x?a=1&access_token=t&b=2' })).toMatchObject({
      allowed: true,
      removedParameters: ['access_token'],
    })
    for (const query of ['access%5Ftoken=t', 'ACCESS_TOKEN=t', 'a;access_token=t', 'access.token=t'])
      expect(await envoy.check({ path: `/public/x?${query}` })).toMatchObject({ allowed: false, status: 400 })
    expect((await envoy.check({ path: '/public/x?a=1' })).removedParameters).toEqual([])
  })

  test("keeps its other cookies, and not the issuer's", async () => {
    const { envoy } = await start()
    const some = await envoy.check({ path: '/public/x', headers: { cookie: 'a=1; surrogate_session=s' } })
    expect(some.headers).toMatchObject({ cookie: 'a=1' })
    const none = await envoy.check({ path: '/public/x', headers: { cookie: 'surrogate_session=s' } })
    expect(none.removed).toContain('cookie')
    // Two fields of HTTP/1.1, as Envoy joins them.
    const joined = { cookie: 'a=1, b,__Host-surrogate_session=s; c=2, surrogate_device=d' }
    expect((await envoy.check({ path: '/public/x', headers: joined })).headers).toMatchObject({ cookie: 'a=1, b; c=2' })
  })

  test('tells the next filters who asks, and nothing of the token', async () => {
    const { envoy, authorization, token } = await start()
    const { metadata } = await envoy.check({ path: '/orders/1', headers: { authorization } })
    expect(metadata).toEqual({
      request_id: expect.any(String),
      route: 'read',
      subject: 'u1',
      actor: 'agent',
      actor_chain: ['agent'],
      client_id: 'c1',
      scopes: ['read:orders'],
    })
    expect(JSON.stringify(metadata)).not.toContain(token.slice(-20))
  })
})

describe('a denied request', () => {
  test('gets the status, the challenge and the problem document that the proxy would send', async () => {
    const { envoy, gateway } = await start()
    expect(await envoy.check({ path: '/orders/1' })).toMatchObject({
      allowed: false,
      code: 16,
      status: 401,
      headers: { 'www-authenticate': expect.stringMatching(/^Bearer/), 'content-type': 'application/problem+json' },
      body: { code: 'token_missing', status: 401 },
      metadata: { route: 'read', reason: 'token_missing' },
    })
    const weak = `Bearer ${await gateway.issuer.sign({ scope: 'other', client_id: 'c1' })}`
    expect(await envoy.check({ path: '/orders/1', headers: { authorization: weak } })).toMatchObject({
      status: 401,
      body: { code: 'insufficient_scope' },
      headers: { 'www-authenticate': expect.stringContaining('read:orders') },
    })
    expect(await envoy.check({ path: '/nowhere' })).toMatchObject({ code: 5, status: 404 })
    await envoy.check({ path: '/limited' })
    expect(await envoy.check({ path: '/limited' })).toMatchObject({
      ...{ code: 8, status: 429 },
      headers: { 'retry-after': expect.any(String) },
    })
    expect((await envoy.check({ path: '/limited', address: '203.0.113.10' })).allowed).toBe(true)
  })

  test('is a denial also when the fault is ours: no error that failure_mode_allow would let pass', async () => {
    const { envoy } = await start({ issuers: [{ issuer: 'http://127.0.0.1:9/oidc' }] })
    const token = [
      { alg: 'ES256', typ: 'at+jwt', kid: 'k' },
      { iss: 'http://127.0.0.1:9/oidc', sub: 'u', exp: 9e9 },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const headers = { authorization: `Bearer ${token}.AAAA` }
    expect(await envoy.check({ path: '/orders/1', headers })).toMatchObject({
      ...{ allowed: false, code: 14, status: 503 },
      body: { code: 'keys_unavailable' },
    })
  })

  test('has a status that Envoy knows, whatever the problem is', async () => {
    const proto = new URL('../../../gateway/ext-authz/proto/envoy/type/v3/http_status.proto', import.meta.url)
    const known = [...(await readFile(proto, 'utf8')).matchAll(/^ {2}\w+ = (\d{3});/gm)].map(([, code]) => Number(code))
    expect(known).toContain(429)
    expect(Object.values(problems).filter(([status]) => !known.includes(status))).toEqual([])
  })
})

describe('where a request came from', () => {
  const addressOf = async (
    config: Record<string, unknown>,
    asked: { address: string; headers?: Record<string, string> },
  ) => {
    const { envoy } = await start({
      routes: [{ id: 'l', path: '/l', auth: 'none', rateLimit: [{ by: 'address', requests: 1, per: '1h' }] }],
      ...config,
    })
    await envoy.check({ path: '/l', address: '198.51.100.7' })
    return (await envoy.check({ path: '/l', ...asked })).status ?? 200
  }

  test("is what Envoy says, and not what the request's own X-Forwarded-For says", async () => {
    expect(await addressOf({}, { address: '198.51.100.7' })).toBe(429)
    expect(await addressOf({}, { address: '198.51.100.7', headers: { 'x-forwarded-for': '1.2.3.4' } })).toBe(429)
    expect(await addressOf({}, { address: '203.0.113.1', headers: { 'x-forwarded-for': '198.51.100.7' } })).toBe(200)
  })

  test('is read from X-Forwarded-For where a trusted balancer stands before Envoy', async () => {
    const config = { trustedProxies: ['127.0.0.1', '10.0.0.1'] }
    const headers = { 'x-forwarded-for': '9.9.9.9, 198.51.100.7, 10.0.0.1' }
    expect(await addressOf(config, { address: '10.0.0.1', headers })).toBe(429)
  })

  test('an Envoy that is not trusted gets no decision', async () => {
    const { envoy } = await start({ trustedProxies: ['192.0.2.1'] })
    expect(await envoy.check({ path: '/public/x' })).toMatchObject({ allowed: false, status: 404 })
  })
})
