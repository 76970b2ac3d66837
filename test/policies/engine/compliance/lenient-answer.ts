import { z } from 'zod'
import { withSources } from '../../../../policies/engine/compile/compile.ts'
import { runOpa } from '../../../../policies/engine/compile/opa.ts'
import type { Bindings, ComplianceCase } from './cases.ts'

/**
 * The bindings that OPA's interpreter finds when an error of a built-in function makes its expression undefined, as it
 * does unless strict errors are asked for; WebAssembly has no other way. Throws when OPA cannot evaluate the case at
 * all.
 */
export const lenientAnswer = (one: ComplianceCase, opa: string): Promise<Bindings[]> => {
  const encode = (text: string) => new TextEncoder().encode(text)
  const sources = new Map(one.modules.map((text, index) => [`module${index}.rego`, encode(text)]))
  if (one.data !== undefined) sources.set('data.json', encode(JSON.stringify(one.data)))
  const input = one.input_term ?? (one.input === undefined ? undefined : JSON.stringify(one.input))
  const query = input === undefined ? one.query : `${one.query} with input as ${input}`
  return withSources(sources, async (folder) => {
    const { stdout, stderr } = await runOpa(opa, ['eval', '--format', 'json', '--data', '.', query], { cwd: folder })
    const { result, errors } = answerSchema.parse(JSON.parse(stdout))
    if (errors) throw new Error(`OPA does not evaluate ${one.name}: ${stderr}${stdout}`)
    return result.map(({ bindings }) => bindings)
  })
}

const answerSchema = z.object({
  /** Absent when the query is undefined. */
  result: z.array(z.object({ bindings: z.record(z.string(), z.unknown()).default({}) })).default([]),
  errors: z.unknown().optional(),
})
