import { afterEach, describe, expect, test } from 'vitest'
import { StartupError } from '../../../platform/startup-error.ts'
import type { PolicyInput, PolicySet } from '../../../policies/decide.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'

const running: TestGateway[] = []
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.close()
})

/** A gateway whose policy is the given function; the engine itself is tested with the policies. */
const gatewayWith = async (evaluate: (input: PolicyInput) => unknown, routes?: object[]) => {
  const set: PolicySet = {
    revision: 'r1',
    entrypoints: ['surrogate/gateway/decision', 'custom/decision'],
    evaluate: (_, input) => evaluate(input as PolicyInput),
  }
  const gateway = await startTestGateway({
    policies: { current: () => set },
    config: ({ upstream }) => ({
      upstreams: { orders: { url: upstream.url } },
      ...(routes && { routes }),
    }),
  })
  running.push(gateway)
  return gateway
}

describe('a policy without a usable answer refuses', () => {
  test.each<[string, () => unknown]>([
    ['undefined', () => undefined],
    ['a string', () => 'true'],
    ['one', () => 1],
    ['an object without allow', () => ({ reason: 'x' })],
    ['allow that is no boolean', () => ({ allow: 'true' })],
    ['an unknown member', () => ({ allow: true, alow: false })],
    ['a status', () => ({ allow: true, status: 200 })],
    ['an identity header', () => ({ allow: true, headers: { 'x-auth-sub': 'root' } })],
    ['a broken header', () => ({ allow: true, headers: { 'x-plan': 'a\r\nb: c' } })],
    [
      'an exception',
      () => {
        throw new Error('boom')
      },
    ],
  ])('%s', async (_, evaluate) => {
    const gateway = await gatewayWith(evaluate)
    const response = await gateway.call('/orders')
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ code: 'policy_error', reason: 'policy_error' })
    expect(gateway.upstream.seen).toEqual([])
  })
})

test("a denial carries the policy's reason and detail", async () => {
  const gateway = await gatewayWith(() => ({ allow: false, reason: 'office_hours', detail: 'Only in office hours.' }))
  const response = await gateway.call('/orders')
  const { instance: _, ...body } = (await response.json()) as Record<string, unknown>
  expect(response.status).toBe(403)
  expect(body).toEqual({
    type: 'urn:surrogate:problem:policy_denied',
    title: 'The policy refused this request.',
    status: 403,
    code: 'policy_denied',
    detail: 'Only in office hours.',
    reason: 'office_hours',
  })
})

test('headers of the policy replace those of the client', async () => {
  const gateway = await gatewayWith(() => ({ allow: true, headers: { 'X-Plan': 'gold' } }))
  await gateway.call('/orders', {
    headers: { authorization: `Bearer ${await gateway.issuer.sign()}`, 'x-plan': 'free' },
  })
  expect(gateway.upstream.seen[0]!.rawHeaders.join('\n').match(/x-plan\n.*/gi)).toEqual(['x-plan\ngold'])
})

test('the policy sees exactly what routes and upstream see', async () => {
  let seen: PolicyInput | undefined
  const gateway = await gatewayWith(
    (input) => {
      seen = input
      return true
    },
    [
      {
        id: 'order',
        path: '/orders/{id}/**',
        audience: [orders],
        scopes: ['read:orders'],
        policyHeaders: ['accept-language'],
        context: { tier: 1 },
        entrypoint: 'custom/decision',
        upstream: 'orders',
      },
      { id: 'open', path: '/open', auth: 'none', upstream: 'orders' },
    ],
  )
  const exp = Math.floor(Date.now() / 1000) + 60
  const token = await gateway.issuer.sign({
    scope: 'a  b',
    jti: 'j',
    sid: 's',
    exp,
    act: { sub: 'x' },
    plan: 'gold',
    client_id: 'c',
  })
  await gateway.call('/orders/%34%32/x%20y?a=1&a=2', {
    headers: { authorization: `bearer ${token}`, 'accept-language': 'de', cookie: 'secret=1' },
  })
  const { iss, iat } = seen!.token!
  expect(seen).toEqual({
    version: 1,
    request: {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      method: 'GET',
      scheme: 'http',
      host: `127.0.0.1:${gateway.port}`,
      path: '/orders/42/x%20y',
      segments: ['orders', '42', 'x y'],
      folded: { path: '/orders/42/x%20y', segments: ['orders', '42', 'x y'] },
      query: { a: ['1', '2'] },
      headers: { 'accept-language': ['de'] },
      clientIp: '127.0.0.1',
    },
    route: {
      id: 'order',
      params: { id: '42' },
      scopes: ['read:orders'],
      audience: [orders],
      impersonation: 'allow',
      context: { tier: 1 },
    },
    token: {
      iss: gateway.issuer.issuer,
      aud: [orders],
      scopes: ['a', 'b'],
      jti: 'j',
      sid: 's',
      impersonation: true,
      iat,
      exp,
      claims: {
        iss,
        iat,
        exp,
        sub: 'u1',
        aud: orders,
        scope: 'a  b',
        jti: 'j',
        sid: 's',
        act: { sub: 'x' },
        plan: 'gold',
        client_id: 'c',
      },
    },
    subject: { id: 'u1' },
    actor: { id: 'x', chain: ['x'] },
    client: { id: 'c' },
    now: expect.any(Number),
  })
  expect(gateway.upstream.seen[0]!.url).toBe('/orders/42/x%20y?a=1&a=2')

  await fetch(`${gateway.url}/open`)
  expect(Object.keys(seen!).sort()).toEqual(['now', 'request', 'route', 'version'])
})

test('a route whose entrypoint the policies lack keeps the gateway from starting', async () => {
  const starting = gatewayWith(
    () => true,
    [{ id: 'x', path: '/x', auth: 'none', upstream: 'orders', entrypoint: 'missing/decision' }],
  )
  await expect(starting).rejects.toThrow(StartupError)
  await expect(starting).rejects.toThrow('route x: missing/decision')
})
