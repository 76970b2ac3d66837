import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { builtinNames } from '../../../policies/engine/builtins/index.ts'
import { readBundle } from '../../../policies/engine/bundle/bundle.ts'
import { compilePolicies } from '../../../policies/engine/compile/compile.ts'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { createWasmEngine } from '../../../policies/engine/evaluate/engine.ts'
import { ours, theirs } from './opa-answers.ts'

/**
 * `builtins/*.rego.txt` hold expressions, one a line; OPA itself is asked what each of them is. Those that call
 * something which is another each time, or where we differ on purpose, are in the tests below.
 */
const folder = fileURLToPath(new URL('./builtins/', import.meta.url))
const tables = (await readdir(folder)).filter((name) => name.endsWith('.rego.txt'))

const expressionsOf = async (name: string): Promise<string[]> =>
  (await readFile(join(folder, name), 'utf8')).split('\n').filter((line) => line !== '' && !line.startsWith('#'))

describe('agree with OPA', () => {
  test.each(tables)('%s', async (table) => {
    const expressions = await expressionsOf(table)
    expect(await ours(expressions)).toEqual(await theirs(expressions))
  })

  test('each function that the host supplies is in a table, or has a test of its own', async () => {
    const text = (await Promise.all(tables.map(expressionsOf))).flat().join('\n')
    const elsewhere = [
      /^internal\.print$/,
      /^rand\.intn$/,
      /^time\.now_ns$/,
      /^uuid\.rfc4122$/,
      /^io\.jwt\.(?:verify_|decode_verify)/,
    ]
    const missing = [...builtinNames].filter(
      (name) => !text.includes(`${name}(`) && !elsewhere.some((pattern) => pattern.test(name)),
    )
    expect(missing).toEqual([])
  })
})

const engineOf = async (rule: string) => {
  const text = `package test\n\n# METADATA\n# entrypoint: true\n${rule}\n`
  const sources = new Map([['test.rego', new TextEncoder().encode(text)]])
  const { wasm, data, built } = readBundle(await compilePolicies({ sources, opa: await findOpa() }))
  const engine = await createWasmEngine({ wasm, data, reads: built?.reads })
  return (input: unknown = {}) => engine.evaluate('test/decision', input)
}

describe('random values', () => {
  test('are the same for the same arguments in one decision, others for others, and others in the next decision', async () => {
    const decide = await engineOf(`decision := {
      "same": count({uuid.rfc4122("a") | some _ in numbers.range(1, 20)}),
      "others": count({uuid.rfc4122(x) | some x in ["a", "b", "c"]}),
      "numbers": count({rand.intn("a", 1000000000) | some _ in numbers.range(1, 20)}),
      "value": [uuid.rfc4122("a"), rand.intn("a", 1000000000)],
    }`)
    const answers = Array.from({ length: 5 }, () => decide() as { value: unknown[] })
    for (const answer of answers) {
      expect(answer).toMatchObject({ same: 1, others: 3, numbers: 1 })
      expect(answer.value[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
    expect(new Set(answers.map(({ value }) => value[0])).size).toBe(5)
    expect(new Set(answers.map(({ value }) => value[1])).size).toBe(5)
  })

  test('rand.intn stays below its limit and reaches all values', async () => {
    const decide = await engineOf(
      `decision := {x | some i in numbers.range(1, 300); x := rand.intn(format_int(i, 10), 3)}`,
    )
    expect((decide() as number[]).sort()).toEqual([0, 1, 2])
    const edges = await engineOf('decision := [rand.intn("a", 0), rand.intn("a", 1), rand.intn("a", -1)]')
    expect(edges()).toEqual([0, 0, 0])
  })
})

test('what a caller may choose cannot keep the gateway busy or fill its memory', async () => {
  const decide = await engineOf(`decision := {
    "network": count(object.get({x: y | some x in ["v"]; y := net.cidr_expand(input.network)}, "v", [])),
    "range": count(object.get({x: y | some x in ["v"]; y := numbers.range_step(1, input.end, 1)}, "v", [])),
    "regex": regex.replace(input.text, "(a+)+$", "x"),
    "semver": object.get({x: y | some x in ["v"]; y := semver.compare(input.version, "1.0.0-01")}, "v", null),
    "template": object.get({x: y | some x in ["v"]; y := strings.render_template(input.template, {})}, "v", null),
  }`)
  const answer = decide({
    network: '10.0.0.0/8',
    end: 1e12,
    text: `${'a'.repeat(2_000)}!`,
    version: '1.0.0-1',
    template: '{{range 100000000}}x{{end}}',
  })
  expect(answer).toEqual({ network: 0, range: 0, regex: `${'a'.repeat(2_000)}!`, semver: 0, template: null })
})

test('a function that used up the units ends the evaluation, also where a rule would go on without it, and the next one has them all', async () => {
  const decide = await engineOf(`default decision := "otherwise"

decision := "denied" if {
  not fits
}

fits if yaml.is_valid(input.yaml)
fits if count(regex.find_n("a*b|a", input.text, -1)) > 0
fits if json.patch({}, input.patches)`)
  const levels = ['a: &a [x, x, x, x, x, x, x, x, x]']
  for (const [before, name] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg'].map((pair) => Array.from(pair))) {
    levels.push(`${name}: &${name} [${Array.from({ length: 9 }, () => `*${before}`).join(', ')}]`)
  }
  const copies = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '', path: `/${index}` }))
  const usedUp = expect.objectContaining({ name: 'UnitsUsedUp' })
  expect(() => decide({ text: 'a'.repeat(16_000) })).toThrow(usedUp)
  expect(() => decide({ patches: copies })).toThrow(usedUp)
  expect(() => decide({ yaml: '- '.repeat(30_000) })).toThrow(usedUp)
  expect(decide({ yaml: levels.join('\n') })).toBe('denied')
  expect(decide({ text: 'aaab' })).toBe('otherwise')
})

test('a wrong operand makes the expression undefined, and the rest of the policy goes on', async () => {
  const decide = await engineOf('default decision := "otherwise"\n\ndecision := time.format(input.time)')
  expect(decide({ time: 'no time' })).toBe('otherwise')
  expect(decide({ time: 0 })).toBe('1970-01-01T00:00:00Z')
})

test('numbers of any size go through the host as they are', async () => {
  const patch = (number: string) => `json.patch([], [{"op": "add", "path": "/-", "value": ${number}}])`
  const numbers = ['12345678901234567890123', '1.50', '-0.25', '1e400']
  expect(await ours(numbers.map(patch))).toEqual(numbers.map((number) => `${patch(number)} = [${number}]`))
})
