import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { orders } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import { openWebSocket, startWebSocketApi } from '../../support/websocket-api.ts'
import { client, newToken, secret, startIntrospecting } from './introspection-gateway.ts'

test('an opaque token gets through as its issuer describes it, and identifies its user to the upstream', async () => {
  const gateway = await startIntrospecting()
  const token = gateway.issue({ sid: 's1', act: { sub: 'a1', act: { sub: 'a2' } } })
  expect((await gateway.call('/orders/1', { token })).status).toBe(200)
  expect(gateway.upstream.seen[0]!.headers).toMatchObject({
    authorization: `Bearer ${token}`,
    'x-auth-sub': 'u1',
    'x-auth-act': 'a1',
    'x-auth-act-chain': 'a1,a2',
    'x-auth-scope': 'read:orders',
    'x-auth-client-id': 'c1',
    'x-auth-sid': 's1',
  })
  const authorization = `Basic ${Buffer.from(`gateway:${secret}`).toString('base64')}`
  expect(gateway.endpoint.asked).toEqual([{ token, hint: 'access_token', authorization }])
})

test('the endpoint is found by discovery, and the client may be the one of the issuer', async () => {
  const gateway = await startIntrospecting({
    issuer: { introspection: {}, client, revocations: { mode: 'off' } },
  })
  const { issuer, jwksUri } = gateway.issuer
  const token = gateway.issue()
  expect(await gateway.ask('/orders/1', token)).toMatchObject({
    status: 503,
    retryAfter: '1',
    body: { code: 'issuer_unavailable' },
  })
  const { checks } = await gateway.health.ready()
  expect(checks[`gateway introspection ${issuer}`]).toEqual({
    ok: true,
    detail: expect.stringContaining('no discovery document with introspection_endpoint'),
  })
  gateway.issuer.answer.discovery = { issuer, jwks_uri: jwksUri, introspection_endpoint: gateway.endpoint.url }
  expect((await gateway.ask('/orders/1', token)).status).toBe(200)
  expect((await gateway.health.ready()).checks[`gateway introspection ${issuer}`]).toEqual({ ok: true })
})

describe('what is asked about', () => {
  test('no JWT, whatever is wrong with it, nor what no issuer would have issued', async () => {
    const gateway = await startIntrospecting()
    const good = await gateway.issuer.sign({ scope: 'read:orders' })
    expect((await gateway.ask('/orders/1', good)).status).toBe(200)
    const [header, payload] = good.split('.')
    const spaced = Buffer.from('{ "alg": "dir" }').toString('base64url')
    for (const token of [
      `${header}.${payload}.`,
      `${header}.${payload}`,
      `${header}.${payload}.x.y.z`,
      `${spaced}.abcdefghijklmnop`,
      await gateway.issuer.sign({ iss: 'https://foreign.test' }),
      'short',
      'x'.repeat(4_097),
      'with"quotes"and-spaces',
      'comma,separated,parts,of,it',
    ]) {
      expect(await gateway.ask('/orders/1', token)).toMatchObject({ status: 401, body: { code: 'invalid_token' } })
    }
    expect(gateway.endpoint.asked).toEqual([])
  })

  test('tokens with dots, and only on routes that take tokens of the issuer', async () => {
    const gateway = await startIntrospecting()
    const token = `ory_at_${crypto.randomUUID()}.${crypto.randomUUID()}`
    expect((await gateway.ask('/orders/1', token)).status).toBe(401)
    expect(gateway.endpoint.asked).toHaveLength(1)
    const none = await startIntrospecting({ issuer: { introspection: undefined } })
    expect(await none.ask('/orders/1', newToken())).toMatchObject({ status: 401, body: { code: 'invalid_token' } })
    expect(none.endpoint.asked).toEqual([])
  })
})

test('each issuer is asked on the routes that take its tokens, and on no other', async () => {
  const [one, other] = [await startIntrospecting(), await startIntrospecting()]
  const asking = ({ issuer, endpoint }: typeof one) => ({
    issuer: issuer.issuer,
    introspection: { url: endpoint.url, client },
  })
  const route = { audience: [orders], scopes: ['read:orders'], upstream: 'orders' }
  const gateway = await startIntrospecting({
    config: {
      issuers: [asking(one), asking(other)],
      routes: [
        { ...route, id: 'one', path: '/one', issuers: [one.issuer.issuer] },
        { ...route, id: 'other', path: '/other', issuers: [other.issuer.issuer] },
      ],
    },
  })
  const token = one.issue()
  expect((await gateway.ask('/one', token)).status).toBe(200)
  expect((await gateway.ask('/other', newToken())).status).toBe(401)
  expect([one.endpoint.asked.length, other.endpoint.asked.length]).toEqual([1, 1])
  // What one says counts for nothing where the other is asked.
  expect((await gateway.ask('/other', token)).status).toBe(401)
})

describe('how often', () => {
  test('once, however many requests come at once and within the next minute', async () => {
    const gateway = await startIntrospecting()
    const token = gateway.issue()
    const release = gateway.endpoint.hold()
    const answers = Array.from({ length: 20 }, () => gateway.call('/orders/1', { token }))
    await until(() => expect(gateway.endpoint.asked).toHaveLength(1))
    release()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(20).fill(200))
    gateway.later(58_000)
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    expect(gateway.endpoint.asked).toHaveLength(1)
    const { text } = await gateway.metrics.render()
    const { issuer } = gateway.issuer
    expect(text).toContain(`surrogate_gateway_introspections_total{issuer="${issuer}",outcome="active"} 1`)
    // One at least: of those at once, some may have come when the answer was there.
    expect(text).toMatch(/^surrogate_gateway_introspections_remembered_total\{[^}]*\} [1-9]/m)
    expect(text).toContain(`surrogate_gateway_introspection_seconds_count{issuer="${issuer}"} 1`)
    expect(text).toContain(`surrogate_gateway_introspected_tokens{issuer="${issuer}"} 1`)
  })

  test('a revoked token is refused within a minute of the question, also where the answer was slow', async () => {
    const gateway = await startIntrospecting()
    const token = gateway.issue()
    const release = gateway.endpoint.hold()
    const first = gateway.ask('/orders/1', token)
    await until(() => expect(gateway.endpoint.asked).toHaveLength(1))
    gateway.later(30_000)
    release()
    expect((await first).status).toBe(200)
    gateway.endpoint.tokens.delete(token)
    gateway.later(31_000)
    expect(await gateway.ask('/orders/1', token)).toMatchObject({
      status: 401,
      challenge: expect.stringContaining('Bearer error="invalid_token", error_description="The token is not active."'),
    })
  })

  test('never beyond exp', async () => {
    const gateway = await startIntrospecting()
    const token = gateway.issue({ exp: Math.floor(Date.now() / 1000) + 20 })
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    gateway.later(21_000)
    // An issuer that still calls it active is a little behind, within the clock skew, and then mistaken.
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    expect(gateway.endpoint.asked).toHaveLength(2)
    gateway.later(10_000)
    expect(await gateway.ask('/orders/1', token)).toMatchObject({ status: 401, body: { code: 'invalid_token' } })
  })

  test('what is not active is asked about again after five seconds', async () => {
    const gateway = await startIntrospecting()
    const token = newToken()
    for (const ms of [0, 2_000, 2_000]) {
      gateway.later(ms)
      expect((await gateway.ask('/orders/1', token)).status).toBe(401)
    }
    expect(gateway.endpoint.asked).toHaveLength(1)
    gateway.later(2_000)
    expect((await gateway.ask('/orders/1', token)).status).toBe(401)
    expect(gateway.endpoint.asked).toHaveLength(2)
  })

  test('a reload that leaves the issuer as it was keeps what is known', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'surrogate-introspection-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const gateway = await startIntrospecting({ file: join(folder, 'gateway.yaml') })
    const token = gateway.issue()
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    await gateway.write({ limits: { refusedTokens: 77 } })
    await gateway.reload()
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    expect(gateway.endpoint.asked).toHaveLength(1)
    const introspection = { url: gateway.endpoint.url, client: { ...client, secret: 'another-secret' } }
    await gateway.write({ issuers: [{ issuer: gateway.issuer.issuer, introspection }] })
    await gateway.reload()
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    expect(gateway.endpoint.asked).toHaveLength(2)
  })
})

describe('what the route asks for holds as for JWTs', () => {
  test('its audience, on every request', async () => {
    const gateway = await startIntrospecting()
    const token = gateway.issue({ aud: ['https://elsewhere.test', orders] })
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    expect(await gateway.ask('/other', token)).toMatchObject({
      status: 401,
      body: { code: 'invalid_token', detail: 'The token is for another audience.' },
    })
    expect((await gateway.ask('/orders/1', token)).status).toBe(200)
    expect(gateway.endpoint.asked).toHaveLength(1)
    const other = gateway.issue({ aud: 'https://api.test/other' })
    expect((await gateway.ask('/orders/1', other)).status).toBe(401)
  })

  test('its scopes', async () => {
    const gateway = await startIntrospecting()
    expect(await gateway.ask('/orders/1', gateway.issue({ scope: 'write:orders' }))).toMatchObject({
      status: 401,
      challenge: expect.stringContaining('error="insufficient_scope", scope="read:orders"'),
    })
  })

  test('how and when its user signed in', async () => {
    const gateway = await startIntrospecting({ route: { acr: 'strong', maxAuthAge: '5m' } })
    const now = Math.floor(Date.now() / 1000)
    expect((await gateway.ask('/orders/1', gateway.issue({ acr: 'strong', auth_time: now - 60 }))).status).toBe(200)
    for (const members of [{}, { acr: 'weak', auth_time: now }, { acr: 'strong', auth_time: now - 600 }]) {
      expect(await gateway.ask('/orders/1', gateway.issue(members))).toMatchObject({
        status: 401,
        challenge: expect.stringContaining('error="insufficient_user_authentication", error_description="A '),
        body: { code: 'insufficient_user_authentication' },
      })
    }
  })
})

describe('a WebSocket', () => {
  const start = async () => {
    const api = await startWebSocketApi()
    onTestFinished(() => api.close())
    const gateway = await startIntrospecting({
      route: { websocket: true },
      config: { upstreams: { orders: { url: api.url } } },
    })
    const open = async (token: string) =>
      openWebSocket(`${gateway.url}/orders/live`, { headers: { authorization: `Bearer ${token}` } })
    return { gateway, api, open }
  }

  test('is asked about again after a minute, and ends when its token is not active any more', async () => {
    const { gateway, open, api } = await start()
    const token = gateway.issue()
    await open(token)
    gateway.later(61_000)
    await until(() => expect(gateway.endpoint.asked).toHaveLength(2))
    expect(api.closed).toEqual([])
    gateway.endpoint.tokens.delete(token)
    gateway.later(61_000)
    await until(() => expect(api.closed).toEqual(['1008 the token is not active any more']))
    expect(gateway.endpoint.asked).toHaveLength(3)
  })

  test('ends when nobody can tell', async () => {
    const { gateway, open, api } = await start()
    await open(gateway.issue())
    gateway.endpoint.answer = (request) => void request.socket.destroy()
    gateway.later(61_000)
    await until(() => expect(api.closed).toEqual(['1013 it cannot be known whether the token was revoked']))
  })
})
