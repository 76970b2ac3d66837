import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { loadGatewayConfig } from '../../gateway/config/load.ts'
import {
  type CaseQuestion,
  type PolicyCase,
  type ResolveCase,
  readCases,
  resolveByOwnRoute,
} from '../../policies/authoring/cases.ts'
import { PolicyError } from '../../policies/decide.ts'
import type { Invocation } from './invocation.ts'
import { resolveByConfig } from './resolve.ts'

const defaultCases = join('test', 'policies', 'cases')

/** The cases that are asked for, or those at their usual place; undefined when there are none. */
export const casesOf = async ({ values }: Invocation): Promise<PolicyCase[] | undefined> => {
  const named = values['cases']
  if (named !== undefined) return readCases(named)
  return access(defaultCases).then(
    () => readCases(defaultCases),
    () => undefined,
  )
}

/** Routes come from the gateway's configuration when one is named, else from the cases themselves. */
export const resolverOf = async ({ values }: Invocation): Promise<ResolveCase> => {
  const file = values['config']
  if (file === undefined) return resolveByOwnRoute
  return resolveByConfig(await loadGatewayConfig(file, process.env))
}

/** The question that a named case asks the rules. */
export const questionOfCase = async (invocation: Invocation, name: string): Promise<CaseQuestion> => {
  const cases = (await casesOf(invocation)) ?? []
  const found = cases.filter((testCase) => testCase.name === name)
  const [testCase] = found
  if (!testCase || found.length > 1) throw new PolicyError(`there are ${found.length} cases named "${name}"`)
  const resolved = (await resolverOf(invocation))(testCase)
  if ('input' in resolved) return resolved
  throw new PolicyError(`no rule is asked in the case "${name}": the answer is ${resolved.answer.status} before that`)
}
