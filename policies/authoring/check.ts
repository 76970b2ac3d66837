import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import {
  type CompileIssue,
  capabilitiesFile,
  checkIssues,
  compilePolicies,
  issueLine,
  isTest,
  type Opa,
  PolicyError,
  runOpa,
  type Sources,
  withSources,
} from '../engine/index.ts'
import { inputSchemas } from '../schemas.ts'

/**
 * The mistakes that `opa check --strict` finds with our built-in functions and the types of the inputs, and those for
 * which the rules cannot be built; none when the rules are well. Rules get their input's type from the metadata of
 * their package (`# schemas: - input: schema.gateway`, in any one file of it).
 */
export const checkRules = async (options: { sources: Sources; opa: Opa }): Promise<CompileIssue[]> => {
  const issues = [...(await strictIssues(options)), ...(await buildIssues(options))]
  return [...new Map(issues.map((issue) => [issueLine(issue), issue])).values()]
}

/** Mistakes in rules that compile, such as misspelt input; and whatever keeps them from it. */
export const strictIssues = (options: { sources: Sources; opa: Opa }): Promise<CompileIssue[]> =>
  withSources(options.sources, async (folder, scratch) => {
    const schemas = join(scratch, 'schemas')
    await mkdir(schemas)
    for (const [name, schema] of Object.entries(inputSchemas)) {
      await writeFile(join(schemas, `${name}.json`), JSON.stringify(schema))
    }
    const check = await runOpa(
      options.opa,
      ['check', '--strict', '--format', 'json', '--capabilities', capabilitiesFile, '--schema', schemas, '-b', '.'],
      { cwd: folder },
    )
    if (check.code === 0) return []
    const issues = checkIssues(check)
    return issues.length > 0 ? issues : [{ message: (check.stderr || check.stdout).trim() }]
  })

/** Not every mistake is one of a file: rules without an entrypoint cannot be built. */
const buildIssues = async ({ sources, opa }: { sources: Sources; opa: Opa }): Promise<readonly CompileIssue[]> => {
  const rules = new Map([...sources].filter(([name]) => !isTest(name)))
  try {
    await compilePolicies({ sources: rules, opa })
    return []
  } catch (error) {
    if (error instanceof PolicyError && error.issues.length > 0) return error.issues
    throw error
  }
}

export interface RuleTest {
  /** Such as `data.surrogate.gateway_test`. */
  package: string
  name: string
  file: string
  line: number
  outcome: 'passed' | 'failed' | 'skipped'
  milliseconds: number
}

const testsSchema = z
  .array(
    z.object({
      location: z.object({ file: z.string(), row: z.number() }),
      package: z.string(),
      name: z.string(),
      fail: z.boolean().default(false),
      error: z.unknown().optional(),
      skip: z.boolean().default(false),
      duration: z.number(),
    }),
  )
  // OPA writes null when there are none.
  .nullable()
  .transform((list) => list ?? [])

/**
 * Runs the `_test.rego` files that are among the sources. `report` is OPA's own account of what failed, or one line.
 * Throws `PolicyError` when the rules do not compile.
 */
export const testRules = (options: {
  sources: Sources
  opa: Opa
}): Promise<{ passed: boolean; report: string; tests: RuleTest[] }> =>
  withSources(options.sources, async (folder) => {
    // The interpreter may use all built-in functions, so the capabilities are given here too.
    const run = (...args: string[]) =>
      runOpa(options.opa, ['test', '--capabilities', capabilitiesFile, ...args, '-b', '.'], { cwd: folder })
    const json = await run('--format', 'json')
    const parsed = testsSchema.safeParse(readJson(json.stdout))
    if (!parsed.success) {
      const issues = checkIssues(json)
      throw new PolicyError(`the tests cannot be run: ${(json.stderr || json.stdout).trim()}`, { issues })
    }
    const unsorted = parsed.data.map(
      ({ location, fail, error, skip, duration, ...test }): RuleTest => ({
        package: test.package,
        name: test.name,
        file: location.file,
        line: location.row,
        outcome: skip ? 'skipped' : fail || error !== undefined ? 'failed' : 'passed',
        milliseconds: duration / 1e6,
      }),
    )
    // OPA runs them side by side.
    const tests = unsorted.sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1))
    const failed = tests.filter(({ outcome }) => outcome === 'failed')
    const ran = tests.filter(({ outcome }) => outcome !== 'skipped')
    if (failed.length === 0) return { passed: true, report: `PASS: ${ran.length}/${ran.length}`, tests }
    const pretty = await run()
    return { passed: false, report: `${pretty.stdout}${pretty.stderr}`.trim(), tests }
  })

const readJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
