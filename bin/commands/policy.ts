import { access, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { silentLogger } from '../../platform/logger.ts'
import { readCases, runCases } from '../../policies/cases.ts'
import { loadPolicies, PolicyError, shippedPolicies } from '../../policies/decide.ts'
import { readBundle } from '../../policies/engine/bundle.ts'
import { suppliedCapabilities } from '../../policies/engine/capabilities.ts'
import { compilePolicies } from '../../policies/engine/compile.ts'
import { findOpa } from '../../policies/engine/opa-binary.ts'
import { CompilerMissing, issueLine } from '../../policies/engine/policy-error.ts'
import { readSources } from '../../policies/engine/sources.ts'
import { bundleFile } from '../../policies/origin.ts'
import { checkRules, testRules } from '../../policies/rule-checks.ts'
import { inputSchemas } from '../../policies/schemas.ts'

const usage = `Usage: surrogate policy <command> [options]

  build   compiles a folder of rules to a bundle
          --path <folder>      default ./policies
          --output <file>      default <folder>/${bundleFile}
          --revision <text>    default a fingerprint of the rules
  check   finds mistakes in rules: syntax, unknown functions, misspelt input
          --path <folder>      default ./policies
  test    runs the _test.rego files beside the rules, and HTTP cases through the compiled rules
          --path <folder>      default ./policies
          --cases <folder>     default ./test/policies/cases, if it is there

OPA_BIN names the Rego compiler; without it, opa on the PATH or the one that the package brings is used.
Exit codes: 0 well, 1 mistakes or failed tests, 2 wrong usage, 3 no compiler.`

interface Invocation {
  path: string
  values: { output?: string; revision?: string; cases?: string }
  opa: () => Promise<string>
  say: (line: string) => void
}

/** Runs `surrogate policy …`; resolves to the exit code. */
export const policyCommand = async (
  args: string[],
  {
    say = (line: string) => console.log(line),
    complain = (line: string) => console.error(line),
    opaBin = process.env['OPA_BIN'],
  }: { say?: (line: string) => void; complain?: (line: string) => void; opaBin?: string | undefined } = {},
): Promise<number> => {
  const [name = '', ...rest] = args
  if (['help', '--help', '-h'].includes(name)) {
    say(usage)
    return 0
  }
  const command = commands.get(name)
  const values = command && parse(rest, command.options, complain)
  if (!command || !values) {
    complain(usage)
    return 2
  }
  try {
    const { path = 'policies', ...others } = values
    return await command.run({ path, values: others, opa: () => findOpa({ opaBin }), say })
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    for (const line of error.issues.length > 0 ? error.issues.map(issueLine) : [error.message]) complain(line)
    return error instanceof CompilerMissing ? 3 : 1
  }
}

const build = async ({ path, values, opa, say }: Invocation): Promise<number> => {
  const sources = await readSources(path)
  const { revision } = values
  const bundle = await compilePolicies({ sources, opa: await opa(), ...(revision !== undefined && { revision }) })
  const output = values.output ?? join(path, bundleFile)
  await writeFile(output, bundle)
  say(`${output}: revision ${readBundle(bundle).revision}, ${bundle.length} bytes`)
  return 0
}

const check = async ({ path, opa, say }: Invocation): Promise<number> => {
  const sources = await readSources(path, { tests: true })
  const issues = await checkRules({ sources, opa: await opa() })
  for (const issue of issues) say(issueLine(issue))
  say(issues.length === 0 ? `${sources.size} files: no mistakes` : `${issues.length} mistakes`)
  return issues.length === 0 ? 0 : 1
}

const test = async ({ path, values, opa, say }: Invocation): Promise<number> => {
  const { passed, report } = await testRules({ sources: await readSources(path, { tests: true }), opa: await opa() })
  say(report)

  const folder = values.cases ?? ((await exists(defaultCases)) ? defaultCases : undefined)
  if (folder === undefined) return passed ? 0 : 1
  const set = await loadPolicies({ path, logger: silentLogger, opaBin: await opa() })
  const results = runCases({ cases: await readCases(folder), set })
  const failed = results.filter(({ mismatches }) => mismatches.length > 0)
  for (const { file, name, mismatches } of failed) say(`${file}: ${name}: FAIL\n  ${mismatches.join('\n  ')}`)
  say(`HTTP cases: ${results.length - failed.length}/${results.length} passed`)
  return passed && failed.length === 0 ? 0 : 1
}

/** For maintainers of Surrogate, after a change of OPA, of the built-in functions or of the input. */
const generate = async ({ opa, say, ...invocation }: Invocation): Promise<number> => {
  const binary = await opa()
  const files = { 'capabilities.json': await suppliedCapabilities(binary), 'input-schema.json': inputSchemas.gateway }
  for (const [name, content] of Object.entries(files)) {
    const before = await readFile(join(shippedPolicies, name), 'utf8').catch(() => 'null')
    if (JSON.stringify(JSON.parse(before)) === JSON.stringify(content)) continue
    await writeFile(join(shippedPolicies, name), `${JSON.stringify(content, null, 2)}\n`)
    say(`${name} changed; format it with "npm run format"`)
  }
  return build({ ...invocation, path: shippedPolicies, opa, say })
}

const defaultCases = join('test', 'policies', 'cases')
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

const text = { type: 'string' } as const
const commands = new Map<
  string,
  { run: (invocation: Invocation) => Promise<number>; options: Record<string, typeof text> }
>([
  ['build', { run: build, options: { path: text, output: text, revision: text } }],
  ['check', { run: check, options: { path: text } }],
  ['test', { run: test, options: { path: text, cases: text } }],
  ['generate', { run: generate, options: {} }],
])

const parse = (
  args: string[],
  options: Record<string, typeof text>,
  complain: (line: string) => void,
): ({ path?: string } & Invocation['values']) | undefined => {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    complain((error as Error).message)
    return undefined
  }
}
