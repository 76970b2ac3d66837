import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { decide } from '../../policies/decide.ts'
import { projectInput } from '../../policies/engine/base/input-reads.ts'
import { PolicyError, UnitsUsedUp } from '../../policies/engine/base/policy-error.ts'
import { readBundle, unpack } from '../../policies/engine/bundle/bundle.ts'
import { readTar, writeTar } from '../../policies/engine/bundle/tar.ts'
import { compilePolicies } from '../../policies/engine/compile/compile.ts'
import { inputReads } from '../../policies/engine/compile/find-input-reads.ts'
import { findOpa } from '../../policies/engine/compile/opa.ts'
import { createWasmEngine } from '../../policies/engine/evaluate/engine.ts'
import { decisionOf, policyInput } from './rule-folder.ts'

const bytes = (value: string) => new TextEncoder().encode(value)

let opa: string
beforeAll(async () => {
  opa = await findOpa()
})

const compiled = (rules: string) => {
  const text = `package test\n\n# METADATA\n# entrypoint: true\n${rules}\n`
  return compilePolicies({ sources: new Map([['test.rego', bytes(text)]]), opa })
}

describe('a bundle whose manifest was made for other contents', () => {
  test('counts as made elsewhere: what the manifest says about rules and reads is not used', async () => {
    const [harmless, strict] = [await compiled('decision := true'), await compiled('decision if not input.actor')]
    expect(readBundle(strict).built?.reads).toEqual({ 'test/decision': { actor: null } })
    const mixed = unpack(strict)
    mixed.set('.manifest', unpack(harmless).get('.manifest')!)
    const { wasm, data, built } = readBundle(gzipSync(writeTar(mixed)))
    expect(built).toBeUndefined()
    const engine = await createWasmEngine({ wasm, data, reads: (built as { reads?: undefined } | undefined)?.reads })
    expect(engine.evaluate('test/decision', { actor: { id: 's1' } })).toBeUndefined()
  })

  test('documents that were edited in the bundle are noticed too', async () => {
    const edited = unpack(await compiled('decision := data.on'))
    edited.set('data.json', bytes('{"on": true}'))
    expect(readBundle(gzipSync(writeTar(edited))).built).toBeUndefined()
  })
})

test('documents with names of built-in properties are documents, and change nothing in this process', async () => {
  const files = unpack(await compiled('decision := [data.a["__proto__"].b, data.a.constructor.c, data.a.d]'))
  files.set('data.json', bytes('{"a": {"d": 3}}'))
  files.set('a/__proto__/data.json', bytes('{"b": 1}'))
  files.set('a/constructor/data.json', bytes('{"c": 2}'))
  const { wasm, data } = readBundle(gzipSync(writeTar(files)))
  expect(({} as { b?: unknown }).b).toBeUndefined()
  expect((await createWasmEngine({ wasm, data })).evaluate('test/decision', {})).toEqual([1, 2, 3])
})

test('a member of the input that is called __proto__ reaches a rule that reads it', async () => {
  const { wasm, data, built } = readBundle(await compiled('decision if not input.context["__proto__"]'))
  const engine = await createWasmEngine({ wasm, data, reads: built?.reads })
  expect(engine.evaluate('test/decision', JSON.parse('{"context": {"__proto__": 1}}'))).toBeUndefined()
  expect(engine.evaluate('test/decision', { context: {} })).toBe(true)
  expect(JSON.stringify(projectInput(JSON.parse('{"a": {"__proto__": {"b": 1}}}'), { a: ['__proto__'] }))).toBe(
    '{"a":{"__proto__":{"b":1}}}',
  )
})

test('a statement that the analysis of reads does not know counts as reading everything', () => {
  const plan = (type: string) => ({
    plans: { plans: [{ name: 'p', blocks: [{ stmts: [{ type, stmt: { path: [{ source: { local: 0 } }] } }] }] }] },
    funcs: { funcs: [] },
  })
  expect(inputReads(plan('NopStmt'))).toEqual({ p: {} })
  expect(inputReads(plan('NewStmt'))).toEqual({ p: null })
})

test('a call that never returns is ended: replacing the empty text', async () => {
  for (const call of ['replace("text", input.old, "new")', 'strings.replace_n({input.old: "new"}, "text")']) {
    const { wasm, data } = readBundle(await compiled(`decision := ${call}`))
    const engine = await createWasmEngine({ wasm, data, limits: { units: 100_000 } })
    expect(() => engine.evaluate('test/decision', { old: '' })).toThrow(UnitsUsedUp)
    expect(engine.evaluate('test/decision', { old: 'e' })).toBe('tnewxt')
  }
})

test('a log that is nested without end is an error, since nobody could write it down', async () => {
  const set = await decisionOf('decision := {"allow": true, "log": {"said": json.unmarshal(input.request.host)}}')
  const decided = (host: string) =>
    decide(set, 'test/decision', policyInput({ request: { ...policyInput().request, host } }))
  expect(decided('[[1]]')).toEqual({ allow: true, headers: {}, log: { said: [[1]] } })
  for (const depth of [100, 3000, 20_000]) {
    expect(decided('['.repeat(depth) + ']'.repeat(depth))).toMatchObject({ allow: false, reason: 'policy_error' })
  }
})

describe('an archive', () => {
  /** One entry: header and content, in whole blocks. */
  const entry = (type: string, name: string, content = '') => {
    const archive = Buffer.from(writeTar(new Map([[name, bytes(content)]])))
    archive[156] = type.charCodeAt(0)
    archive.fill(0x20, 148, 156)
    const sum = archive.subarray(0, 512).reduce((total, byte) => total + byte, 0)
    archive.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    return archive.subarray(0, archive.length - 1024)
  }
  const end = Buffer.alloc(1024)
  const namesOf = (...entries: Uint8Array[]) => [...readTar(Buffer.concat([...entries, end])).keys()]

  test('with the long name of a folder does not give it to the next file', () => {
    const record = `${'12 path=dir/'.length + 1} path=dir/\n`
    expect(namesOf(entry('x', 'pax', record), entry('5', 'dir'), entry('0', 'dir/policy.wasm'))).toEqual([
      'dir/policy.wasm',
    ])
  })

  test('with a long name that leaves the archive, or names a file twice in two spellings, is refused', () => {
    expect(() => namesOf(entry('x', 'pax', '16 path=../../x\n'), entry('0', 'a'))).toThrow(/unsafe/)
    expect(() => namesOf(entry('x', 'pax', '12 path=./a\n'), entry('0', 'b'), entry('0', 'a'))).toThrow(/twice/)
  })

  test.each(['1', '2', '3', '6', '7', 'g', 'K', 'L', 'S', 'V'])('with an entry of type %s is refused', (type) => {
    expect(() => namesOf(entry(type, 'policy.wasm'))).toThrow(/neither a file nor a folder/)
  })
})

describe('hostile input', () => {
  test('a text is compared to its end, also behind a NUL', async () => {
    const { wasm, data } = readBundle(await compiled('decision := input.a == input.b'))
    const engine = await createWasmEngine({ wasm, data })
    const same = (a: unknown, b: unknown) => engine.evaluate('test/decision', { a, b })
    expect(same('admin', 'admin\0')).toBe(false)
    expect(same('admin\0x', 'admin\0y')).toBe(false)
    expect(same('admin\0x', 'admin\0x')).toBe(true)
    expect(same(2 ** 53, 2 ** 53 - 1)).toBe(false)
    expect(same('é', 'e\u0301')).toBe(false)
    // Has no UTF-8 form: an error, which denies, not U+FFFD.
    expect(() => same('\ud800', '\ufffd')).toThrow(PolicyError)
  })

  test('names of members are only names', async () => {
    const { wasm, data } = readBundle(await compiled('decision := input.keys'))
    const engine = await createWasmEngine({ wasm, data })
    const keys = '{"__proto__":{"a":1},"constructor":2,"\\u0000":3}'
    const result = engine.evaluate('test/decision', JSON.parse(`{"keys": ${keys}}`)) as object
    expect(Object.entries(result).sort()).toEqual(Object.entries(JSON.parse(keys)).sort())
  })
})
