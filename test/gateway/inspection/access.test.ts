import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accessAnswer } from '../../../gateway/inspection/policy-answers.ts'
import { shippedRules, startPolicyFolder } from '../../support/policy-folder.ts'

/** Who may do what, without a request. */

const audience = ['https://api.test/orders']
const office = `package surrogate.gateway

deny contains {"reason": "office_hours"} if {
	input.route.id == "office"
	input.subject.id != "boss"
}
`

let own: Awaited<ReturnType<typeof startPolicyFolder>>
const issuer = () => own.gateway.issuer.issuer

beforeAll(async () => {
  const common = { audience, upstream: 'orders' }
  own = await startPolicyFolder(
    { 'decision.rego': await shippedRules(), 'office.rego': office },
    {
      members: {
        routes: [
          { ...common, id: 'read', path: '/orders/{id}', methods: ['GET'], scopes: ['read:orders'] },
          { ...common, id: 'first', path: '/orders/1', methods: ['GET'], scopes: ['read:orders'] },
          { ...common, id: 'write', path: '/orders/{id}', methods: ['POST', 'PUT'], scopes: ['write:orders'] },
          { ...common, id: 'office', path: '/office/**', scopes: ['read:orders'], policyHeaders: ['x-office'] },
          { ...common, id: 'forbidden', path: '/forbidden', scopes: ['none'], insufficientScopeStatus: 403 },
          { ...common, id: 'strong', path: '/strong', methods: ['GET'], scopes: [], acr: ['mfa'] },
          { ...common, id: 'bound', path: '/bound', methods: ['GET'], scopes: [], dpop: 'required' },
          { id: 'public', path: '/public/**', auth: 'none', methods: ['GET'], upstream: 'orders' },
          { id: 'other', path: '/other', audience: ['https://api.test/other'], methods: ['GET'], upstream: 'orders' },
        ],
      },
    },
  )
})
afterAll(() => own.close())

const ask = async (body: object, claims: object = {}) => {
  const answer = await own.client.post('/access', body, { claims })
  return { ...answer, answers: answer.status === 200 ? accessAnswer.parse(answer.body).answers : [] }
}
const token = (claims: object = {}) => ({
  iss: issuer(),
  aud: audience[0],
  sub: 'alice',
  scope: 'read:orders',
  ...claims,
})

test('each route and method has the decision that a request would get', async () => {
  const { answers, body } = await ask({ tokens: [token()] })
  const told = answers.map(({ route, method, status, reason }) => [route, method, status, reason].join(' ').trim())
  expect(told).toEqual([
    'read GET 200',
    'first GET 200',
    'write POST 401 insufficient_scope',
    'write PUT 401 insufficient_scope',
    ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => `office ${method} 403 office_hours`),
    ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => `forbidden ${method} 403 insufficient_scope`),
    'strong GET 401 insufficient_user_authentication',
    'bound GET 401 invalid_token',
    'public GET 200',
    'other GET 401 token_missing',
  ])
  expect(body).toMatchObject({ more: false, revision: expect.any(String) })
  // A parameter is not given a value that another route takes.
  expect(answers[0]!.path).toBe('/orders/x')
  expect(answers.find(({ route }) => route === 'office')!.without).toEqual(['request.headers'])
  expect(answers[2]!.requiredScopes).toEqual(['write:orders'])
  expect(own.gateway.upstream.seen).toEqual([])
})

test('what it says is what requests are answered', async () => {
  const signed = await own.gateway.issuer.sign({ sub: 'alice', aud: audience[0], scope: 'read:orders' })
  const { answers } = await ask({ tokens: [token()], routes: ['read', 'write', 'office', 'forbidden', 'strong'] })
  for (const { method, path, status, allow } of answers) {
    const answer = await own.gateway.call(path, { method, token: signed })
    expect([method, path, answer.status, answer.status < 300]).toEqual([method, path, status, allow])
  }
})

test('a few routes have the line that says so', async () => {
  const routes = ['read', 'write', 'office']
  const { answers } = await ask({ tokens: [token()], routes, methods: ['GET', 'POST'] })
  const lines = answers.map(({ route, method, line }) => [route, method, `${line?.file}:${line?.line}`])
  expect(lines).toEqual([
    ['read', 'GET', expect.stringMatching(/^decision\.rego:\d+$/)],
    ['write', 'POST', expect.stringMatching(/^decision\.rego:\d+$/)],
    ['office', 'GET', 'office.rego:3'],
    ['office', 'POST', 'office.rego:3'],
  ])
  const line = (await shippedRules()).split('\n')[answers[1]!.line!.line - 1]
  expect(line).toContain('scope')
})

test('tokens are used where they are good, and a path may be given', async () => {
  const other = token({ aud: ['https://api.test/other'], scope: '' })
  const { answers } = await ask({
    tokens: [other, token({ sub: 'boss' })],
    routes: ['other', 'office'],
    methods: ['GET'],
  })
  expect(answers).toMatchObject([
    { route: 'office', token: 1, allow: true },
    { route: 'other', token: 0, allow: true },
  ])
  const given = await ask({ tokens: [token()], routes: ['read'], paths: { read: '/orders/1' } })
  expect(given.answers).toMatchObject([{ status: 404, reason: 'not_this_route' }])
  const twisted = await ask({ tokens: [token()], routes: ['read'], paths: { read: '/orders/..%2f' } })
  expect(twisted.answers).toMatchObject([{ status: 400, allow: false }])
  const nobody = await ask({ tokens: [], routes: ['read', 'public'] })
  expect(nobody.answers).toMatchObject([{ status: 401 }, { allow: true }])
  const late = await ask({ tokens: [token({ exp: 1_700_000_000 })], routes: ['read'] })
  expect(late.answers).toMatchObject([{ status: 401, reason: 'invalid_token' }])
})

describe('what cannot be asked', () => {
  test('an auditor, and somebody who acts for a user', async () => {
    expect(await ask({ tokens: [] }, { scope: 'inspect edit' })).toMatchObject({ status: 403 })
    expect(await ask({ tokens: [] }, { act: { sub: 'support' } })).toMatchObject({ status: 403 })
  })

  test.each([
    ['claims that no token has', { tokens: [{ iss: 'x', aud: 'y', act: { sub: 1 } }] }],
    ['claims without an issuer', { tokens: [{ aud: 'y' }] }],
    ['a method that is none', { tokens: [], methods: ['get it'] }],
    ['too many tokens', { tokens: Array.from({ length: 40 }, () => ({ iss: 'x', aud: 'y' })) }],
    ['unknown members', { tokens: [], everything: true }],
  ])('%s', async (_, body) => {
    expect(await ask(body)).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
  })
})

test('hundreds of routes are asked at once, without lines', async () => {
  const many = await startPolicyFolder(
    { 'decision.rego': await shippedRules() },
    {
      members: {
        routes: Array.from({ length: 250 }, (_, index) => ({
          ...{
            id: `r${index}`,
            path: `/r${index}/{id}`,
            audience: [...audience],
            scopes: [`s${index % 2}`],
            upstream: 'orders',
          },
        })),
      },
    },
  )
  const answer = await many.client.post('/access', {
    tokens: [{ iss: many.gateway.issuer.issuer, aud: audience, scope: 's0' }],
  })
  const { answers, more } = accessAnswer.parse(answer.body)
  expect([answers.length, more]).toEqual([1_000, true])
  expect(answers.filter(({ allow }) => allow).length).toBe(500)
  expect(answers.some(({ line }) => line)).toBe(false)
  await many.close()
})
