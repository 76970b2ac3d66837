import { join } from 'node:path'
import { expect, test } from 'vitest'
import { silentLogger } from '../../platform/logger.ts'
import { type PolicyCase, readCases, runCases } from '../../policies/authoring/cases.ts'
import { checkRules, testRules } from '../../policies/authoring/check.ts'
import { loadPolicies, shippedPolicies } from '../../policies/decide.ts'
import { findOpa } from '../../policies/engine/compile/opa.ts'
import { readSources } from '../../policies/engine/compile/sources.ts'
import { ruleFolder } from './rule-folder.ts'

const shippedRule = async (name: string) =>
  new TextDecoder().decode((await readSources(shippedPolicies)).get(name) ?? expect.fail(`no ${name}`))

test('the tests beside the shipped rules pass', async () => {
  const sources = await readSources(shippedPolicies, { tests: true })
  const { passed, report } = await testRules({ sources, opa: await findOpa() })
  expect(report).toMatch(/^PASS: \d+\/\d+$/m)
  expect(passed).toBe(true)
  for (const name of sources.keys()) {
    if (name.endsWith('_test.rego') || !name.endsWith('.rego')) continue
    expect([...sources.keys()], `${name} has no test`).toContain(name.replace(/\.rego$/, '_test.rego'))
  }
})

test('the shipped rules have no mistakes, misspelt input included', async () => {
  const sources = await readSources(shippedPolicies, { tests: true })
  expect(await checkRules({ sources, opa: await findOpa() })).toEqual([])
})

test('misspelt input is found in any file of the package, though it compiles', async () => {
  const folder = await ruleFolder({
    'decision.rego': await shippedRule('gateway/decision.rego'),
    'office.rego': 'package surrogate.gateway\n\ndeny contains {"reason": "x"} if input.roote.id == "refunds"\n',
  })
  expect(await checkRules({ sources: await readSources(folder), opa: await findOpa() })).toEqual([
    { file: 'office.rego', line: 3, column: 34, message: 'undefined ref: input.roote.id' },
  ])
})

test('a failing test of rules fails the run and is named', async () => {
  const folder = await ruleFolder({
    'a.rego': 'package a\n\nx := 1\n',
    'a_test.rego': 'package a_test\n\nimport data.a\n\ntest_two if a.x == 2\n',
  })
  const sources = await readSources(folder, { tests: true })
  const { passed, report } = await testRules({ sources, opa: await findOpa() })
  expect(passed).toBe(false)
  expect(report).toContain('data.a_test.test_two: FAIL')
})

const shippedCases = await readCases(join(import.meta.dirname, 'cases'))
const shippedSet = await loadPolicies({ path: shippedPolicies, logger: silentLogger })

test.each(shippedCases.map((testCase) => [testCase.file, testCase.name, testCase] as const))(
  '%s: %s',
  (_, __, testCase) => {
    const [result] = runCases({ cases: [testCase], set: shippedSet })
    expect(result?.mismatches).toEqual([])
  },
)

test('a case that does not come out as expected says what came', () => {
  const [first] = shippedCases
  const wrong: PolicyCase = { ...first!, name: 'wrong', expect: { status: 418, reason: 'teapot' } }
  const [result] = runCases({ cases: [wrong], set: shippedSet })
  expect(result).toEqual({
    name: 'wrong',
    file: first!.file,
    mismatches: ['status: expected 418, got 200', 'reason: expected "teapot", got none'],
    milliseconds: expect.any(Number),
    units: { taken: expect.any(Number), given: 5_000_000 },
  })
})

test('a case with a misspelt member is refused with its place', async () => {
  const folder = await ruleFolder({
    'a.yaml': '- name: a\n  request: { path: /x }\n  expect: { status: 200, resaon: x }\n',
  })
  await expect(readCases(folder)).rejects.toMatchObject({
    issues: [{ file: 'a.yaml', message: expect.stringContaining('0.expect') }],
  })
})
