import { silentLogger } from '../../platform/logger.ts'
import { type CaseResult, type PolicyCase, type ResolveCase, runCases } from '../../policies/authoring/cases.ts'
import { loadPolicies } from '../../policies/decide.ts'
import { defaultUnits } from '../../policies/engine/index.ts'
import { casesOf, resolverOf } from './cases.ts'
import type { Invocation } from './invocation.ts'

/** Cases in the words of HTTP, through the compiled rules. Undefined: there are none. */
export const runHttpCases = async (invocation: Invocation): Promise<CaseResult[] | undefined> => {
  const [opaBin, cases, resolve] = await Promise.all([invocation.opa(), casesOf(invocation), resolverOf(invocation)])
  if (!cases) return undefined
  const units = Math.max(defaultUnits, ...questionsOf(cases, resolve).map((question) => question.units ?? 0))
  const { path } = invocation
  const set = await loadPolicies({ path, logger: silentLogger, opaBin, remember: false, units })
  return runCases({ cases, set, resolve })
}

/** What cases ask the rules, as far as they can be asked. */
export const questionsOf = (cases: readonly PolicyCase[], resolve: ResolveCase) =>
  cases.flatMap((testCase) => {
    const resolved = resolve(testCase)
    return 'input' in resolved ? [resolved] : []
  })

/** The part of its units from which on a case is told of: inputs of callers may well be larger than those of tests. */
const many = 1 / 10

/** Of cases that come near to their units. One that used them all up has failed. */
export const workWarnings = (results: readonly CaseResult[]): string[] =>
  results.flatMap(({ file, name, units }) =>
    !units || units.taken <= many * units.given || units.taken >= units.given
      ? []
      : [`warning: ${file}: ${name}: takes ${units.taken} of ${units.given} units of work`],
  )
