import { writeFile } from 'node:fs/promises'
import type { CaseResult } from '../../policies/authoring/cases.ts'
import { testRules } from '../../policies/authoring/check.ts'
import { coverageLines, ruleCoverage } from '../../policies/authoring/coverage.ts'
import { readSources, type Sources } from '../../policies/engine/index.ts'
import { casesOf, resolverOf } from './cases.ts'
import { questionsOf, runHttpCases, workWarnings } from './http-cases.ts'
import { type Invocation, number } from './invocation.ts'
import { junitXml, type TestReport } from './junit.ts'

/**
 * `surrogate policy test`: `_test.rego` files in OPA's interpreter, HTTP cases through the compiled rules, and what
 * both left out.
 */
export const testPolicies = async (invocation: Invocation): Promise<number> => {
  const { path, values, flags, say } = invocation
  const threshold = number(values, 'threshold')
  const [opa, sources] = await Promise.all([invocation.opa(), readSources(path, { tests: true })])

  const reports = await runRuleTests({ sources, opa, say })
  const results = await runHttpCases(invocation)
  if (results) reports.push(...reportCases(results, say))
  // Before anything else that may fail: build servers take a missing file, or that of the run before, for no failure.
  if (values['junit'] !== undefined) await writeFile(values['junit'], junitXml(reports))
  const failed = reports.filter(({ outcome }) => outcome === 'failed')
  if (!flags['coverage'] && threshold === undefined) return failed.length > 0 ? 1 : 0

  if (failed.some(({ suite }) => suite === ruleSuite)) {
    say('coverage: not measured while tests of rules fail')
    return 1
  }
  const questions = questionsOf((await casesOf(invocation)) ?? [], await resolverOf(invocation))
  const coverage = await ruleCoverage({ sources, opa, questions })
  for (const line of coverageLines(coverage)) say(line)
  const enough = threshold === undefined || coverage.percent >= threshold
  if (!enough) say(`coverage is below ${threshold} %`)
  return enough && failed.length === 0 ? 0 : 1
}

const ruleSuite = 'rules'

const runRuleTests = async (options: {
  sources: Sources
  opa: string
  say: (line: string) => void
}): Promise<TestReport[]> => {
  const { tests, report } = await testRules(options)
  options.say(report)
  return tests.map(({ file, line, outcome, name, milliseconds, ...test }) => ({
    suite: ruleSuite,
    group: test.package.replace(/^data\./, ''),
    name,
    milliseconds,
    outcome,
    ...(outcome === 'failed' && { message: `${file}:${line}: the test does not hold` }),
  }))
}

const reportCases = (results: readonly CaseResult[], say: (line: string) => void): TestReport[] => {
  const failed = results.filter(({ mismatches }) => mismatches.length > 0)
  for (const { file, name, mismatches } of failed) say(`${file}: ${name}: FAIL\n  ${mismatches.join('\n  ')}`)
  for (const warning of workWarnings(results)) say(warning)
  if (results.length === 0) {
    say('HTTP cases: none')
    return []
  }
  const most = Math.max(...results.map(({ units }) => units?.taken ?? 0))
  say(`HTTP cases: ${results.length - failed.length}/${results.length} passed, ${most} units of work at most`)
  return results.map(({ file, name, mismatches, milliseconds }) => ({
    suite: 'HTTP cases',
    group: file,
    name,
    milliseconds,
    outcome: mismatches.length > 0 ? 'failed' : 'passed',
    ...(mismatches.length > 0 && { message: mismatches.join('\n') }),
  }))
}
