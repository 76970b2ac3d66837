import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { goJson } from '../../policies/engine/builtins/encoding.ts'
import { hostBuiltins } from '../../policies/engine/builtins/index.ts'
import { readBundle } from '../../policies/engine/bundle.ts'
import { compilePolicies } from '../../policies/engine/compile.ts'
import { findOpa, runOpa } from '../../policies/engine/opa-binary.ts'
import { parseValue, type RegoObject, type Value } from '../../policies/engine/values.ts'
import { createWasmEngine } from '../../policies/engine/wasm-engine.ts'

/**
 * `builtins/*.rego.txt` hold expressions, one a line; OPA itself is asked what each of them is. Those that call something which is
 * another each time, or where we differ on purpose, are in the tests below.
 */
const folder = fileURLToPath(new URL('./builtins/', import.meta.url))
const tables = (await readdir(folder)).filter((name) => name.endsWith('.rego.txt'))

const expressionsOf = async (name: string): Promise<string[]> =>
  (await readFile(join(folder, name), 'utf8')).split('\n').filter((line) => line !== '' && !line.startsWith('#'))

const moduleOf = (expressions: readonly string[]): string => {
  const rules = expressions.map((expression, index) => `answers[${index}] := ${expression}`)
  return ['package test', '# METADATA\n# entrypoint: true\ndecision := answers', ...rules].join('\n\n')
}

const ours = async (module: string, input?: string): Promise<Value | undefined> => {
  const sources = new Map([['test.rego', new TextEncoder().encode(module)]])
  const { wasm, data } = readBundle(await compilePolicies({ sources, opa: await findOpa() }))
  return createWasmEngine({ wasm, data }).evaluateExactly('test/decision', input)
}

const theirs = async (module: string): Promise<Value> => {
  const scratch = await mkdtemp(join(tmpdir(), 'surrogate-builtins-'))
  onTestFinished(() => rm(scratch, { recursive: true, force: true }))
  await writeFile(join(scratch, 'test.rego'), module)
  const { stdout, stderr } = await runOpa(await findOpa(), ['eval', '-d', scratch, '-f', 'json', 'data.test.decision'])
  const answer = parseValue(stdout) as RegoObject
  const [result] = answer.get('result') as RegoObject[]
  if (!result) throw new Error(stdout + stderr)
  return (result.get('expressions') as RegoObject[])[0]!.get('value')!
}

/** By expression what it is, as JSON with sets in order; `undefined` where it has no value. */
const listed = (expressions: readonly string[], answers: Value | undefined): string[] => {
  const members = new Map([...(answers as RegoObject)].map(([key, value]) => [String(key), value]))
  return expressions.map((expression, index) => {
    const value = members.get(String(index))
    return `${expression} = ${value === undefined ? 'undefined' : goJson(value)}`
  })
}

describe('agree with OPA', () => {
  test.each(tables)('%s', async (table) => {
    const expressions = await expressionsOf(table)
    const module = moduleOf(expressions)
    expect(listed(expressions, await ours(module))).toEqual(listed(expressions, await theirs(module)))
  })

  test('each function that the host supplies is in a table, or has a test of its own', async () => {
    const text = (await Promise.all(tables.map(expressionsOf))).flat().join('\n')
    const elsewhere = ['internal.print', 'rand.intn', 'time.now_ns', 'uuid.rfc4122']
    const missing = Object.keys(hostBuiltins).filter((name) => !text.includes(`${name}(`) && !elsewhere.includes(name))
    expect(missing).toEqual([])
  })
})
