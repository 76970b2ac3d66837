import { beforeAll, describe, expect, test } from 'vitest'
import { UnitsUsedUp } from '../../../policies/engine/base/policy-error.ts'
import { loadBuiltins } from '../../../policies/engine/builtins/index.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { createWasmEngine } from '../../../policies/engine/evaluate/engine.ts'
import { createRunner, prepareEngine } from '../../../policies/engine/instance/runner.ts'

/** What an evaluation may spend, and what it spends. */

const rules = `package test

# METADATA
# entrypoint: true
small := {"allow": {s | some s in input.wanted; s in input.held} == {s | some s in input.wanted}, "n": sprintf("%d", [count(input.held)])}

# METADATA
# entrypoint: true
triple := count([1 | some a in input.list; some b in input.list; some c in input.list; a + b + c == -1])

# METADATA
# entrypoint: true
doubled := f0(1)
${Array.from({ length: 40 }, (_, n) => `f${n}(x) := f${n + 1}(x) + f${n + 1}(x)`).join('\n')}
f40(x) := x

# METADATA
# entrypoint: true
hoard := count([[a, b, c] | some a in input.list; some b in input.list; some c in input.list])

# METADATA
# entrypoint: true
printed if {
  some n in numbers.range(1, 100000)
  print(n)
  n == -1
}

# METADATA
# entrypoint: true
patterns := [p | some p in input.paths; regex.match("^/(orders|refunds)/[0-9]+$", p)]
`

const list = Array.from({ length: 300 }, (_, n) => n)
const asked = { wanted: ['read', 'write'], held: ['write', 'openid', 'read'] }
const answer = { allow: true, n: '3' }

let wasm: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  const sources = new Map([['test.rego', new TextEncoder().encode(rules)]])
  wasm = readBundle(await compilePolicies({ sources, opa: await findOpa() })).wasm
})
const start = (limits: { units?: number; room?: number } = {}, print = (_line: string) => {}) =>
  createWasmEngine({ wasm, data: {}, remember: false, limits, print })

test('the same evaluation takes the same units every time, in every instance, also after others', async () => {
  const [one, other] = [await start(), await start()]
  const unitsOf = (engine: typeof one, entrypoint: string, input: unknown) => {
    engine.evaluate(entrypoint, input)
    return engine.unitsTaken()
  }
  const units = unitsOf(one, 'test/small', asked)
  expect(units).toBeGreaterThan(1_000)
  expect(() => one.evaluate('test/hoard', { list })).toThrow('opa_malloc: failed')
  expect(() => one.evaluate('test/triple', { list })).toThrow(UnitsUsedUp)
  for (let round = 0; round < 50; round++) expect(unitsOf(one, 'test/small', asked)).toBe(units)
  expect(unitsOf(other, 'test/small', asked)).toBe(units)
  // RE2 makes some variables when an instance uses it for the first time.
  const input = { paths: list.map((n) => `/orders/${n}`) }
  for (const engine of [one, other]) engine.evaluate('test/patterns', input)
  expect(unitsOf(one, 'test/patterns', input)).toBe(unitsOf(other, 'test/patterns', input))
})

test('ending an evaluation at any unit leaves the next one right', async () => {
  const prepared = prepareEngine({ wasm, data: {} })
  const builtins = await loadBuiltins(prepared.image.builtins)
  const run = createRunner(prepared, { builtins })
  const { id, input } = { id: prepared.image.entrypoints['test/small']!, input: JSON.stringify(asked) }
  const text = JSON.stringify([{ result: answer }])
  const evaluate = (units?: number) =>
    run((instance) => instance.evaluate(id, input, units === undefined ? {} : { units }))
  expect(evaluate()).toBe(text)
  const needed = run((instance) => {
    instance.evaluate(id, input)
    return instance.unitsTaken()
  })
  for (let units = 0; units < needed; units++) {
    expect(() => evaluate(units)).toThrow(UnitsUsedUp)
    if (units % 20 === 0) expect(evaluate(needed)).toBe(text)
  }
  expect(evaluate(needed)).toBe(text)
})

describe('what runs away is ended', () => {
  test.each(['triple', 'doubled', 'hoard', 'printed'])('%s', async (entrypoint) => {
    let lines = 0
    const engine = await start({}, () => lines++)
    expect(() => engine.evaluate(`test/${entrypoint}`, { list })).toThrow(/used up its 5000000 units|malloc: failed/)
    expect(engine.unitsTaken()).toBeLessThanOrEqual(5_000_000)
    expect(lines).toBeLessThan(1_001)
    expect(engine.evaluate('test/small', asked)).toEqual(answer)
  })
})

test('an evaluation has so much memory and no more', async () => {
  const engine = await start({ room: 4_194_304, units: 2_000_000_000 })
  expect(() => engine.evaluate('test/hoard', { list })).toThrow('opa_malloc: failed')
  expect(engine.evaluate('test/small', asked)).toEqual(answer)
})

test('an answer from memory takes no units', async () => {
  const engine = await createWasmEngine({ wasm, data: {} })
  engine.evaluate('test/small', asked)
  expect(engine.unitsTaken()).toBeGreaterThan(0)
  expect(engine.evaluate('test/small', asked)).toEqual(answer)
  expect(engine.unitsTaken()).toBe(0)
})
