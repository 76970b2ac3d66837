import { get as httpGet } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Browser } from '../../../support/browser.ts'
import { consoleCookie } from '../../../support/console.ts'
import {
  type ConsoleWithGateways,
  type OneGateway,
  orders,
  startConsoleWithGateways,
} from '../../../support/console-gateways.ts'
import { accessTokenType } from '../../../support/issuer.ts'
import { until } from '../../../support/until.ts'

/** What the console's server answers of two gateways, one of them with workers. */

let all: ConsoleWithGateways
let one: OneGateway
let two: OneGateway
let owner: Browser

beforeAll(async () => {
  all = await startConsoleWithGateways()
  ;[one, two] = await Promise.all([all.addGateway('one'), all.addWorkers('two')])
  all.asked.sort((first, second) => (first.name < second.name ? -1 : 1))
  owner = await all.home.browserOf(await all.home.createMember('owner'))
  await until(async () =>
    expect((await get('')).body.gateways.map(({ state }: { state: string }) => state)).toEqual(['answers', 'answers']),
  )
})

afterAll(() => all.close())

const get = (path: string, browser = owner) => all.home.call(browser, 'GET', `/gateways${path}`)

test('gateways are told with the revision that runs', async () => {
  const { body } = await get('')
  expect(body).toEqual({
    gateways: [
      { name: 'one', state: 'answers', revision: expect.stringMatching(/^\w/) },
      { name: 'two', state: 'answers', revision: expect.stringMatching(/^\w/) },
    ],
    audience: all.audience,
  })
})

test('decisions of all gateways are one list, newest first, and one is found wherever it is', async () => {
  const ids: string[] = []
  for (const gateway of [one, two, one, two]) ids.push(await gateway.decide())
  const list = await until(async () => {
    const { body } = await get('/decisions')
    expect(body).toMatchObject({ more: false, missing: [] })
    expect(body.decisions).toHaveLength(4)
    return body.decisions as { gateway: string; decision_id: string; timestamp: string }[]
  })
  expect(new Map(list.map(({ decision_id: id, gateway }) => [id, gateway]))).toEqual(
    new Map(ids.map((id, at) => [id, at % 2 === 0 ? 'one' : 'two'])),
  )
  // When a request ended is after its answer: the order is not always that of the callers.
  const times = list.map(({ timestamp }) => timestamp)
  expect(times).toEqual(times.toSorted().reverse())
  expect((await get('/decisions?limit=1')).body).toMatchObject({
    decisions: [{ decision_id: list[0]!.decision_id }],
    more: true,
  })
  expect((await get('/decisions?gateway=one')).body.decisions).toHaveLength(2)
  expect((await get('/decisions?gateway=three')).status).toBe(404)
  expect((await get('/decisions?verdict=other')).status).toBe(400)
  expect((await get(`/decisions/${ids[1]}`)).body).toMatchObject({ gateway: 'two', decision_id: ids[1] })
  expect((await get(`/decisions/${ids[2]}/why`)).body).toMatchObject({ gateway: 'one', request: ids[2] })
  expect(await get('/decisions/unknown')).toMatchObject({
    status: 404,
    body: { code: 'entity.not_found', data: { missing: [] } },
  })
})

test('a gateway’s own answer comes as it is, by what the person may do', async () => {
  const auditor = await all.home.browserOf(await all.home.createMember('auditor'))
  const evaluate = { input: { request: { path: '/x' } } }
  expect(await get('/two/routes', auditor)).toMatchObject({
    status: 200,
    body: { routes: [{ id: 'orders' }, { id: 'public' }] },
  })
  expect((await get('/one/match?url=http://a.test/orders/1', auditor)).body).toMatchObject({ route: 'orders' })
  expect((await get('/one/issuers', auditor)).body).toMatchObject({
    issuers: [
      {
        issuer: all.home.issuer.issuer,
        keys: expect.arrayContaining([expect.objectContaining({ alg: 'ES256', kty: 'EC' })]),
        revocations: { entries: expect.any(Number) },
      },
    ],
  })
  expect((await get('/two/issuers', auditor)).body.issuers[0].keys[0]).toEqual({
    ...{ kid: expect.any(String), alg: 'ES256', kty: 'EC' },
    since: expect.stringMatching(/^\d{4}-.*Z$/),
  })
  expect(await all.home.call(owner, 'POST', '/gateways/two/evaluate', evaluate)).toMatchObject({
    status: 200,
    body: { result: { allow: true } },
  })
  // The gateway refuses: the token of the person does not have the scope.
  expect(await all.home.call(auditor, 'POST', '/gateways/two/evaluate', evaluate)).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope' },
  })
  expect(await get('/one/match?url=nothing', auditor)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  expect((await get('/one/nothing', auditor)).status).toBe(404)
})

test('whoever has no permission for it asks no gateway', async () => {
  const before = [one.line.count, two.line.count]
  const integrator = await all.home.browserOf(await all.home.createMember('integrator'))
  for (const path of ['', '/decisions', '/decisions/stream', '/decisions/x', '/sessions/x', '/one/routes'])
    expect([path, await get(path, integrator)]).toMatchObject([path, { status: 403, body: { code: 'auth.forbidden' } }])
  expect([one.line.count, two.line.count]).toEqual(before)
})

test('nobody but a page of the console may ask', async () => {
  const foreign = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }
  for (const path of ['', '/decisions/stream', '/one/routes'])
    expect(await all.home.call(owner, 'GET', `/gateways${path}`, undefined, { headers: foreign })).toMatchObject({
      status: 403,
      body: { code: 'console.cross_site' },
    })
  const post = (headers: Record<string, string>) =>
    all.home.call(owner, 'POST', '/gateways/one/evaluate', { input: {} }, { headers })
  expect((await post(foreign)).status).toBe(403)
  expect((await post({ 'content-type': 'text/plain' })).status).toBe(403)
  expect(await get('', all.home.flow.browser())).toMatchObject({ status: 401, body: { code: 'console.signed_out' } })
  const headers = { authorization: 'Bearer forged' }
  expect(await all.home.call(all.home.flow.browser(), 'GET', '/gateways', undefined, { headers })).toMatchObject({
    status: 401,
  })
})

test('a path leads nowhere but to the inspection API of a gateway of the settings', async () => {
  const odd = [
    '/one/..%2froutes',
    '/one/%2e%2e/routes',
    '/one/%5croutes',
    '/one//evil.test/routes',
    '/one/routes%00',
    '/evil.test/routes',
    '/127.0.0.1:80/routes',
    '/one',
    '/one/',
    '/one/a/b/c/d/e',
    '/one/decisions/stream',
    '/__proto__/routes',
  ]
  for (const path of odd) {
    const { hostname, port } = new URL(all.home.issuer.url)
    expect([path, await statusOf(hostname, Number(port), `/console/gateways${path}`)]).toEqual([path, 404])
  }
  expect((await get('/one/routes?a=1&a=2')).status).toBe(400)
  expect((await all.home.call(owner, 'DELETE', '/gateways/one/routes')).status).toBe(405)
  expect((await all.home.call(owner, 'POST', '/gateways/decisions', {})).status).toBe(405)
})

/** As it is written: `fetch` would resolve the path first. */
const statusOf = (host: string, port: number, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { cookie: `${consoleCookie}=${owner.cookies.get(consoleCookie)}`, 'sec-fetch-site': 'same-origin' }
    httpGet({ host, port, path, headers, agent: false }, (answer) => resolve(answer.resume().statusCode!)).on(
      'error',
      reject,
    )
  })

test('what changes a gateway needs a fresh sign-in', async () => {
  const person = await all.home.createMember('owner')
  const browser = await all.home.browserOf(person)
  const put = () => all.home.call(browser, 'PUT', '/gateways/one/nothing', {})
  // It got to the gateway, which has no such thing.
  expect(await put()).toMatchObject({ status: 404, body: { code: 'not_found' } })
  await all.home.issuer.sql(
    `UPDATE authorizations SET authenticated_at = now() - interval '6 minutes' WHERE user_id = $1`,
    [person.id],
  )
  expect(await put()).toMatchObject({ status: 401, body: { code: 'console.step_up_required', data: { maxAge: 300 } } })
})

test('an impersonation that is ended is told as ended by both gateways within a second', async () => {
  const { issuer } = all.home
  const [customer, agent] = [await issuer.createUser(), await issuer.createUser()]
  const app = await issuer.createApplication({ allowTokenExchange: true })
  await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  await issuer.grantUser(customer.id, orders, ['read:orders'])
  const { body } = await issuer.exchange(app, await issuer.subjectToken(customer.id), {
    actor_token: await issuer.actorToken(app, agent.id),
    actor_token_type: accessTokenType,
    resource: orders,
    scope: 'read:orders',
  })
  const token: string = body.access_token
  const { sid } = await issuer.verify(token, orders)
  const statuses = () =>
    Promise.all(
      [one, two].map(async ({ url }) => {
        const answer = await fetch(`${url}/orders/1`, { headers: { authorization: `Bearer ${token}` } })
        await answer.text()
        return answer.status
      }),
    )
  const ended = async () => (await get(`/sessions/${sid}`)).body.gateways
  expect(await ended()).toEqual([
    { gateway: 'one', ended: false },
    { gateway: 'two', ended: false },
  ])
  expect(await statuses()).toEqual([200, 200])
  await until(async () => expect((await get(`/decisions?sid=${sid}`)).body.decisions).toHaveLength(2))
  expect((await all.home.call(owner, 'POST', `/api/impersonations/${sid}/end`)).status).toBe(204)
  const began = performance.now()
  await until(async () =>
    expect(await ended()).toEqual([
      { gateway: 'one', ended: true },
      { gateway: 'two', ended: true },
    ]),
  )
  // Told means so.
  expect(await statuses()).toEqual([401, 401])
  // A second, on a machine that does nothing else.
  expect(performance.now() - began).toBeLessThan(10_000)
})

test('neither answers nor logs have a token', async () => {
  const answers = [await get(''), await get('/decisions'), await get('/one/configuration')]
  expect(JSON.stringify(answers)).not.toMatch(/eyJ/)
  expect(all.home.issuer.logged()).not.toMatch(/eyJ/)
})
