import { z } from 'zod'
import type { CompileIssue } from '../base/policy-error.ts'

/**
 * OPA's compiled `replace(text, old, new)` never returns when `old` is empty, and nothing can interrupt an evaluation
 * on the thread that serves requests. So `old` must be written in the rule, where it can be seen not to be empty.
 * (`strings.replace_n`, which has the same fault in its pattern object, is not among the capabilities.)
 */
export const endlessCalls = (plan: unknown): CompileIssue[] => {
  const { static: constants } = planSchema.parse(plan)
  return callsIn(plan)
    .filter(({ func, args }) => func === 'replace' && !isSpeltOut(args[1], constants))
    .map(({ file, row, col }) => ({
      ...(constants?.files?.[file] && { file: constants.files[file].value }),
      line: row,
      column: col,
      message: 'replace needs a text that is written in the rule and not empty: use concat(new, split(text, old))',
    }))
}

const texts = z.array(z.object({ value: z.string() })).nullish()
const planSchema = z.object({ static: z.object({ strings: texts, files: texts }).nullish() })
type Constants = z.infer<typeof planSchema>['static']

const callSchema = z.object({
  func: z.string(),
  // Null where a function takes none.
  args: z
    .array(z.unknown())
    .nullish()
    .transform((args) => args ?? []),
  file: z.number(),
  row: z.number(),
  col: z.number(),
})
const operandSchema = z.object({ type: z.literal('string_index'), value: z.number() })

const isSpeltOut = (argument: unknown, constants: Constants): boolean => {
  const operand = operandSchema.safeParse(argument)
  return operand.success && (constants?.strings?.[operand.data.value]?.value ?? '') !== ''
}

/** Every call in OPA's intermediate representation, however deep in blocks. */
const callsIn = (node: unknown): z.infer<typeof callSchema>[] => {
  if (typeof node !== 'object' || node === null) return []
  const { type, stmt } = node as { type?: unknown; stmt?: unknown }
  return [...(type === 'CallStmt' ? [callSchema.parse(stmt)] : []), ...Object.values(node).flatMap(callsIn)]
}
