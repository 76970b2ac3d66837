import type { z } from 'zod'
import type { explainedRule } from './explanation.ts'

type Rule = z.output<typeof explainedRule>

/**
 * Where rules said so: the rule that gave a yes; of a no the last one that held on its way, such as a `deny` or what
 * found a scope missing.
 */
export const lineOf = (
  rules: readonly Rule[] | undefined,
  allow: boolean,
): { file: string; line: number } | undefined => {
  let found = rules?.findLast(({ held }) => held)
  for (let inner = found; inner && !allow; inner = inner.rules.findLast(({ held }) => held)) found = inner
  return found && { file: found.file.replace(/^\.?\//, ''), line: found.line }
}
