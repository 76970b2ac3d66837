import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findOpa } from '../../policies/engine/opa-binary.ts'
import { readCases } from './compliance/cases.ts'
import { createCaseRunner } from './compliance/run-case.ts'

/** The runner of OPA's compliance suite, on cases of our own in its format; the suite itself is run by `npm run compliance`. */
const module = (rule: string) => `package test\n\n${rule}\n`

test('cases pass and fail for what they want, and those that WASM cannot express are set aside', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'surrogate-compliance-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
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
    { note: 'not supplied', modules: [module('p := opa.runtime()')], want_result: [{ x: {} }] },
    { note: 'strict', modules: [module('p := 1 / 0')], want_error_code: 'eval_builtin_error', strict_error: true },
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
    'not supplied: failed',
    'strict: aside',
  ])
})
