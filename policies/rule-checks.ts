import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { capabilitiesFile, checkIssues, withSources } from './engine/compile.ts'
import { runOpa } from './engine/opa-binary.ts'
import type { CompileIssue } from './engine/policy-error.ts'
import type { Sources } from './engine/sources.ts'
import { inputSchemas } from './schemas.ts'

/**
 * `opa check --strict` with our built-in functions and the types of the inputs: the mistakes, none when the rules are well. Rules
 * get their input's type from `# schemas: - input: schema.gateway` in the metadata of their package (any one file of it).
 */
export const checkRules = (options: { sources: Sources; opa: string }): Promise<CompileIssue[]> =>
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

/** Runs the `_test.rego` files that are among the sources. `report` is OPA's own account of them. */
export const testRules = (options: { sources: Sources; opa: string }): Promise<{ passed: boolean; report: string }> =>
  withSources(options.sources, async (folder) => {
    // The interpreter may use all built-in functions, so the capabilities are given here too.
    const test = await runOpa(options.opa, ['test', '--capabilities', capabilitiesFile, '-b', '.'], { cwd: folder })
    return { passed: test.code === 0, report: `${test.stdout}${test.stderr}`.trim() }
  })
