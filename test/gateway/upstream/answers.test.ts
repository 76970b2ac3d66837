import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { newSigningKey } from '../../support/token-issuer.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway({
    config: ({ upstream }) => ({
      upstreams: { orders: { url: upstream.url } },
      routes: [
        {
          id: 'read',
          path: '/orders/**',
          methods: ['GET'],
          audience: [orders],
          scopes: ['read:orders'],
          upstream: 'orders',
        },
        {
          id: 'two',
          path: '/two',
          audience: [orders],
          scopes: ['a', 'b'],
          upstream: 'orders',
          insufficientScopeStatus: 403,
        },
        { id: 'other', path: '/other', audience: ['https://api.test/other'], upstream: 'orders' },
        { id: 'personal', path: '/personal', audience: [orders], impersonation: 'deny', upstream: 'orders' },
        { id: 'careful', path: '/careful', audience: [orders], impersonation: 'read-only', upstream: 'orders' },
        { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
        { id: 'kept', path: '/kept/{name}', auth: 'none', upstream: 'orders', encodedSlash: 'keep' },
      ],
    }),
  })
})
afterAll(() => gateway.close())

/** Status, the challenge, and the whole body without the request's own id. */
const answerOf = async (response: Response) => {
  const { instance, ...body } = (await response.json()) as Record<string, unknown>
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(response.headers.get('x-request-id')).toBe(instance)
  return { status: response.status, challenge: response.headers.get('www-authenticate'), body }
}

const problem = (status: number, code: string, title: string, more: object = {}) => ({
  status,
  body: { type: `urn:surrogate:problem:${code}`, title, status, code, ...more },
})

/** RFC 9728 §5.1: where the client finds who issues tokens for this. */
const metadata = 'resource_metadata="https://api.test/.well-known/oauth-protected-resource/orders"'

describe('a request that is let through', () => {
  test('reaches the upstream once, with who is asking', async () => {
    const before = gateway.upstream.seen.length
    const token = await gateway.issuer.sign({
      sub: 'u1',
      scope: 'read:orders extra',
      client_id: 'app',
      sid: 's1',
      act: { sub: 'agent', act: { sub: 'boss, the' } },
    })
    const response = await gateway.call('/orders/42?expand=items', { token })
    expect(response.status).toBe(200)
    expect(gateway.upstream.seen.length).toBe(before + 1)
    const seen = gateway.upstream.seen.at(-1)!
    expect(seen).toMatchObject({ method: 'GET', url: '/orders/42?expand=items', body: '' })
    expect(seen.headers).toMatchObject({
      host: `127.0.0.1:${gateway.upstream.port}`,
      'x-auth-sub': 'u1',
      'x-auth-act': 'agent',
      'x-auth-act-chain': 'agent,boss%2C%20the',
      'x-auth-scope': 'read:orders extra',
      'x-auth-client-id': 'app',
      'x-auth-sid': 's1',
      authorization: `Bearer ${token}`,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': `127.0.0.1:${gateway.port}`,
      via: '1.1 surrogate',
      'x-request-id': response.headers.get('x-request-id'),
    })
  })

  test('without authentication carries no identity', async () => {
    const response = await fetch(`${gateway.url}/public/x`, { headers: { 'x-auth-sub': 'admin' } })
    expect(response.status).toBe(200)
    const names = Object.keys(gateway.upstream.seen.at(-1)!.headers)
    expect(names.filter((name) => name.startsWith('x-auth'))).toEqual([])
  })

  test('identities in other scripts are percent-encoded UTF-8', async () => {
    const token = await gateway.issuer.sign({ sub: 'žofie\r\nx-auth-sub: root', scope: 'read:orders' })
    await gateway.call('/orders', { token })
    const { headers } = gateway.upstream.seen.at(-1)!
    expect(headers['x-auth-sub']).toBe('%C5%BEofie%0D%0Ax-auth-sub:%20root')
  })
})

describe('no route', () => {
  // What the admin listener serves is nowhere here.
  test.each([['/nowhere'], ['/Orders'], ['/ordersx'], ['/'], ['/livez'], ['/readyz'], ['/metrics']])(
    '%s is 404 before any token work',
    async (path) => {
      const response = await gateway.call(path, { token: 'not-a-token' })
      expect(await answerOf(response)).toEqual({
        challenge: null,
        ...problem(404, 'not_found', 'No route matches this request.'),
      })
    },
  )

  test('nor for another method', async () => {
    expect((await gateway.call('/orders', { method: 'PATCH' })).status).toBe(404)
  })
})

describe('no token: 401 with a challenge that names no error', () => {
  test.each([
    ['no Authorization', undefined],
    ['another scheme', 'Basic dTpw'],
    ['a scheme that begins the same', 'Bearerx abc'],
  ])('%s', async (_, authorization) => {
    const response = await fetch(`${gateway.url}/orders`, authorization ? { headers: { authorization } } : {})
    expect(await answerOf(response)).toEqual({
      challenge: `Bearer ${metadata}`,
      ...problem(401, 'token_missing', 'An access token is needed.'),
    })
  })

  test('a token in the query or a cookie is none', async () => {
    const token = await gateway.issuer.sign({ scope: 'read:orders' })
    const response = await fetch(`${gateway.url}/orders?access_token=${token}`, {
      headers: { cookie: `token=${token}` },
    })
    expect(response.status).toBe(401)
  })
})

describe('a token that is not good: 401 invalid_token, and why', () => {
  const now = () => Math.floor(Date.now() / 1000)
  test.each<[string, () => Promise<string>, string]>([
    ['expired', () => gateway.issuer.sign({ exp: now() - 6, iat: now() - 60 }), 'The token has expired.'],
    [
      'for another audience',
      () => gateway.issuer.sign({ aud: 'https://api.test/other' }),
      'The token is for another audience.',
    ],
    [
      'from another issuer',
      () => gateway.issuer.sign({ iss: 'https://evil.test' }),
      'The token is from an issuer that is not accepted here.',
    ],
    ['of another type', () => gateway.issuer.sign({}, { typ: 'JWT' }), 'The token is not of an accepted type.'],
    ['without subject', () => gateway.issuer.sign({ sub: undefined as never }), 'The token has no subject.'],
    ['with an unreadable actor', () => gateway.issuer.sign({ act: 'agent' }), 'An act of the token is no object.'],
    ['not valid yet', () => gateway.issuer.sign({ nbf: now() + 60 }), 'The token is not valid yet.'],
    ['without kid', () => gateway.issuer.sign({}, { kid: undefined as never }), 'The token does not name its key.'],
    [
      'signed by somebody who borrows a kid',
      async () => gateway.issuer.sign({}, {}, await newSigningKey('ES256', gateway.issuer.key.kid)),
      'The signature of the token is not valid.',
    ],
    [
      'of another algorithm',
      async () => gateway.issuer.sign({}, {}, await newSigningKey('PS256', gateway.issuer.key.kid)),
      'The token is signed with an algorithm that is not accepted.',
    ],
    ['no JWT', async () => 'abc', 'The token does not have the three parts of a JWT.'],
    ['a personal access token', async () => 'pat_0123456789', 'The token does not have the three parts of a JWT.'],
    ['two tokens', async () => `${await gateway.issuer.sign()},x`, 'A part of the token is not base64url.'],
  ])('%s', async (_, token, detail) => {
    const response = await gateway.call('/orders', { token: await token() })
    expect(await answerOf(response)).toEqual({
      challenge: `Bearer error="invalid_token", error_description="${detail}", ${metadata}`,
      ...problem(401, 'invalid_token', 'The access token is not valid.', { detail }),
    })
  })

  test('tampered', async () => {
    const [header, claims, signature] = (await gateway.issuer.sign({ scope: 'none' })).split('.')
    const changed = { ...JSON.parse(Buffer.from(claims!, 'base64url').toString()), scope: 'read:orders' }
    const token = `${header}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}.${signature}`
    expect((await gateway.call('/orders', { token })).status).toBe(401)
  })

  test('a token verified for one route is still refused on a route of another audience', async () => {
    const token = await gateway.issuer.sign({ scope: 'read:orders' })
    expect((await gateway.call('/orders', { token })).status).toBe(200)
    const response = await gateway.call('/other', { token })
    expect(await answerOf(response)).toMatchObject({
      status: 401,
      body: { detail: 'The token is for another audience.' },
    })
  })
})

describe('what the policy refuses', () => {
  test('a missing scope: 401 with the scopes that are needed (interface §7)', async () => {
    const response = await gateway.call('/orders', { scope: 'read:order read' })
    expect(await answerOf(response)).toEqual({
      challenge: `Bearer error="insufficient_scope", scope="read:orders", ${metadata}`,
      ...problem(401, 'insufficient_scope', 'The access token does not carry the needed scope.', {
        reason: 'insufficient_scope',
      }),
    })
  })

  test('with 403 where the route says so, for one of two scopes too', async () => {
    const response = await gateway.call('/two', { scope: 'a' })
    expect(await answerOf(response)).toEqual({
      challenge: `Bearer error="insufficient_scope", scope="a b", ${metadata}`,
      ...problem(403, 'insufficient_scope', 'The access token does not carry the needed scope.', {
        reason: 'insufficient_scope',
      }),
    })
  })

  test('acting for somebody, where the route does not allow it: 403', async () => {
    const token = await gateway.issuer.sign({ act: { sub: 'agent' } })
    const refused = {
      challenge: null,
      ...problem(403, 'impersonation_denied', 'This cannot be done while acting for somebody.', {
        reason: 'impersonation_denied',
      }),
    }
    expect(await answerOf(await gateway.call('/personal', { token }))).toEqual(refused)
    expect((await gateway.call('/personal')).status).toBe(200)
    expect((await gateway.call('/careful', { token })).status).toBe(200)
    expect(await answerOf(await gateway.call('/careful', { token, method: 'POST' }))).toEqual(refused)
  })

  test('HEAD is answered without a body', async () => {
    const response = await gateway.call('/two', { scope: '', method: 'HEAD' })
    expect([response.status, await response.text()]).toEqual([403, ''])
    expect(response.headers.get('www-authenticate')).toContain('insufficient_scope')
  })
})

describe('the path that is decided on is the path that is sent', () => {
  test('escapes are normalised', async () => {
    await gateway.call('/%6frders/%7e%c3%a9')
    expect(gateway.upstream.seen.at(-1)!.url).toBe('/orders/~%C3%A9')
  })

  test('an encoded slash only where the route keeps it', async () => {
    const refused = await gateway.call('/public/a%2fb')
    expect(await answerOf(refused)).toEqual({
      challenge: null,
      ...problem(400, 'invalid_request', 'The request cannot be read in exactly one way.', {
        detail: 'The path holds an encoded slash.',
      }),
    })
    expect((await gateway.call('/kept/a%2fb')).status).toBe(200)
    expect(gateway.upstream.seen.at(-1)!.url).toBe('/kept/a%2Fb')
  })
})

test('metrics count every answer by route and status', async () => {
  const { text } = await gateway.metrics.render()
  expect(text).toMatch(/surrogate_gateway_requests_total\{route="read",status="200"\} [1-9]/)
  expect(text).toMatch(/surrogate_gateway_requests_total\{route="",status="404"\} [1-9]/)
  expect(text).toMatch(/surrogate_gateway_verified_tokens [1-9]/)
})
