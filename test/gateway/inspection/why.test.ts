import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Why } from '../../../gateway/inspection/decision-answers.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { inspectionAudience, inspectionClient } from '../../support/inspection.ts'
import { writeRules } from '../../support/rules.ts'
import { startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/** Why requests are refused, each asked of a running gateway. */

const audience = ['https://api.test/orders']

const office = `package surrogate.gateway

deny contains {"reason": "office_hours", "detail": "Refunds only in office hours."} if {
	input.route.id == "office"
	input.subject.id != "boss"
}

deny contains {"reason": "secret_plan"} if {
	input.route.id == "plan"
	input.token.claims.plan == "iron"
}
`

const broken = `package broken

# METADATA
# entrypoint: true
decision := value if some value in [true, {"allow": false}]
`

let gateway: TestGateway
let silent: TokenIssuer
let rules: Awaited<ReturnType<typeof writeRules>>
let client: ReturnType<typeof inspectionClient>

beforeAll(async () => {
  silent = await startTokenIssuer()
  silent.answer = { status: 500 }
  const shipped = await readFile(new URL('../../../policies/gateway/decision.rego', import.meta.url), 'utf8')
  rules = await writeRules({ 'decision.rego': shipped, 'office.rego': office, 'broken.rego': broken })
  gateway = await startTestGateway({
    config: ({ issuer }) => {
      const common = { audience, issuers: [issuer.issuer], upstream: 'orders' }
      const methods = ['POST']
      return {
        inspection: { port: 0, audience: inspectionAudience, issuers: [issuer.issuer] },
        issuers: [{ issuer: issuer.issuer }, { issuer: silent.issuer }],
        policies: { path: rules.folder },
        decisionLog: { to: '/dev/null', mask: ['/input/token/claims/plan', '/input/token/claims/email'] },
        routes: [
          { ...common, id: 'read', path: '/orders/{id}', methods: ['GET'], scopes: ['read:orders'] },
          {
            ...common,
            id: 'write',
            path: '/orders/{id}',
            methods,
            scopes: ['write:orders'],
            impersonation: 'read-only',
          },
          { ...common, id: 'both', path: '/both', scopes: ['a', 'b'] },
          { ...common, id: 'alone', path: '/alone', impersonation: 'deny' },
          { ...common, id: 'office', path: '/office' },
          { ...common, id: 'plan', path: '/plan' },
          { ...common, id: 'broken', path: '/broken', entrypoint: 'broken/decision' },
          { ...common, id: 'strict', path: '/strict', acr: ['mfa'] },
          { ...common, id: 'limited', path: '/limited', rateLimit: { by: 'subject', requests: 1, per: '1h' } },
          { ...common, id: 'elsewhere', path: '/elsewhere', issuers: [silent.issuer] },
          { id: 'files', path: '/files/{name}', auth: 'none', upstream: 'orders' },
        ],
      }
    },
  })
  client = inspectionClient(() => gateway.inspectionUrl!, gateway.issuer)
})
afterAll(async () => {
  await gateway?.close()
  await silent?.close()
  await rules?.remove()
})

/** Sends a request and asks why it ended so. */
const whyOf = async (
  path: string,
  { claims = {}, ...options }: NonNullable<Parameters<TestGateway['call']>[1]> & { claims?: object } = {},
): Promise<Why> => {
  const token = options.token ?? (await gateway.issuer.sign({ scope: 'read:orders', client_id: 'c1', ...claims }))
  const answer = await gateway.call(path, { ...options, token })
  await answer.text()
  const id = answer.headers.get('x-request-id')
  expect(id).not.toBeNull()
  const why = await until(() => client.get('why', `/decisions/${id}/why`))
  expect(why).toMatchObject({ request: id, status: answer.status, path: path.split('?')[0] })
  return why
}

const refusedBy = (stage: string, code: string, because: string) => ({ refusal: { stage, code, because } })

test('a request that no route takes: the nearest ones, and that nothing else was looked at', async () => {
  const why = await whyOf('/oders/7')
  expect(why).toMatchObject(refusedBy('route', 'not_found', `No route takes GET ${new URL(gateway.url).host}/oders/7.`))
  expect(why.nearMisses).toEqual([
    {
      route: 'read',
      because: 'says "orders" where the request says "oders"',
      differences: [{ kind: 'literal', segment: 'oders', literal: 'orders', distance: 1 }],
    },
    expect.objectContaining({
      route: 'write',
      because: 'says "orders" where the request says "oders", and takes POST only',
    }),
  ])
  expect(why).not.toHaveProperty('token')
  expect(why).not.toHaveProperty('rules')
  expect(why.wouldAllow).toEqual([])
  expect(why.notes).toEqual(['No token was looked at and no policy was asked, since no route takes the request.'])
})

test('a spelling that the route does not allow', async () => {
  expect(await whyOf('/files/a%2Fb')).toMatchObject({
    route: 'files',
    ...refusedBy('route', 'invalid_request', 'The path holds an encoded slash.'),
  })
})

test.each<[string, () => Promise<NonNullable<Parameters<typeof whyOf>[1]>>, string, string]>([
  [
    'no token',
    async () => ({ headers: { authorization: 'Basic YTpi' } }),
    'token_missing',
    'An access token is needed.',
  ],
  [
    'an expired token',
    async () => ({ claims: { iat: 1_699_999_000, exp: 1_700_000_000 } }),
    'invalid_token',
    'The token has expired.',
  ],
  [
    'a token for somebody else',
    async () => ({ claims: { aud: 'https://other.test' } }),
    'invalid_token',
    'The token is for another audience.',
  ],
  [
    'a token of another issuer',
    async () => ({ token: await silent.sign({ scope: 'read:orders' }) }),
    'invalid_token',
    'The token is from an issuer that is not accepted here.',
  ],
])('%s', async (_, options, code, because) => {
  const why = await whyOf('/orders/7', await options())
  expect(why).toMatchObject({ status: 401, verdict: 'denied', route: 'read', ...refusedBy('token', code, because) })
  expect(why.wouldAllow).toEqual([])
  expect(why.notes).toEqual(['No policy was asked, so nothing could be tried.'])
  // What an unverified token says is nobody's word.
  expect(why).not.toHaveProperty('token')
})

test('keys that cannot be had', async () => {
  const token = await silent.sign()
  expect(await whyOf('/elsewhere', { token })).toMatchObject({
    status: 503,
    verdict: 'failed',
    ...refusedBy('token', 'keys_unavailable', expect.any(String) as never),
  })
})

test('a missing scope: the scope, or the route that needs another one, would have been enough', async () => {
  const why = await whyOf('/orders/7', { method: 'POST', claims: { sid: 's-1', cnf: undefined } })
  const host = new URL(gateway.url).host
  expect(why).toMatchObject({
    route: 'write',
    ...refusedBy('policy', 'insufficient_scope', 'The token lacks write:orders, which the route write needs.'),
    token: { subject: 'u1', client: 'c1', scopes: ['read:orders'], audience, sid: 's-1', expires: expect.any(Number) },
    notes: [],
  })
  expect(why.wouldAllow).toEqual([
    { change: 'scope', scopes: ['write:orders'] },
    { change: 'route', route: 'read', method: 'GET', host, path: '/orders/7' },
  ])
  expect(JSON.stringify(why.rules)).toMatch(/"name":"scope_missing","file":"decision.rego","line":\d+,"held":true/)
})

test('two missing scopes: only both together', async () => {
  const why = await whyOf('/both')
  expect(why.refusal?.because).toBe('The token lacks a, b, which the route both needs.')
  expect(why.wouldAllow).toEqual([{ change: 'scope', scopes: ['a', 'b'] }])
})

test('impersonation: without an actor it would have been allowed, and told who acts', async () => {
  const claims = { act: { sub: 's1', act: { sub: 's0' } }, sid: 'imp_1', scope: 'write:orders read:orders' }
  const denied = await whyOf('/alone', { claims })
  expect(denied).toMatchObject({
    ...refusedBy(
      'policy',
      'impersonation_denied',
      's1 acts for u1, and the route alone lets nobody act for somebody else.',
    ),
    token: { subject: 'u1', actors: ['s1', 's0'] },
    wouldAllow: [{ change: 'no-actor' }],
  })
  const readOnly = await whyOf('/orders/7', { method: 'POST', claims })
  expect(readOnly.refusal?.because).toBe(
    's1 acts for u1, and the route write lets those who act for somebody else only read.',
  )
  expect(readOnly.wouldAllow).toMatchObject([{ change: 'no-actor' }, { change: 'route', route: 'read', method: 'GET' }])
})

test('a rule of the operator: the file, the line, and nothing that was not confirmed', async () => {
  const why = await whyOf('/office', { claims: { act: { sub: 's1' } } })
  expect(why.refusal).toEqual({
    stage: 'policy',
    code: 'policy_denied',
    because: 'The policy surrogate/gateway/decision says no: office_hours, "Refunds only in office hours."',
  })
  // Nobody acting changes nothing here, so it is not named.
  expect(why.wouldAllow).toEqual([])
  const all = JSON.stringify(why.rules)
  expect(all).toContain('"file":"office.rego","line":3,"held":true')
  expect(all).toContain('"stopped":{"line":9,"text":"input.route.id == \\"plan\\""}')
  expect(await whyOf('/office', { claims: { sub: 'boss' } })).toMatchObject({ verdict: 'allowed', wouldAllow: [] })
})

test('a policy that gives no decision', async () => {
  const why = await whyOf('/broken')
  expect(why).toMatchObject({ status: 403, verdict: 'failed', refusal: { stage: 'policy', code: 'policy_error' } })
  expect(why.refusal?.because).toMatch(/^The policy broken\/decision gave no decision, which denies: .*conflict/)
  expect(why.wouldAllow).toEqual([])
})

test('a sign-in that is not strong enough, and a rate limit', async () => {
  expect(await whyOf('/strict')).toMatchObject({
    ...refusedBy('sign-in', 'insufficient_user_authentication', 'A stronger sign-in is needed.'),
    token: { subject: 'u1', scopes: ['read:orders'] },
    wouldAllow: [],
  })
  await (await gateway.call('/limited')).text()
  expect(await whyOf('/limited')).toMatchObject({
    status: 429,
    refusal: { stage: 'rate-limit', code: 'rate_limited' },
    token: { subject: 'u1' },
  })
})

test('an upstream that failed is no refusal of the policy', async () => {
  const { answer } = gateway.upstream
  gateway.upstream.answer = (request) => void request.socket.destroy()
  onTestFinished(() => void Object.assign(gateway.upstream, { answer }))
  const why = await whyOf('/orders/7', { method: 'POST', claims: { scope: 'write:orders' }, body: 'x' })
  expect(why).toMatchObject({ verdict: 'failed', refusal: { stage: 'upstream' } })
  expect(why.notes).toEqual(['The policy allowed the request; it failed afterwards.'])
})

test('what masks took out is not told, and what follows from it is not guessed', async () => {
  const why = await whyOf('/orders/7', { method: 'POST', claims: { plan: 'gold', email: 'a@b.test' } })
  expect(why.wouldAllow).toMatchObject([{ change: 'scope' }, { change: 'route', route: 'read' }])
  expect(why.notes).toEqual([
    'Tried without /input/token/claims/plan, /input/token/claims/email, which the record lacks: a rule that reads it may say otherwise.',
  ])
  expect(JSON.stringify(why)).not.toMatch(/gold|a@b\.test/)
  // The rule reads what the record lacks.
  const unknown = await whyOf('/plan', { claims: { plan: 'iron', act: { sub: 's1' } } })
  expect(unknown).toMatchObject({ refusal: { code: 'policy_denied' }, wouldAllow: [] })
  expect(unknown.notes).toEqual([
    'Asked again, the same request is allowed: the record lacks /input/token/claims/plan. So nothing was tried.',
  ])
})
