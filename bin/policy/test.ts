import { writeFile } from 'node:fs/promises'
import { silentLogger } from '../../platform/logger.ts'
import { type CaseResult, type PolicyCase, type ResolveCase, runCases } from '../../policies/authoring/cases.ts'
import { testRules } from '../../policies/authoring/check.ts'
import { coverageLines, ruleCoverage } from '../../policies/authoring/coverage.ts'
import { loadPolicies } from '../../policies/decide.ts'
import { defaultUnits, readSources, type Sources } from '../../policies/engine/index.ts'
import { casesOf, type Invocation, number, resolverOf } from './invocation.ts'
import { junitXml, type TestReport } from './junit.ts'

/**
 * `surrogate policy test`: `_test.rego` files in OPA's interpreter, HTTP cases through the compiled rules, and what
 * both left out.
 */
export const testPolicies = async (invocation: Invocation): Promise<number> => {
  const { path, values, flags, say } = invocation
  const threshold = number(values, 'threshold')
  const [opa, sources, cases, resolve] = await Promise.all([
    invocation.opa(),
    readSources(path, { tests: true }),
    casesOf(invocation),
    resolverOf(invocation),
  ])

  const reports = await runRuleTests({ sources, opa, say })
  if (cases) {
    const units = Math.max(defaultUnits, ...questionsOf(cases, resolve).map((question) => question.units ?? 0))
    const set = await loadPolicies({ path, logger: silentLogger, opaBin: opa, remember: false, units })
    reports.push(...reportCases(runCases({ cases, set, resolve }), say))
  }
  // Before anything else that may fail: build servers take a missing file, or that of the run before, for no failure.
  if (values['junit'] !== undefined) await writeFile(values['junit'], junitXml(reports))
  const failed = reports.filter(({ outcome }) => outcome === 'failed')
  if (!flags['coverage'] && threshold === undefined) return failed.length > 0 ? 1 : 0

  if (failed.some(({ suite }) => suite === ruleSuite)) {
    say('coverage: not measured while tests of rules fail')
    return 1
  }
  const coverage = await ruleCoverage({ sources, opa, questions: questionsOf(cases ?? [], resolve) })
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

/** The part of its units from which on a case is told of: inputs of callers may well be larger than those of tests. */
const many = 1 / 10

const reportCases = (results: readonly CaseResult[], say: (line: string) => void): TestReport[] => {
  const failed = results.filter(({ mismatches }) => mismatches.length > 0)
  for (const { file, name, mismatches } of failed) say(`${file}: ${name}: FAIL\n  ${mismatches.join('\n  ')}`)
  for (const { file, name, units } of results) {
    // One that used them all up has failed.
    if (!units || units.taken <= many * units.given || units.taken >= units.given) continue
    say(`warning: ${file}: ${name}: takes ${units.taken} of ${units.given} units of work`)
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

const questionsOf = (cases: readonly PolicyCase[], resolve: ResolveCase) =>
  cases.flatMap((testCase) => {
    const resolved = resolve(testCase)
    return 'input' in resolved ? [resolved] : []
  })
