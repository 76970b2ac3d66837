import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { decide, defaultEntrypoint, loadPolicies, type PolicySet, shippedPolicies } from '../../policies/decide.ts'
import { decisionOf, policiesOf, policyInput } from './rule-folder.ts'

const input = policyInput()
const base = { route: input.route, request: input.request, token: input.token! }

describe('the shipped gateway policy', () => {
  let shipped: PolicySet
  beforeAll(async () => {
    shipped = await loadPolicies({ path: shippedPolicies, logger: silentLogger })
  })

  test('lets through who holds every scope of the route', () => {
    expect(decide(shipped, defaultEntrypoint, input)).toEqual({ allow: true, headers: {} })
  })

  test('names the needed scopes when one is missing', () => {
    const route = { ...base.route, scopes: ['read:orders', 'write:orders'] }
    expect(decide(shipped, defaultEntrypoint, policyInput({ route }))).toEqual({
      allow: false,
      reason: 'insufficient_scope',
      scope: ['read:orders', 'write:orders'],
      headers: {},
    })
  })

  test('asks for a scope also where there is no token at all', () => {
    const { token: _, subject: __, client: ___, ...anonymous } = input
    expect(decide(shipped, defaultEntrypoint, anonymous)).toMatchObject({ allow: false, reason: 'insufficient_scope' })
    const open = { ...anonymous, route: { ...base.route, scopes: [] } }
    expect(decide(shipped, defaultEntrypoint, open)).toEqual({ allow: true, headers: {} })
  })

  test('on a read-only route support staff may look at an order while acting for its owner, not change it', () => {
    const acting = (method: string) =>
      policyInput({
        request: { ...base.request, method },
        route: { ...base.route, impersonation: 'read-only' },
        actor: { id: 's1', chain: ['s1'] },
      })
    expect(decide(shipped, defaultEntrypoint, acting('GET'))).toEqual({ allow: true, headers: {} })
    expect(decide(shipped, defaultEntrypoint, acting('POST'))).toEqual({
      allow: false,
      reason: 'impersonation_denied',
      headers: {},
    })
  })

  test('gives no decision, and so denies, on an input of another shape', () => {
    for (const wrong of [{}, { route: {} }, { route: { scopes: 'read:orders' } }, [], null, undefined]) {
      expect(decide(shipped, defaultEntrypoint, wrong as never)).toMatchObject({ allow: false })
    }
  })
})

test('an operator adds a rule by adding a file beside the shipped ones', async () => {
  const set = await policiesOf({
    'gateway/decision.rego': await readFile(join(shippedPolicies, 'gateway/decision.rego'), 'utf8'),
    'gateway/refunds.rego': `package surrogate.gateway
deny contains {"reason": "office_hours", "detail": "Refunds only in office hours."} if {
  input.route.id == "refunds"
  not data.office.open
}`,
    'data.json': '{"office": {"open": false}}',
  })
  expect(decide(set, defaultEntrypoint, input)).toEqual({ allow: true, headers: {} })
  expect(decide(set, defaultEntrypoint, policyInput({ route: { ...base.route, id: 'refunds' } }))).toEqual({
    allow: false,
    reason: 'office_hours',
    detail: 'Refunds only in office hours.',
    headers: {},
  })
})

describe('what a rule returns', () => {
  test.each([
    ['true', { allow: true, headers: {} }],
    ['{"allow": true, "reason": "ignored"}', { allow: true, headers: {} }],
    ['{"allow": true, "headers": {"X-Plan": "gold"}}', { allow: true, headers: { 'x-plan': 'gold' } }],
    ['{"allow": true, "log": {"rule": 7}}', { allow: true, headers: {}, log: { rule: 7 } }],
    ['{"allow": false}', { allow: false, reason: 'policy_denied', headers: {} }],
    [
      '{"allow": false, "reason": "quota", "detail": "Come back tomorrow."}',
      { allow: false, reason: 'quota', detail: 'Come back tomorrow.', headers: {} },
    ],
  ])('%s', async (value, expected) => {
    const set = await decisionOf(`decision := ${value}`)
    expect(decide(set, 'test/decision', input)).toEqual(expected)
  })

  test.each([
    ['nothing', 'decision := true if input.nothing'],
    ['false', 'decision := false'],
    ['null', 'decision := null'],
    ['a string', 'decision := "true"'],
    ['a number', 'decision := 1'],
    ['a list', 'decision := [true]'],
    ['a set', 'decision := {true}'],
    ['no allow', 'decision := {"reason": "ok"}'],
    ['allow as a string', 'decision := {"allow": "true"}'],
    ['allow as a number', 'decision := {"allow": 1}'],
    ['a status', 'decision := {"allow": true, "status": 204}'],
    ['a misspelt member', 'decision := {"allow": true, "header": {"x-plan": "gold"}}'],
    [
      'a long detail',
      'decision := {"allow": false, "detail": concat("", [x | some _ in numbers.range(1, 257); x := "x"])}',
    ],
    ['a reason that is no name', 'decision := {"allow": false, "reason": "no\\nname"}'],
    ['a scope that breaks the challenge', 'decision := {"allow": false, "scope": ["a\\" error=\\"b"]}'],
    ['more than 64 kB', 'decision := {"allow": true, "log": {"x": numbers.range(1, 20000)}}'],
    ['two values', 'decision := x if some x in [{"allow": true}, {"allow": false}]'],
  ])('%s is no decision', async (_, rule) => {
    const set = await decisionOf(rule)
    expect(decide(set, 'test/decision', input)).toMatchObject({
      allow: false,
      reason: 'policy_error',
      headers: {},
      error: expect.any(String),
    })
  })

  test.each([
    ...['x-auth-sub', 'X-Auth-Sub', 'x_auth_sub', 'authorization', 'Cookie', 'proxy-authorization', 'host', 'te'],
    ...['content-length', 'Transfer-Encoding', 'connection', 'upgrade', 'x-forwarded-for', 'forwarded', 'x-real-ip'],
    ...['x-http-method-override', 'x-original-url', 'x bad', 'x-ä', '', ':path', 'keep-alive', 'trailer', 'via'],
  ])('the header %j cannot be set by a policy', async (name) => {
    const set = headerSet({ [name]: 'x' })
    expect(decide(set, 'test/decision', input)).toMatchObject({ allow: false, reason: 'policy_error' })
  })

  test.each(['a\r\nx-auth-sub: u2', 'a\nb', '\u0000', ' padded', 'ünïcode', 'x'.repeat(4097)])(
    'the header value %j cannot be set by a policy',
    (value) => {
      expect(decide(headerSet({ 'x-plan': value }), 'test/decision', input)).toMatchObject({ reason: 'policy_error' })
    },
  )

  test('one header in two spellings is no decision', () => {
    const set = headerSet({ 'x-plan': 'gold', 'X-Plan': 'iron' })
    expect(decide(set, 'test/decision', input)).toMatchObject({ reason: 'policy_error' })
  })

  /** A set is an interface: what the engine returns is all that matters here. */
  const headerSet = (headers: Record<string, string>): PolicySet => ({
    revision: 'r',
    entrypoints: ['test/decision'],
    evaluate: () => ({ allow: true, headers }),
  })
})

test('an entrypoint that does not exist denies', async () => {
  const set = await decisionOf('decision := true')
  expect(decide(set, 'test/decisions', input)).toMatchObject({ allow: false, reason: 'policy_error' })
  expect(decide(set, 'constructor', input)).toMatchObject({ allow: false, reason: 'policy_error' })
})

test('input that is too large or cannot be written as JSON denies, and the next decision is right', async () => {
  const set = await decisionOf('decision := input.token.claims.ok')
  const withClaims = (claims: Record<string, unknown>) => policyInput({ token: { ...base.token, claims } })
  for (const claims of [
    { ok: true, text: 'x'.repeat(70_000) },
    { ok: true, text: 'ü'.repeat(33_000) },
    { ok: 1n },
    { ok: true, text: '\ud800' },
  ]) {
    expect(decide(set, 'test/decision', withClaims(claims))).toMatchObject({ allow: false, reason: 'policy_error' })
  }
  expect(decide(set, 'test/decision', withClaims({ ok: true, text: 'x'.repeat(60_000) }))).toEqual({
    allow: true,
    headers: {},
  })
})
