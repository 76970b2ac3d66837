import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { policyCommand } from '../../../bin/commands/policy.ts'
import { findOpa, runOpa } from '../../../policies/engine/index.ts'
import { writeFiles } from '../rule-folder.ts'
import { rules } from './rules.ts'

/** `surrogate policy eval` beside `opa eval`. */

let folder: string
const file = (name: string) => join(folder, name)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'surrogate-policy-eval-'))
  await writeFiles(file('rules'), rules)
  await writeFiles(folder, {
    'alice.json': '{"user": "alice"}',
    'contradiction.json': '{"a": true, "b": true}',
    'large.json': '12345678901234567890',
    'broken.json': '{',
    'more/more.rego': 'package more\n\nnames := data.names\n\nlimit := 3\n',
    'more/names/data.json': '["alice"]',
    'mistaken/a.rego': 'package a\n\nx := y\n',
  })
})
afterAll(() => rm(folder, { recursive: true }))

const ours = async (args: readonly string[], opaBin?: string) => {
  const out: string[] = []
  const err: string[] = []
  const code = await policyCommand(['eval', ...args], {
    say: (line) => out.push(line),
    complain: (line) => err.push(line),
    opaBin,
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

const theirs = async (args: readonly string[]) => {
  const { code, stdout } = await runOpa(await findOpa(), ['eval', ...args])
  return { code, out: stdout.trim() }
}

const read = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

describe('the same answer and the same exit code', () => {
  const alice = ['-i', 'alice.json']
  test.for([
    ['an entrypoint', 'data.testmod.decision', alice],
    ['a member of it', 'data.testmod.decision.allow', alice],
    ['a rule that is no entrypoint', 'data.testmod.not_asked', []],
    ['a package', 'data.a.b', []],
    ['a name in brackets', 'data.testmod["decision"].allow', alice],
    ['no input', 'data.testmod.decision', []],
    ['undefined', 'data.testmod.undef', alice],
    ['undefined with --fail', 'data.testmod.undef', ['--fail']],
    ['defined with --fail', 'data.testmod.arr', ['--fail']],
    ['defined with --fail-defined', 'data.testmod.arr', ['--fail-defined']],
    ['undefined with --fail-defined', 'data.testmod.undef', ['--fail-defined']],
    ['raw', 'data.testmod.decision.user', [...alice, '-f', 'raw']],
    ['raw of an object', 'data.testmod.decision.n', [...alice, '--format', 'raw']],
    ['raw and undefined', 'data.testmod.undef', ['--format', 'raw']],
    ['pretty', 'data.testmod.arr', ['--format=pretty']],
    ['pretty and undefined', 'data.testmod.undef', ['--format=pretty']],
    ['an input in a long option', 'data.testmod.whole', ['--input', 'alice.json']],
    ['two folders', 'data.more.names', ['--data', 'more']],
    ['a file and no other', 'data.testmod.arr', ['-d', 'rules/testmod.rego']],
  ] as const)('%s', async ([, query, args]) => {
    const places: readonly string[] = args.some((argument) => argument === '-d') ? [] : ['-d', 'rules']
    const placed = [...places, ...args].map((argument) =>
      /^(?:rules|more|[a-z]+\.json)(?:\/|$)/.test(argument) ? file(argument) : argument,
    )
    const [one, other] = await Promise.all([ours([...placed, query]), theirs([...placed, query])])
    expect({ code: one.code, out: read(one.out) }).toEqual({ code: other.code, out: read(other.out) })
  })
})

test('what cannot be evaluated is 2, with errors as data or as lines', async () => {
  const contradiction = ['-d', file('rules'), '-i', file('contradiction.json'), 'data.testmod.conflict']
  const asData = await ours(contradiction)
  expect(asData.code).toBe(2)
  expect(read(asData.out)).toEqual({ errors: [{ message: expect.stringMatching(/testmod\.rego:\d+:1: .*conflict/) }] })
  expect((await theirs(contradiction)).code).toBe(2)

  const mistaken = await ours(['-d', file('mistaken'), 'data.a.x'])
  expect(mistaken.code).toBe(2)
  expect(read(mistaken.out)).toEqual({
    errors: [{ message: 'var y is unsafe', location: { file: 'a.rego', row: 3, col: 6 } }],
  })
  expect(await ours(['-d', file('mistaken'), '-f', 'pretty', 'data.a.x'])).toEqual({
    code: 2,
    out: '',
    err: 'var y is unsafe',
  })
  // OPA says that it is undefined.
  const nowhere = await ours(['-d', file('rules'), 'data.nowhere.x', '-f', 'raw'])
  expect(nowhere).toEqual({ code: 2, out: '', err: expect.stringContaining('does not refer to a rule') })
  for (const input of ['broken.json', 'large.json', 'nowhere.json'])
    expect((await ours(['-d', file('rules'), '-i', file(input), 'data.testmod.arr'])).code).toBe(2)
  expect((await ours(['-d', file('nowhere'), 'data.testmod.arr'])).code).toBe(2)
})

test.each([
  [['data']],
  [['input.user']],
  [['1 + 1']],
  [['data.a[x]']],
  [['data.a[0]']],
  [['data.a; data.b']],
  [['data.a["b/c"]']],
  [[]],
  [['data.a', 'data.b']],
  [['-f', 'bindings', 'data.a']],
  [['-I', '-i', 'x.json', 'data.a']],
])('%j is a mistake of usage', async (args) => {
  const { code, err } = await ours(args)
  expect(code).toBe(2)
  expect(err).toContain('Usage: surrogate policy')
})

test('a bundle needs no compiler, and answers for its entrypoints only', async () => {
  const bundle = file('bundle.tar.gz')
  expect(await policyCommand(['build', '--path', file('rules'), '--output', bundle], { say() {} })).toBe(0)
  const none = '/nowhere/opa'
  const asked = ['-b', bundle, '-i', file('alice.json'), '-f', 'raw']
  expect(await ours([...asked, 'data.testmod.decision.allow'], none)).toEqual({ code: 0, out: 'true', err: '' })
  expect(await ours([...asked, 'data.testmod.not_asked'], none)).toMatchObject({
    code: 2,
    err: expect.stringContaining('# entrypoint: true'),
  })
  expect(await ours(['-d', file('rules'), 'data.testmod.arr'], none)).toMatchObject({ code: 3 })
  expect(await ours(['-b', bundle, '-d', file('more'), 'data.testmod.arr'])).toMatchObject({ code: 2 })
})

test('metrics by OPA’s names', async () => {
  const { out } = await ours(['-d', file('rules'), '--metrics', 'data.testmod.arr'])
  const { metrics } = JSON.parse(out)
  expect(Object.keys(metrics)).toEqual([
    'timer_rego_input_parse_ns',
    'timer_rego_module_compile_ns',
    'timer_rego_query_eval_ns',
  ])
})
