import { beforeAll, describe, expect, test } from 'vitest'
import { projectInput } from '../../../policies/engine/base/input-reads.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { inputPaths, inputReads } from '../../../policies/engine/compile/find-input-reads.ts'
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

/** Rules, and the parts of the input that they read, as deep as they name them. */
const deep: [rules: string, paths: unknown][] = [
  ['decision := true', []],
  ['decision := input', null],
  ['decision := input.token.claims.email', ['/token/claims/email']],
  ['decision if input.token.claims.address.country == "NL"', ['/token/claims/address/country']],
  ['decision if not input.token.claims.plan', ['/token/claims/plan']],
  ['decision := input["token"]["claims"]["a/b~c"]', ['/token/claims/a~1b~0c']],
  ['decision := input.token.claims', ['/token/claims']],
  ['decision := [input.token.claims.email, input.token.claims]', ['/token/claims']],
  ['decision := [input.token.claims.email, input.token.claims.plan]', ['/token/claims/email', '/token/claims/plan']],
  ['decision := input.token.claims[input.route.id]', ['/route/id', '/token/claims']],
  ['decision := input.token[input.route.id].email', ['/route/id', '/token']],
  ['decision := [x | some x in input.token.claims.groups]', ['/token/claims/groups']],
  ['decision := input.token.claims.groups[0].name', ['/token/claims/groups']],
  ['decision := object.get(input.token.claims, "email", "")', ['/token/claims']],
  ['decision := object.get(input.token.claims.address, "country", "")', ['/token/claims/address']],
  ['decision := {p | walk(input.token.claims.address, [p, _])}', ['/token/claims/address']],
  ['decision := email\nemail := input.token.claims.email', ['/token/claims/email']],
  [
    'decision := f(input.token.claims.email)\nf(x) := [x, input.token.claims.plan]',
    ['/token/claims/email', '/token/claims/plan'],
  ],
  ['decision := f(input.token.claims)\nf(x) := x.email', ['/token/claims']],
  ['decision := y if y := email with input.token.claims.email as "x"\nemail := input.token.claims.email', null],
  [
    'decision if { every g in input.route.scopes { g == input.token.claims.group } }',
    ['/route/scopes', '/token/claims/group'],
  ],
  ['decision if { some k; input.token.claims[k].admin }', ['/token/claims']],
  [`decision := input.token.claims.${'a.'.repeat(20)}z`, [`/token/claims${'/a'.repeat(14)}`]],
]

test.each(deep)('%s: as deep as members are named', async (text, expected) => {
  const { built } = await compiled(text)
  expect(built?.paths?.['test/decision']).toEqual(expected)
})

test('what a loop carries from round to round is followed to its end', () => {
  const dot = (source: number, key: number, target: number) => ({
    type: 'DotStmt',
    stmt: { source: { type: 'local', value: source }, key: { type: 'string_index', value: key }, target },
  })
  // Each round goes one step on: from what the round before has left.
  const body = [dot(3, 2, 4), dot(2, 1, 3), dot(0, 0, 2)]
  const use = { type: 'ReturnLocalStmt', stmt: { source: 4 } }
  const loop = { type: 'ScanStmt', stmt: { source: 9, key: 10, value: 11, block: { stmts: body } } }
  const plan = {
    static: { strings: ['a', 'b', 'c'].map((value) => ({ value })) },
    plans: { plans: [{ name: 'p', blocks: [{ stmts: [loop, use] }] }] },
    funcs: { funcs: [] },
  }
  expect(inputPaths(plan)).toEqual({ p: ['/a/b/c'] })
  expect(inputReads(plan)).toEqual({ p: { a: ['b'] } })
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
