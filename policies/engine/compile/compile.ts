import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { assetUrl } from '../../../platform/module-url.ts'
import { type CompileIssue, issueLine, PolicyError } from '../base/policy-error.ts'
import { stampBundle, unpack } from '../bundle/bundle.ts'
import { inputPaths, inputReads } from './find-input-reads.ts'
import { type Opa, runOpa } from './opa.ts'
import { fingerprint, hashSources, type Sources, writeSources } from './sources.ts'

/** Exactly the built-in functions that the engine supplies: a rule that uses another one does not compile. */
export const capabilitiesFile = fileURLToPath(assetUrl('../capabilities.json', import.meta.url))

/**
 * Rules → bundle bytes. `revision` defaults to a fingerprint of the sources. Throws `PolicyError` whose `issues` say
 * file, line and column of every mistake.
 */
export const compilePolicies = (options: {
  sources: Sources
  opa: Opa
  revision?: string
  /** Which built-in functions rules may use; `null` = all that OPA has. Default: those that the engine supplies. */
  capabilities?: string | null
  /** Beside those that are annotated, such as `example/decision`. */
  entrypoints?: readonly string[]
}): Promise<Uint8Array> =>
  withSources(options.sources, async (folder, scratch) => {
    const { capabilities = capabilitiesFile, entrypoints = [] } = options
    // Without --prune-unused every rule that refers to an entrypoint would become one too.
    const common = [
      'build',
      '--prune-unused',
      '--wasm-include-print',
      ...entrypoints.flatMap((entrypoint) => ['-e', entrypoint]),
      ...(capabilities === null ? [] : ['--capabilities', capabilities]),
      '-b',
      '.',
    ]
    const outputOf = (target: Target) => join(scratch, `${target}.tar.gz`)
    const build = (target: Target, flags: readonly string[] = []) =>
      runOpa(options.opa, [...common, ...flags, '-t', target, '-o', outputOf(target)], { cwd: folder })
    // Side by side: each is a process of its own, and an edit should be in force soon.
    // The plan is the same without the documents, and large ones take long to read.
    const [compiler, ...builds] = await allDone([
      compilerOf(options.opa),
      build('wasm'),
      build('plan', withoutDocuments),
    ])
    const failed = builds.find(({ code }) => code !== 0)
    if (failed) throw await explain(options.opa, folder, failed.stderr || failed.stdout)
    const [wasm, planned] = [await readFile(outputOf('wasm')), await readFile(outputOf('plan'))]
    const plan: unknown = JSON.parse(new TextDecoder().decode(unpack(planned).get('plan.json')))
    const sources = hashSources(options.sources)
    return stampBundle(wasm, {
      revision: options.revision ?? fingerprint(sources),
      built: {
        compiler,
        sources,
        reads: inputReads(plan),
        paths: inputPaths(plan),
      },
    })
  })

type Target = 'wasm' | 'plan'

/**
 * OPA's intermediate representation of rules without their tests; undefined where there is nothing to compile, or no
 * way to.
 */
export const planPolicies = (options: { sources: Sources; opa: Opa }): Promise<unknown> =>
  withSources(options.sources, async (folder, scratch) => {
    const output = join(scratch, 'plan.tar.gz')
    const flags = [
      '--prune-unused',
      '--capabilities',
      capabilitiesFile,
      ...withoutDocuments,
      '-t',
      'plan',
      '-o',
      output,
    ]
    const built = await runOpa(options.opa, ['build', ...flags, '-b', '.'], { cwd: folder })
    if (built.code !== 0) return undefined
    return JSON.parse(new TextDecoder().decode(unpack(await readFile(output)).get('plan.json')))
  })

const withoutDocuments = ['data.json', 'data.yaml', 'data.yml'].flatMap((name) => ['--ignore', name])

/**
 * `Promise.all`, but where one fails it waits for the others too: they still write to a folder that is then taken away.
 */
export const allDone = async <const Work extends readonly Promise<unknown>[]>(work: Work) => {
  await Promise.allSettled(work)
  return Promise.all(work)
}

/** Runs `use` with the sources in a folder of their own, gone afterwards; `scratch` is another one for results. */
export const withSources = async <Result>(
  sources: Sources,
  use: (folder: string, scratch: string) => Promise<Result>,
): Promise<Result> => {
  const scratch = await mkdtemp(join(tmpdir(), 'surrogate-policy-'))
  try {
    const folder = join(scratch, 'rules')
    await mkdir(folder)
    await writeSources(sources, folder)
    return await use(folder, scratch)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

const checkAnswer = z.object({
  errors: z.array(
    z.object({
      message: z.string(),
      location: z.object({ file: z.string(), row: z.number(), col: z.number() }).optional(),
    }),
  ),
})

/** The issues that `opa check --format json` printed (it prints them on either stream). */
export const checkIssues = ({ stdout, stderr }: { stdout: string; stderr: string }): CompileIssue[] => {
  try {
    const { errors } = checkAnswer.parse(JSON.parse(stderr.trim() === '' ? stdout : stderr))
    return errors.map(({ message, location }) => ({
      ...(location && { file: location.file, line: location.row, column: location.col }),
      message,
    }))
  } catch {
    return []
  }
}

/** `opa build` prints prose; `opa check` finds the same mistakes and gives their places. */
const explain = async (opa: Opa, folder: string, prose: string): Promise<PolicyError> => {
  const check = await runOpa(opa, ['check', '--format', 'json', '--capabilities', capabilitiesFile, '-b', '.'], {
    cwd: folder,
  })
  const found = check.code === 0 ? [] : checkIssues(check)
  const issues = found.length > 0 ? found : [{ message: prose.trim().replace(/^error: /, '') }]
  return new PolicyError(`the policies do not compile: ${issues.map(issueLine).join('; ')}`, { issues })
}

const compilerOf = async (opa: Opa): Promise<string> => {
  const { stdout } = await runOpa(opa, ['version'])
  return `opa ${/^Version: (\S+)/m.exec(stdout)?.[1] ?? 'unknown'}`
}
