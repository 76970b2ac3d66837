import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findOpa } from '../../../policies/engine/compile/opa.ts'
import { readCases } from './compliance/cases.ts'
import { type Judged, judge } from './compliance/judge.ts'
import { createCaseRunner, type Outcome } from './compliance/run-case.ts'

/**
 * The runner and the judge of OPA's compliance suite, on cases of our own in its format; the suite itself is run by
 * `npm run compliance`.
 */
const module = (rule: string) => `package test\n\n${rule}\n`

test('cases pass and fail for what they want; refused ones fail, and strict ones want what OPA answers without strict errors', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-compliance-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const strict = { want_error_code: 'eval_builtin_error', strict_error: true }
  const cases = [
    { note: 'value', modules: [module('p := upper(input.x)')], input: { x: 'a' }, want_result: [{ x: 'A' }] },
    { note: 'value', modules: [module('p := data.n + 1')], data: { n: 12 }, want_result: [{ x: 13 }] },
    {
      note: 'sets are lists in order',
      modules: [module('p := {3, 1, input.two}')],
      input: { two: 2 },
      want_result: [{ x: [1, 2, 3] }],
    },
    {
      note: 'input as Rego writes it',
      modules: [module('p := count(input)')],
      input_term: '{1, 2, {3}}',
      want_result: [{ x: 3 }],
    },
    { note: 'undefined', modules: [module('p if input.missing')], want_result: [] },
    { note: 'conflict', modules: [module('p := x if some x in [1, 2]')], want_error_code: 'eval_conflict_error' },
    { note: 'another value', modules: [module('p := 1')], want_result: [{ x: 2 }] },
    { note: 'no conflict', modules: [module('p := 1')], want_error_code: 'eval_conflict_error' },
    {
      note: 'an error that is no conflict',
      modules: [module('p := "x"')],
      input_term: '"\\ud800"',
      want_error_code: 'eval_conflict_error',
    },
    { note: 'not supplied', modules: [module('p := opa.runtime()')], want_result: [{ x: {} }] },
    { note: 'not even in OPA', modules: [module('p := nothing(1)')], want_result: [{ x: 1 }] },
    { note: 'strict, undefined', modules: [module('p := 1 / input')], input: 0, ...strict },
    {
      note: 'strict, and the rest goes on',
      modules: [module('p := [x | some y in data.list; x := 1 / y]')],
      data: { list: [0, 2] },
      ...strict,
    },
    { note: 'strict, of no module', query: 'x := 1 / input', input_term: '0', ...strict },
    { note: 'strict and refused', modules: [module('p := http.send({})')], ...strict },
    { note: 'strict with a result', modules: [module('p := 2')], want_result: [{ x: 1 }], strict_error: true },
  ].map((one) => ({ query: 'data.test.p = x', ...one }))
  await writeFile(join(folder, 'own.json'), JSON.stringify(cases))

  const run = createCaseRunner({ opa: await findOpa(), cache: join(folder, 'cache') })
  const outcomes: string[] = []
  for (const one of await readCases(folder)) outcomes.push(`${one.name}: ${(await run(one)).kind}`)
  expect(outcomes).toEqual([
    'value: passed',
    'value (2): passed',
    'sets are lists in order: passed',
    'input as Rego writes it: passed',
    'undefined: passed',
    'conflict: passed',
    'another value: failed',
    'no conflict: failed',
    'an error that is no conflict: failed',
    'not supplied: refused',
    'not even in OPA: beyond',
    'strict, undefined: passed',
    'strict, and the rest goes on: passed',
    'strict, of no module: passed',
    'strict and refused: refused',
    'strict with a result: failed',
  ])
})

const judged = (kind: Outcome['kind'], count: number, group: string = kind): Judged[] =>
  Array.from({ length: count }, (_, index) => ({
    one: { name: `${group} ${index}`, group },
    outcome: kind === 'passed' ? { kind } : { kind, why: 'so' },
  }))
const knownOf = (results: readonly Judged[], reason: string) =>
  Object.fromEntries(results.map(({ one }) => [one.name, reason]))

test('the bar counts what is refused as failing, and leaves out only what OPA does not compile', () => {
  const others = [...judged('failed', 1), ...judged('refused', 2), ...judged('beyond', 5)]
  const known = knownOf(others, 'known')
  const results = [...judged('passed', 97), ...others]
  expect(judge(results, known, { whole: true })).toEqual({
    share: 97,
    problems: [],
    table: [
      '| group | cases | passed | the others |',
      '|---|---:|---:|---|',
      '| `failed` | 1 | 0 | known |',
      '| `refused` | 2 | 0 | known |',
      '| `beyond` | 5 | 0 | known |',
      '| the other 1 | 97 | 97 |  |',
      '| all that OPA compiles to WebAssembly | 100 | 97 | **97.00 %** pass |',
    ],
  })
  const one = judged('refused', 1, 'more')
  expect(judge([...results, ...one], { ...known, ...knownOf(one, 'x') }, { whole: true }).problems).toEqual([
    '96.04 % pass; it must be 97 %',
  ])
  expect(judge(one, knownOf(one, 'x'), { whole: false }).problems).toEqual([])
})

test('what is not known to fail is a problem, and what is known to fail and passes; a name of another folder is none', () => {
  const results = [...judged('passed', 999), ...judged('failed', 1), ...judged('beyond', 1)]
  expect(judge(results, { 'passed 3': 'once', 'gone with that folder': 'x' }, { whole: true }).problems).toEqual([
    'passed 3: passes, but is listed as one that does not',
    'failed 0: failed: so',
    'beyond 0: beyond: so',
  ])
})
