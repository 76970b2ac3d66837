import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decisionRecord } from '../../../gateway/inspection/decision-answers.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'

let gateway: TestGateway
let foreign: TokenIssuer
let client: ReturnType<typeof inspectionClient>

beforeAll(async () => {
  foreign = await startTokenIssuer()
  gateway = await startTestGateway({
    config: ({ issuer, upstream }) => ({
      inspection: { port: 0, audience: inspectionAudience, issuers: [issuer.issuer] },
      issuers: [{ issuer: issuer.issuer }, { issuer: foreign.issuer }],
      routes: [
        {
          id: 'orders',
          path: '/orders/{id}',
          audience: ['https://api.test/orders'],
          issuers: [issuer.issuer],
          scopes: ['read:orders'],
          upstream: 'orders',
        },
        { id: 'any', path: '/orders/**', auth: 'none', upstream: 'orders' },
        { id: 'own', path: '/orders/own', hosts: ['api.test'], auth: 'none', upstream: 'orders' },
      ],
      upstreams: { orders: { url: upstream.url } },
    }),
  })
  client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
})
afterAll(async () => {
  await gateway.close()
  await foreign.close()
})

describe('who may ask', () => {
  const codeOf = async (answer: Response) => [answer.status, ((await answer.json()) as { code: string }).code]

  test.each([
    ['another audience', { aud: 'https://api.test/orders' }, 401, 'invalid_token'],
    ['no scope', { scope: '' }, 403, 'insufficient_scope'],
    ['the other scope only', { scope: 'evaluate' }, 403, 'insufficient_scope'],
    ['an expired token', { exp: 1_700_000_000, iat: 1_699_999_000 }, 401, 'invalid_token'],
    ['somebody who acts for a user', { act: { sub: 'support' } }, 403, 'impersonation_denied'],
    ['a token bound to a key', { cnf: { jkt: 'x' } }, 401, 'invalid_token'],
  ])('%s is refused', async (_, claims, status, code) => {
    expect(await codeOf(await client.call('/routes', { claims }))).toEqual([status, code])
  })

  test('no token, and one of an issuer that is trusted by routes only', async () => {
    const none = await fetch(`${gateway.inspectionUrl}/routes`)
    expect(none.headers.get('www-authenticate')).toBe('Bearer')
    expect(await codeOf(none)).toEqual([401, 'token_missing'])
    const token = await foreign.sign({ aud: inspectionAudience, scope: 'inspect' })
    const answer = await client.call('/routes', { headers: { authorization: `Bearer ${token}` } })
    expect(await codeOf(answer)).toEqual([401, 'invalid_token'])
    const inQuery = await fetch(`${gateway.inspectionUrl}/routes?access_token=${await client.token()}`)
    expect(inQuery.status).toBe(401)
  })

  test('what there is not is told only to those who may ask', async () => {
    expect((await fetch(`${gateway.inspectionUrl}/nowhere`)).status).toBe(401)
    expect((await client.call('/nowhere')).status).toBe(404)
    expect((await client.call('/routes', { method: 'POST' })).status).toBe(404)
    // The public listener has none of it.
    expect((await fetch(`${gateway.url}/routes`)).status).toBe(404)
  })

  test('`inspect` does not evaluate', async () => {
    const claims = { scope: 'inspect' }
    expect((await client.post('/evaluate', { input: {} }, { claims })).status).toBe(403)
    expect((await client.post('/tests', '', { claims })).status).toBe(403)
  })
})

test('no answer is cached or taken for something else; unknown parameters are refused', async () => {
  for (const answer of [await client.call('/routes'), await client.call('/nowhere')]) {
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  }
  for (const path of ['/routes?x=1', '/decisions?verdict=maybe', '/decisions?limit=0', '/decisions?limit=1&limit=2']) {
    const answer = await client.call(path)
    expect([path, answer.status]).toEqual([path, 400])
    expect(await answer.json()).toMatchObject({ code: 'invalid_request', detail: expect.any(String) })
  }
})

test('the routes stand in the order of precedence, and upstreams with their targets', async () => {
  const { routes } = await client.get('routes')
  expect(routes.map(({ id }) => id)).toEqual(['own', 'orders', 'any'])
  expect(routes[1]).toMatchObject({ path: '/orders/{id}', scopes: ['read:orders'], upstream: 'orders' })
  const { upstreams } = await client.get('upstreams')
  expect(upstreams).toMatchObject([{ name: 'orders', targets: [{ name: gateway.upstream.url }] }])
})

test('routes come in pages, and by id or a part of what they take', async () => {
  const page = async (query: string) => {
    const { routes, ...rest } = await client.get('routes', `/routes?${query}`)
    return { ids: routes.map(({ id }) => id), ...rest }
  }
  expect(await page('limit=2')).toEqual({ ids: ['own', 'orders'], total: 3, cursor: 'orders' })
  expect(await page('limit=2&cursor=orders')).toEqual({ ids: ['any'], total: 3 })
  expect(await page('limit=3')).toEqual({ ids: ['own', 'orders', 'any'], total: 3 })
  expect(await page('route=orders')).toEqual({ ids: ['orders'], total: 1 })
  expect(await page('search=%2FORDERS')).toMatchObject({ ids: expect.arrayContaining(['orders']) })
  expect(await page('search=nothing')).toEqual({ ids: [], total: 0 })
  // Such as one of a configuration that was replaced.
  const gone = await client.call('/routes?cursor=gone')
  expect([gone.status, await gone.json()]).toMatchObject([400, { detail: expect.stringContaining('first page') }])
})

test('every decision and refusal is found by what it was', async () => {
  const id = async (answer: Response) => answer.headers.get('x-request-id')!
  const sid = 'login_1'
  const token = await gateway.issuer.sign({ sub: 'alice', sid, scope: 'read:orders' })
  const allowed = await id(await gateway.call('/orders/1', { token }))
  const denied = await id(await gateway.call('/orders/1', { scope: 'other' }))
  const missing = await id(await fetch(`${gateway.url}/orders/1`))
  const unknown = await id(await fetch(`${gateway.url}/nowhere`))
  const found = async (query: string) => {
    const { decisions } = await client.get('decisions', `/decisions${query}`)
    return decisions.map(({ decision_id }) => decision_id)
  }
  await expect.poll(async () => (await found('')).slice(0, 4)).toEqual([unknown, missing, denied, allowed])
  expect(await found('?limit=1')).toEqual([unknown])
  expect(await client.get('decisions', '/decisions?limit=1')).toMatchObject({ more: true })
  expect(await found('?verdict=allowed')).toEqual([allowed])
  expect((await found('?verdict=denied')).slice(0, 3)).toEqual([unknown, missing, denied])
  expect(await found('?route=orders')).toEqual([missing, denied, allowed])
  expect(await found(`?sid=${sid}`)).toEqual([allowed])
  expect(await found('?subject=alice&verdict=denied')).toEqual([])
  expect(await found(`?request=${denied}`)).toEqual([denied])

  const record = await client.get('decision', `/decisions/${allowed}`)
  expect(record).toMatchObject({
    decision_id: allowed,
    path: 'surrogate/gateway/decision',
    input: { subject: { id: 'alice' }, token: { sid } },
    result: { allow: true },
    verdict: 'allowed',
    status: 200,
    route: 'orders',
    target: gateway.upstream.url,
    duration: expect.any(Number),
  })
  expect(JSON.stringify(record)).not.toContain(token)
  expect(decisionRecord.parse(record)).toEqual(record)
  expect((await client.call('/decisions/none')).status).toBe(404)
})

test('an upstream that is gone is a failure', async () => {
  const closed = await startTestGateway({
    config: () => ({
      inspection: { port: 0, audience: inspectionAudience },
      upstreams: { orders: { url: 'http://127.0.0.1:1' } },
    }),
  })
  try {
    const own = inspectionClient(() => closed.inspectionUrl!, closed.issuer)
    await closed.call('/orders/1')
    await expect
      .poll(async () => (await own.get('decisions', '/decisions?verdict=failed')).decisions)
      .toMatchObject([{ verdict: 'failed', status: 502, code: 'upstream_unavailable' }])
  } finally {
    await closed.close()
  }
})

describe('evaluation', () => {
  const input = (scopes: string[]) => ({
    version: 1,
    request: { method: 'GET', path: '/orders/1' },
    route: { id: 'orders', scopes: ['read:orders'], audience: [], impersonation: 'allow', context: {} },
    token: { scopes, aud: [], iss: 'x', exp: 1, impersonation: false, claims: {} },
  })

  test('asks the policies in force, and shows the rules that were asked', async () => {
    const yes = await client.post('/evaluate', { input: input(['read:orders']) })
    expect(yes).toMatchObject({ status: 200, body: { result: { allow: true }, units: expect.any(Number) } })
    expect(yes.body['units']).toBeGreaterThan(0)
    const no = await client.post('/evaluate', { input: input([]) })
    expect(no.body).toMatchObject({
      result: { allow: false, reason: 'insufficient_scope' },
      rules: expect.arrayContaining([expect.objectContaining({ name: expect.any(String), held: expect.any(Boolean) })]),
    })
  })

  test('refuses what it cannot ask', async () => {
    expect(await client.post('/evaluate', '{')).toMatchObject({ status: 400 })
    expect(await client.post('/evaluate', { input: {}, x: 1 })).toMatchObject({ status: 400 })
    expect(await client.post('/evaluate', { entrypoint: 'none', input: {} })).toMatchObject({ status: 400 })
    expect(await client.post('/evaluate', { input: 'x'.repeat(200_000) })).toMatchObject({ status: 413 })
    const large = await client.post('/evaluate', { input: 'x'.repeat(70_000) })
    expect(large).toMatchObject({ status: 200, body: { error: expect.stringContaining('input') } })
  })

  test('runs the tests of the rules', async () => {
    const { status, body } = await client.post('/tests', '')
    expect(status).toBe(200)
    expect(body).toMatchObject({ passed: true, report: expect.stringContaining('PASS') })
  })
})
