import { checkRules } from '../../policies/authoring/check.ts'
import { issueLine, readSources } from '../../policies/engine/index.ts'
import { counted } from '../cli/counted.ts'
import { bodyHints } from './body-hints.ts'
import { runHttpCases, workWarnings } from './http-cases.ts'
import type { Invocation } from './invocation.ts'
import { spellingHints } from './spelling-hints.ts'

/** `surrogate policy check`: 1 where the rules have mistakes; warnings are none. */
export const checkPolicies = async (invocation: Invocation): Promise<number> => {
  const { path, opa, say } = invocation
  const sources = await readSources(path, { tests: true })
  const issues = await checkRules({ sources, opa: await opa() })
  for (const issue of issues) say(issueLine(issue))
  if (issues.length === 0) {
    for (const hint of await spellingHints(invocation)) say(`warning: ${issueLine(hint)}`)
    for (const hint of await bodyHints(invocation)) say(`warning: ${hint}`)
    for (const warning of workWarnings((await runHttpCases(invocation)) ?? [])) say(warning)
  }
  say(issues.length === 0 ? `${counted(sources.size, 'file')}: no mistakes` : counted(issues.length, 'mistake'))
  return issues.length === 0 ? 0 : 1
}
