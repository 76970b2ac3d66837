import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCorsRules } from '../../../gateway/config/cors-rules.ts'
import { isOriginPattern } from '../../../gateway/config/settings/values.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'

const corsFields = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary'))

describe('which pages may ask', () => {
  test.each<[string, string, boolean]>([
    ['https://app.test', 'https://app.test', true],
    ['https://app.test', 'http://app.test', false],
    ['https://app.test', 'https://app.test:8443', false],
    ['https://app.test', 'https://app.test.evil.test', false],
    ['https://*.app.test', 'https://a.app.test', true],
    ['https://*.app.test', 'https://a.b.app.test', true],
    ['https://*.app.test', 'https://app.test', false],
    ['https://*.app.test', 'https://evilapp.test', false],
    ['https://*.app.test', 'https://evil.test/.app.test', false],
    ['https://*.app.test', 'https://evil.test#.app.test', false],
    ['https://*.app.test', 'https://u@evil.app.test', false],
    ['https://*.app.test:8443', 'https://a.app.test:8443', true],
    ['https://app.test', 'null', false],
    ['https://*.app.test', 'null', false],
  ])('%s and %s: %s', (pattern, origin, expected) => {
    const settings = { origins: [pattern], methods: [], headers: [], exposeHeaders: [], maxAge: 0, credentials: false }
    expect(createCorsRules(settings, []).allowed(origin) === origin).toBe(expected)
  })

  test('patterns are whole origins', () => {
    const texts = [
      '*',
      'https://app.test',
      'http://localhost:5173',
      'https://*.app.test',
      'https://*',
      'https://app.test/',
      'https://app.test:443',
      'https://a.*.test',
      'https://App.test',
      'app.test',
      'null',
      'ftp://app.test',
      '*.app.test',
    ]
    expect(texts.filter(isOriginPattern)).toEqual(texts.slice(0, 4))
  })
})

describe('a route with cors', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    const route = { audience: [orders], scopes: ['read:orders'], upstream: 'orders' }
    gateway = await startTestGateway({
      upstream: (_request, response) =>
        void response
          .writeHead(200, {
            'access-control-allow-origin': '*',
            'access-control-allow-credentials': 'true',
            vary: 'Accept',
            'x-plan': 'gold',
          })
          .end('from the upstream'),
      config: () => ({
        routes: [
          {
            ...route,
            id: 'orders',
            path: '/orders/**',
            methods: ['GET', 'PUT'],
            cors: {
              origins: ['https://app.test', 'https://*.shop.test'],
              headers: ['Authorization', 'X-Trace'],
              exposeHeaders: ['X-Plan'],
              maxAge: '2h',
              credentials: true,
            },
          },
          { ...route, id: 'anybody', path: '/anybody', cors: { origins: ['*'] } },
          { ...route, id: 'none', path: '/none', auth: 'none', audience: [], scopes: [] },
        ],
      }),
    })
  })
  afterAll(() => gateway.close())

  const preflight = (path: string, origin: string, method = 'PUT') =>
    fetch(gateway.url + path, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'authorization' },
    })

  test('answers preflights itself, without a token', async () => {
    const answer = await preflight('/orders/1', 'https://app.test')
    expect([answer.status, await answer.text()]).toEqual([204, ''])
    expect(corsFields(answer.headers)).toEqual({
      'access-control-allow-origin': 'https://app.test',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET, PUT',
      'access-control-allow-headers': 'authorization, x-trace',
      'access-control-max-age': '7200',
      vary: 'Origin',
    })
    expect(gateway.upstream.seen).toEqual([])
  })

  test('tells a page that may not ask nothing but that', async () => {
    const answer = await preflight('/orders/1', 'https://evil.test')
    expect([answer.status, corsFields(answer.headers)]).toEqual([204, { vary: 'Origin' }])
  })

  test('is found by the method that is asked about', async () => {
    expect((await preflight('/orders/1', 'https://app.test', 'DELETE')).status).toBe(404)
    expect((await preflight('/nowhere', 'https://app.test')).status).toBe(404)
    // Without cors a preflight is a request like any other.
    expect(await (await preflight('/none', 'https://app.test')).text()).toBe('from the upstream')
  })

  test('replaces what the upstream says about it, and keeps the rest', async () => {
    const headersFor = async (origin: string) => {
      const answer = await gateway.call('/orders/1', { headers: await withToken({ origin }) })
      expect([answer.status, answer.headers.get('x-plan')]).toEqual([200, 'gold'])
      return corsFields(answer.headers)
    }
    expect(await headersFor('https://a.shop.test')).toEqual({
      'access-control-allow-origin': 'https://a.shop.test',
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': 'x-plan',
      vary: 'Accept, Origin',
    })
    expect(await headersFor('https://evil.test')).toEqual({ vary: 'Accept, Origin' })
  })

  test('lets a page read why it was refused', async () => {
    const answer = await fetch(`${gateway.url}/orders/1`, { headers: { origin: 'https://app.test' } })
    expect(answer.status).toBe(401)
    expect(corsFields(answer.headers)).toMatchObject({
      'access-control-allow-origin': 'https://app.test',
      vary: 'Origin',
    })
  })

  test('for everybody: the same answer for all, without credentials', async () => {
    const answer = await preflight('/anybody', 'https://who.test')
    expect(corsFields(answer.headers)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': 'authorization, content-type',
      'access-control-max-age': '600',
    })
  })

  test('two origins are none', async () => {
    const answer = await fetch(`${gateway.url}/orders/1`, {
      headers: [
        ['origin', 'https://app.test'],
        ['origin', 'https://evil.test'],
      ],
    })
    expect([answer.status, corsFields(answer.headers)]).toEqual([401, { vary: 'Origin' }])
  })

  const withToken = async (headers: Record<string, string>) => ({
    ...headers,
    authorization: `Bearer ${await gateway.issuer.sign({ scope: 'read:orders' })}`,
  })
})
