import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { shippedPolicies } from '../../../policies/decide.ts'
import { PolicyError } from '../../../policies/engine/base/policy-error.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { createWasmEngine } from '../../../policies/engine/evaluate/engine.ts'
import { createRunner, prepareEngine } from '../../../policies/engine/instance/runner.ts'
import { decisionOf, policiesOf, policyInput } from '../rule-folder.ts'

/** OPA's own JavaScript host, as the second opinion. */
const oracle = createRequire(import.meta.url)('@open-policy-agent/opa-wasm') as {
  loadPolicySync(wasm: Uint8Array): {
    setData(data: unknown): void
    evaluate(input: unknown, entrypoint: string): unknown
  }
}

const compiled = async (rules: string, data?: unknown) => {
  const encode = (text: string) => new TextEncoder().encode(text)
  const sources = new Map([['test.rego', encode(`package test\n\n# METADATA\n# entrypoint: true\n${rules}\n`)]])
  if (data !== undefined) sources.set('data.json', encode(JSON.stringify(data)))
  return readBundle(await compilePolicies({ sources, opa: await findOpa(), capabilities: null }))
}

describe('agrees with the reference host', () => {
  test('on the shipped policy', async () => {
    const { wasm, data } = readBundle(await readFile(join(shippedPolicies, 'bundle.tar.gz')))
    const engine = await createWasmEngine({ wasm, data })
    const reference = oracle.loadPolicySync(wasm)
    reference.setData(data)
    const { token, route, request } = policyInput()
    const inputs = [
      policyInput(),
      {},
      { route: { scopes: [] } },
      ...['GET', 'POST', 'OPTIONS'].flatMap((method) =>
        (['allow', 'deny', 'read-only'] as const).flatMap((impersonation) =>
          [[], ['read:orders'], ['Ünïcode 😀 "quoted"', 'read:orders']].map((scopes) =>
            policyInput({
              request: { ...request, method },
              route: { ...route, impersonation, scopes },
              token: { ...token!, claims: { text: '😀\u0000\u2028' } },
              actor: { id: 's1', chain: ['s1'] },
            }),
          ),
        ),
      ),
    ]
    for (const input of inputs) {
      const theirs = reference.evaluate(input, 'surrogate/gateway/decision') as { result: unknown }[]
      expect(engine.evaluate('surrogate/gateway/decision', input)).toEqual(theirs[0]?.result)
    }
  })

  test('on values of every kind, and on documents', async () => {
    const rules = `decision := {
      "input": input, "upper": upper(input.text), "numbers": [1, 1.5, -0.25, 1e3, 12345678901],
      "data": data.people[input.who], "regex": regex.match("^a+$", input.text), "set": {3, 1, 2},
      "glob": glob.match("*.example.test", ["."], "api.example.test"), "json": json.marshal({"b": [1, null, true]}),
      "cidr": net.cidr_contains("203.0.113.0/24", "203.0.113.9"),
    }`
    const { wasm, data } = await compiled(rules, { people: { zoë: { roles: ['a', 'b'] } } })
    const engine = await createWasmEngine({ wasm, data })
    const reference = oracle.loadPolicySync(wasm)
    reference.setData(data)
    for (const text of ['aaa', '', 'ß', '😀', 'x'.repeat(5000)]) {
      const input = { text, who: 'zoë', deep: { list: [1, [2, [3]]], none: null, no: false } }
      const theirs = reference.evaluate(input, 'test/decision') as { result: unknown }[]
      const ours = engine.evaluate('test/decision', input)
      expect(ours).toBeDefined()
      expect(ours).toEqual(theirs[0]?.result)
    }
  })
})

describe('an evaluation that throws', () => {
  const conflict = `decision := value if some value in [true, input.conflict]`

  test('is an error, and after 600 in a row the next decision is right', async () => {
    const set = await decisionOf(conflict)
    for (let round = 0; round < 600; round++) {
      expect(() => set.evaluate('test/decision', { conflict: round })).toThrow(PolicyError)
    }
    expect(set.evaluate('test/decision', { conflict: true })).toBe(true)
  })

  test('is no way to slow others down: a policy with megabytes of documents starts again from a copy', async () => {
    const users = Object.fromEntries(Array.from({ length: 30_000 }, (_, id) => [`user${id}`, { id, plan: 'gold' }]))
    const { wasm, data } = await compiled(
      'decision := value if some value in [data.users[input.user].id, input.conflict]',
      { users },
    )
    const engine = await createWasmEngine({ wasm, data })
    for (let id = 0; id < 300; id++) {
      const user = `user${id * 100}`
      expect(() => engine.evaluate('test/decision', { user, conflict: -1 })).toThrow(PolicyError)
      expect(engine.evaluate('test/decision', { user, conflict: id * 100 })).toBe(id * 100)
    }
  })

  test('while another one is running does not disturb it', async () => {
    const { wasm, data } = await compiled(
      `decision := value if {
      print(input.step)
      some value in [data.answer, input.conflict]
    }`,
      { answer: 42 },
    )
    let depth = 0
    const engine = await createWasmEngine({
      wasm,
      data,
      print: () => {
        if (depth++ > 0) return
        expect(() => engine.evaluate('test/decision', { step: 2, conflict: 41 })).toThrow(PolicyError)
        expect(engine.evaluate('test/decision', { step: 3, conflict: 42 })).toBe(42)
      },
    })
    expect(engine.evaluate('test/decision', { step: 1, conflict: 42 })).toBe(42)
    expect(depth).toBe(3)
  })

  test('leaves the documents in place', async () => {
    const set = await policiesOf({
      'test.rego': `package test\n\n# METADATA\n# entrypoint: true\ndecision := value if some value in [data.answer, input.conflict]\n`,
      'data.json': JSON.stringify({ answer: 42, ballast: Array.from({ length: 5000 }, (_, id) => ({ id })) }),
    })
    expect(() => set.evaluate('test/decision', { conflict: 41 })).toThrow(PolicyError)
    expect(set.evaluate('test/decision', { conflict: 42 })).toBe(42)
    expect(() => set.evaluate('test/decision', { conflict: 41 })).toThrow(PolicyError)
    expect(set.evaluate('test/decision', { conflict: 42 })).toBe(42)
  })
})

test('memory is bounded: a policy that asks for more fails, the next decision is right', async () => {
  const { wasm, data } = await compiled(
    'decision := count([x | some a in numbers.range(1, input.n); some b in numbers.range(1, input.n); x := [a, b]])',
  )
  const engine = await createWasmEngine({ wasm, data, limits: { room: 4_194_304, units: 1_000_000_000 } })
  expect(() => engine.evaluate('test/decision', { n: 3000 })).toThrow('opa_malloc: failed')
  expect(engine.evaluate('test/decision', { n: 10 })).toBe(100)
})

test('documents that do not fit are refused when they are loaded', async () => {
  const { wasm, data } = await compiled('decision := count(data.list)', {
    list: Array.from({ length: 50_000 }, String),
  })
  await expect(createWasmEngine({ wasm, data, limits: { memory: 2_097_152 } })).rejects.toThrow(PolicyError)
  expect((await createWasmEngine({ wasm, data })).evaluate('test/decision', {})).toBe(50_000)
})

test('an instance whose memory grew gives it back', async () => {
  const { wasm, data } = await compiled('decision := count([x | some x in numbers.range(1, input.n)])')
  const prepared = prepareEngine({ wasm, data })
  const run = createRunner(prepared, { builtins: {}, limits: { room: 200_000_000, units: 1_000_000_000 } })
  for (const n of [400_000, 3, 400_000]) {
    const [answer, size] = run(({ evaluate, memory }) => [evaluate(0, JSON.stringify({ n })), memory.buffer.byteLength])
    expect(answer).toBe(`[{"result":${n}}]`)
    expect(run(({ memory }) => memory.buffer.byteLength)).toBe(prepared.image.size)
    expect(size > prepared.image.size).toBe(n > 3)
  }
})

test('time stands still during one evaluation and is exact to the nanosecond', async () => {
  const { wasm, data } = await compiled('decision := [time.now_ns(), time.now_ns(), json.marshal(time.now_ns())]')
  let now = 1_767_225_600_123
  const engine = await createWasmEngine({ wasm, data, now: () => now++ })
  const [first, second, text] = engine.evaluate('test/decision', {}) as [number, number, string]
  expect(first).toBe(second)
  expect(text).toBe('1767225600123000000')
  expect((engine.evaluate('test/decision', {}) as unknown[])[2]).toBe('1767225600124000000')
})

test('prefixes and suffixes of strings, lists and sets', async () => {
  const set = await decisionOf(`decision := [
    strings.any_prefix_match("/orders/42", ["/users", "/orders"]),
    strings.any_prefix_match({"a", "b"}, {"c"}),
    strings.any_suffix_match(["x.example.test"], ".example.test"),
  ]`)
  expect(set.evaluate('test/decision', {})).toEqual([true, false, true])
})

test('what a rule prints reaches the host', async () => {
  const { wasm, data } = await compiled('decision if { print("who:", input.who, {"n": 1}, input.nothing) }')
  const lines: string[] = []
  const engine = await createWasmEngine({ wasm, data, print: (line) => lines.push(line) })
  expect(engine.evaluate('test/decision', { who: 'zoë' })).toBe(true)
  expect(lines).toEqual(['who: zoë {"n": 1} <undefined>'])
})

test('a module that needs a function which the host does not have is refused when it is loaded', async () => {
  const { wasm, data } = await compiled('decision := http.send({"method": "get", "url": input.url})')
  await expect(createWasmEngine({ wasm, data })).rejects.toThrow(/not supplied: http\.send/)
})

test('what is not an OPA policy is refused', async () => {
  await expect(createWasmEngine({ wasm: new Uint8Array([1, 2, 3]), data: {} })).rejects.toThrow(PolicyError)
  const empty = new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0])
  await expect(createWasmEngine({ wasm: empty, data: {} })).rejects.toThrow(/WASM ABI/)
})
