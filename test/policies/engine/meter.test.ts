import { beforeAll, describe, expect, test } from 'vitest'
import { PolicyError } from '../../../policies/engine/base/policy-error.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { loadImage } from '../../../policies/engine/instance/image.ts'
import { compileModule } from '../../../policies/engine/instance/module.ts'
import { createRunner } from '../../../policies/engine/instance/runner.ts'
import { numberBytes, sectionsOf } from '../../../policies/engine/wasm/binary.ts'
import { metered } from '../../../policies/engine/wasm/meter.ts'
import { unmetered } from './unmetered.ts'

/** Rewriting modules so that they count their work. */

const rules = `package test

# METADATA
# entrypoint: true
decision := {
  "sum": sum([m | some n in input.list; m := n * n]),
  "sorted": sort(input.list),
  "text": replace(upper(input.text), "A", "b"),
  "matched": [p | some p in split(input.text, ","); regex.match("^[a-c]+$", p)],
  "walked": count([p | walk(input, [p, _])]),
}
`
const input = JSON.stringify({ list: [5, 3, 8, 1.5], text: 'abc,xyz,cab' })

let wasm: Uint8Array<ArrayBuffer>
beforeAll(async () => {
  const sources = new Map([['test.rego', new TextEncoder().encode(rules)]])
  wasm = readBundle(await compilePolicies({ sources, opa: await findOpa() })).wasm
})

const limits = { room: 1_048_576, memory: 16_777_216 }
const answerOf = (module: WebAssembly.Module): string => {
  const image = loadImage(module, new TextEncoder().encode('{}'), limits)
  return createRunner({ module, image }, { builtins: {} })(({ evaluate }) => evaluate(0, input))
}

test('a metered module answers as the one it was made of', () => {
  const answer = answerOf(compileModule(wasm))
  expect(answer).toBe(answerOf(unmetered(wasm)))
  expect(JSON.parse(answer)).toMatchObject([{ result: { matched: ['abc', 'cab'], sorted: [1.5, 3, 5, 8] } }])
})

test('whatever bytes are changed, valid modules stay valid and invalid ones are refused', () => {
  // xorshift32: the same changes in every run.
  let state = 0x2545f491
  const random = (below: number): number => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
  const counts = { invalid: 0, metered: 0, unknown: 0 }
  const sections = sectionsOf(wasm).filter(({ name }) => name !== 'custom' && name !== 'data')
  for (let round = 0; round < 600; round++) {
    const mutant = Uint8Array.from(wasm)
    // Sections are of very different sizes: each is changed as often as the others.
    const { start, end } = sections[round % sections.length]!
    for (let change = random(3); change >= 0; change--) mutant[start + random(end - start)] = random(256)
    const valid = WebAssembly.validate(mutant)
    try {
      compileModule(mutant)
      expect(valid).toBe(true)
      counts.metered++
    } catch (error) {
      expect(error).toBeInstanceOf(PolicyError)
      // Valid, and metering it made it invalid: nothing else may go wrong than not to know it.
      if (valid) expect((error as Error).message).toMatch(/is not known here|WASM ABI/)
      counts[valid ? 'unknown' : 'invalid']++
    }
  }
  expect(counts.invalid).toBeGreaterThan(100)
  expect(counts.metered).toBeGreaterThan(30)
})

describe('what would get around the meter is refused', () => {
  interface Parts extends Record<'globals' | 'exports' | 'code', readonly number[]> {
    types?: number
    imports?: readonly number[]
    table?: readonly number[]
    locals?: readonly number[]
  }
  const moduleOf = ({ types = 1, imports, table, locals = [0], ...parts }: Parts): Uint8Array<ArrayBuffer> =>
    new Uint8Array([
      ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...section(1, [types, ...Array.from({ length: types }, () => [0x60, 0, 0]).flat()]),
      ...(imports ? section(2, imports) : []),
      ...section(3, [1, 0]),
      ...(table ? section(4, table) : []),
      ...section(6, parts.globals),
      ...section(7, parts.exports),
      ...section(10, [1, ...sized([...locals, ...parts.code, 0x0b])]),
    ])
  /** `env.memory`, of a page. */
  const memory = [1, 3, ...Buffer.from('env'), 6, ...Buffer.from('memory'), 2, 0, 1]
  const sized = (content: readonly number[]) => [...numberBytes(content.length), ...content]
  const section = (id: number, content: readonly number[]) => [id, ...sized(content)]
  const exported = (name: string) => [1, ...sized([...Buffer.from(name)]), 0, 0]
  const plain = { globals: [1, 0x7f, 1, 0x41, 0, 0x0b], exports: exported('f'), code: [0x03, 0x40, 0x0c, 0, 0x0b] }

  test('nothing, of what is known', () => {
    expect(() => compileModule(moduleOf(plain))).not.toThrow()
  })

  test('code that names the variable of the meter before it is there', () => {
    const filling = moduleOf({ ...plain, code: [0x41, 0x7f, 0x24, 1] })
    expect(WebAssembly.validate(filling)).toBe(false)
    expect(WebAssembly.validate(metered(filling))).toBe(true)
    expect(() => compileModule(filling)).toThrow('no valid WebAssembly module')
  })

  test('an export of the name that is the meter’s', () => {
    expect(() => compileModule(moduleOf({ ...plain, exports: exported('surrogate:units') }))).toThrow('of its own')
  })

  test.each([
    ['a tail call', [0x12, 0], /0x12 is not known/],
    ['a function as a value', [0xd2, 0, 0x1a], /is not known|no valid/],
    ['an exception', [0x06, 0x40, 0x0b], /is not known|no valid/],
  ])('%s', (_, code, message) => {
    expect(() => compileModule(moduleOf({ ...plain, code }))).toThrow(message)
  })

  test('a memory of its own, which nobody limits', () => {
    const bytes = moduleOf(plain)
    const at = bytes.indexOf(6, 8 + 6 + 4)
    const own = new Uint8Array([...bytes.subarray(0, at), ...section(5, [1, 0, 1]), ...bytes.subarray(at)])
    expect(WebAssembly.validate(own)).toBe(true)
    expect(() => compileModule(own)).toThrow('section 5 is not known here')
  })

  test('a loop behind the type of a block that is longer than a byte, and was read as an instruction', () => {
    // block (result (ref null 32)) loop (result i32) br 0 end …: `ref null` and 32 once made `local.get` of the loop.
    const code = [0x02, 0x63, 0x20, 0x03, 0x7f, 0x0c, 0, 0x0b, 0x1a, 0, 0x0b, 0x1a]
    const hiding = moduleOf({ ...plain, types: 40, code })
    expect(WebAssembly.validate(hiding)).toBe(true)
    expect(() => compileModule(hiding)).toThrow('the type 0x63 is not known here')
  })

  test.each([
    ['a table that fills the memory of the process', [1, 0x70, 0, ...numberBytes(10_000_000)]],
    ['many tables', [2, 0x70, 0, 1, 0x70, 0, 1]],
  ])('%s', (_, table) => {
    const large = moduleOf({ ...plain, table })
    expect(WebAssembly.validate(large)).toBe(true)
    expect(() => compileModule(large)).toThrow(/table.* not known here/)
  })

  const unitsOf = (parts: Partial<Parts>): number => {
    const module = compileModule(moduleOf({ ...plain, ...parts, imports: memory }))
    const env = { memory: new WebAssembly.Memory({ initial: 1, maximum: 1 }) }
    const { f, 'surrogate:units': left } = new WebAssembly.Instance(module, { env }).exports as {
      f(): void
      'surrogate:units': WebAssembly.Global
    }
    left.value = 1_000_000
    f()
    return 1_000_000 - left.value
  }

  test('work of the host that is asked for nothing costs something: adding no memory, copying no bytes', () => {
    expect(unitsOf({ code: [0x41, 0, 0x40, 0, 0x1a] })).toBeGreaterThanOrEqual(8_192)
    expect(unitsOf({ code: [0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x0a, 0, 0] })).toBe(1)
  })

  test('locals by the ten thousand, which each call has to clear, cost something', () => {
    expect(unitsOf({ code: [1], locals: [1, ...numberBytes(40_000), 0x7e] })).toBeGreaterThan(3_000)
  })
})
