import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

/** A case of OPA's compliance suite: modules, a query, and what it must yield. */
const caseSchema = z.looseObject({
  note: z.string(),
  query: z.string(),
  modules: z.array(z.string()).default([]),
  data: z.unknown().optional(),
  input: z.unknown().optional(),
  /** The input as Rego writes it. */
  input_term: z.string().optional(),
  /** Bindings of the query's variables. */
  want_result: z.array(z.record(z.string(), z.unknown())).nullish(),
  want_error_code: z.string().optional(),
  strict_error: z.boolean().optional(),
  sort_bindings: z.boolean().optional(),
})

/** Values by the variables of the query. */
export type Bindings = Record<string, unknown>

export type ComplianceCase = z.infer<typeof caseSchema> & {
  /** The note, with a number where several cases share one. */
  name: string
  /** The file that it came from. */
  group: string
}

const fileSchema = z.union([
  z.array(caseSchema),
  z.object({ cases: z.array(caseSchema) }).transform(({ cases }) => cases),
])

export const readCases = async (folder: string): Promise<ComplianceCase[]> => {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort()
  const groups = await Promise.all(
    files.map(async (file) => ({
      group: file.replace(/\.json$/, ''),
      cases: fileSchema.parse(JSON.parse(await readFile(join(folder, file), 'utf8'))),
    })),
  )
  const counts = new Map<string, number>()
  return groups.flatMap(({ group, cases }) =>
    cases.map((one) => {
      const count = (counts.get(one.note) ?? 0) + 1
      counts.set(one.note, count)
      return { ...one, group, name: count === 1 ? one.note : `${one.note} (${count})` }
    }),
  )
}
