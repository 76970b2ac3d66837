import { beforeAll, describe, expect, test } from 'vitest'
import { projectInput } from '../../../policies/engine/base/input-reads.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { createWasmEngine } from '../../../policies/engine/evaluate/engine.ts'
import { policyInput } from '../rule-folder.ts'

let opa: string
beforeAll(async () => {
  opa = await findOpa()
})

const compiled = async (rules: string) => {
  const text = `package test\n\n# METADATA\n# entrypoint: true\n${rules}\n`
  return readBundle(await compilePolicies({ sources: new Map([['test.rego', new TextEncoder().encode(text)]]), opa }))
}

/** Rules, and what they read; `null` where it is everything. */
const rules: [rules: string, reads: unknown][] = [
  ['decision := true', {}],
  ['decision := input', null],
  ['decision := input.token', { token: null }],
  ['decision := input.token.scopes', { token: ['scopes'] }],
  ['decision := input.token.claims.plan', { token: ['claims'] }],
  ['decision if input.actor', { actor: null }],
  ['decision if not input.actor', { actor: null }],
  ['decision if not input.token.claims.plan', { token: ['claims'] }],
  ['decision := input["token"]["scopes"]', { token: ['scopes'] }],
  ['decision := input[input.route.id]', null],
  ['decision := input[key] if some key in ["now"]', null],
  ['decision := {key | some key, _ in input}', null],
  ['decision := input.token[input.route.id]', { route: ['id'], token: null }],
  ['decision := {key | some key, _ in input.request}', { request: null }],
  ['decision := [x | some x in input.request.segments]', { request: ['segments'] }],
  ['decision := count(input.request.segments)', { request: ['segments'] }],
  ['decision := object.get(input, ["token", "scopes"], [])', null],
  ['decision := object.get(input.token, "scopes", [])', { token: null }],
  ['decision := {path | walk(input.route, [path, _])}', { route: null }],
  ['decision := {path | walk(input, [path, _])}', null],
  ['decision := json.marshal(input)', null],
  ['decision := x.scopes if x := input.token', { token: null }],
  ['decision := x.token.scopes if x := input', null],
  [
    'decision if { every s in input.route.scopes { s in input.token.scopes } }',
    { route: ['scopes'], token: ['scopes'] },
  ],
  [
    'decision if { every s in input.route.scopes { has(s) } }\nhas(s) if s in input.token.scopes',
    { route: ['scopes'], token: ['scopes'] },
  ],
  ['decision := f(input.token)\nf(t) := t.scopes', { token: null }],
  ['decision := f(input)\nf(i) := i.token.scopes', null],
  ['decision := f(1)\nf(n) := input.now + n', { now: null }],
  ['decision := x\nx := y\ny := input.token.scopes', { token: ['scopes'] }],
  ['decision := y if y := x with input as {"now": 1}\nx := [input.now, input.token]', null],
  ['decision := y if y := x with input.now as input.token.exp\nx := [input.now, input.client]', null],
  ['decision := data.test.by[input.request.method]\nby.GET := input.now\nby.POST := input.client', null],
  [
    'decision := a if input.request.method == "GET" else := input.client.id\na := input.now',
    { client: ['id'], now: null, request: ['method'] },
  ],
  ['default decision := false\ndecision if input.route.id == input.client.id', { client: ['id'], route: ['id'] }],
  [
    'decision := [input.token.iss, [s | some s in input.token.scopes; not s in input.route.scopes]]',
    { route: ['scopes'], token: ['iss', 'scopes'] },
  ],
  [
    'decision := [x | some s in [1, 2]; x := [y | some t in input.token.scopes; y := [s, t, input.request.query[t]]]]',
    { request: ['query'], token: ['scopes'] },
  ],
  [
    'decision contains x if some x in input.token.scopes\ndecision contains input.route.id',
    { route: ['id'], token: ['scopes'] },
  ],
  ['decision[key] := input.route.params[key] if some key in ["id", "x"]', { route: ['params'] }],
  ['decision if { input.token == input.token\n input.route.id }', { route: ['id'], token: null }],
  ['decision := input.token.scopes[0]', { token: ['scopes'] }],
  ['decision := [input.token.scopes, input.token]', { token: null }],
  ['decision := $"{input.route.id} by {input.subject.id}"', { route: ['id'], subject: ['id'] }],
  ['decision if { print(input.client, input.route.id) }', { client: null, route: ['id'] }],
  ['decision := input.__proto__', null],
  ['decision := [input.constructor, input.token.constructor] == []', { constructor: null, token: ['constructor'] }],
  ['decision := input.token.scopes if { input.route.id = x; x == "orders" }', { route: ['id'], token: ['scopes'] }],
  ['decision := {"a": input.token} if input.token.exp > input.now', { now: null, token: null }],
  ['decision := object.union(input.route, input.client)', { client: null, route: null }],
  ['decision if input == {}', null],
  ['decision if input.token == {}', { token: null }],
  ['decision if { {"id": x} = input.subject; x == "u1" }', { subject: null }],
  ['decision if { {"subject": {"id": "u1"}} = object.filter(input, ["subject"]) }', null],
]

/** Inputs of the right shape and of shapes that no gateway sends. */
const inputs = [
  policyInput(),
  policyInput({ actor: { id: 's1', chain: ['s1', 's2'] } }),
  policyInput({ request: { ...policyInput().request, method: 'POST', query: { 'read:orders': ['1'] } } }),
  policyInput({ token: { ...policyInput().token!, exp: 1, claims: { plan: 'gold' } }, subject: { id: 'orders' } }),
  { token: ['list'], route: 'orders', request: 7, client: null, subject: false, now: 0 },
  { token: {}, route: {}, request: {}, client: {}, subject: {} },
  {},
  [],
  'input',
  null,
]

describe.each(rules)('%s', (text, expected) => {
  test('reads what it should, and decides the same on that part as on the whole', async () => {
    const { wasm, data, built } = await compiled(text)
    const reads = built?.reads?.['test/decision']
    expect(reads).toEqual(expected)
    const whole = await createWasmEngine({ wasm, data })
    const part = await createWasmEngine({ wasm, data, reads: { 'test/decision': reads ?? null } })
    for (const input of inputs) {
      expect(part.evaluate('test/decision', input)).toEqual(whole.evaluate('test/decision', input))
    }
  })
})

test('the part of an input keeps what is there as it is and invents nothing', () => {
  const reads = { token: ['scopes', 'jti'], route: null, gone: null, constructor: null }
  expect(projectInput({ token: { scopes: [], iss: 'x' }, route: { id: 1 }, more: 1 }, reads)).toEqual({
    token: { scopes: [] },
    route: { id: 1 },
  })
  expect(projectInput({ token: 'text', route: undefined }, reads)).toEqual({ token: 'text', route: undefined })
  expect(projectInput({ token: null }, reads)).toEqual({ token: null })
  for (const input of [7, null, undefined, ['a']]) expect(projectInput(input, reads)).toBe(input)
})
