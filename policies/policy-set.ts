import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Logger } from '../platform/logger.ts'
import { assetUrl } from '../platform/module-url.ts'
import { type Bundle, readBundle } from './engine/bundle.ts'
import { compilePolicies } from './engine/compile.ts'
import { findOpa } from './engine/opa-binary.ts'
import { CompilerMissing, PolicyError } from './engine/policy-error.ts'
import { firstDifference, hashSources, listSources, readSources, type Sources } from './engine/sources.ts'
import { createWasmEngine } from './engine/wasm-engine.ts'

/** Compiled policies, ready to be asked. */
export interface PolicySet {
  /** Of the bundle, for the decision log. */
  readonly revision: string
  /** Such as `surrogate/gateway/decision`. */
  readonly entrypoints: readonly string[]
  /**
   * The value of the entrypoint, or `undefined` when no rule gives one. Synchronous. Throws `PolicyError` when the evaluation
   * failed; the next one is not affected.
   */
  evaluate(entrypoint: string, input: unknown): unknown
}

export interface PolicySource {
  /** A folder of rules (compiled when its `bundle.tar.gz` is missing or was made from other rules) or a bundle file. */
  path: string
  logger: Logger
  /** The setting OPA_BIN. */
  opaBin?: string | undefined
  /** See `createWasmEngine`. */
  remember?: boolean
}

/** The policies that come with Surrogate: the gateway's default policy and the impersonation policy that allows everything. */
export const shippedPolicies = fileURLToPath(assetUrl('./', import.meta.url))

/** The compiled policies that a folder of rules may carry. */
export const bundleFile = 'bundle.tar.gz'

/** Loads policies from a folder or a bundle file. Throws `PolicyError` that says what is wrong and, where it is known, where. */
export const loadPolicies = async (source: PolicySource): Promise<PolicySet> =>
  policySet(await obtainBundle(source, await readPolicyFiles(source.path)), source)

/** What lies at `path`, read once: compiler and comparison see the same bytes. */
interface PolicyFiles {
  sources?: Sources
  bundle?: Uint8Array
}

const readPolicyFiles = async (path: string): Promise<PolicyFiles> => {
  if (!(await isFolder(path))) return { bundle: await readFile(path) }
  const sources = await readSources(path)
  const bundle = await readFile(join(path, bundleFile)).catch(() => undefined)
  return { sources, ...(bundle && { bundle }) }
}

/** Changes whenever a file that counts is written, replaced, added or removed. Costs a `stat` a file. */
export const policyFilesState = async (path: string): Promise<string> => {
  const folder = await isFolder(path)
  const bundle = await stat(folder ? join(path, bundleFile) : path).catch(() => undefined)
  return JSON.stringify([folder && (await listSources(path)), bundle?.size, bundle?.mtimeMs, bundle?.ino])
}

const isFolder = async (path: string): Promise<boolean> => {
  const found = await stat(path).catch((cause: unknown) => {
    throw new PolicyError(`there are no policies at ${path}`, { cause })
  })
  return found.isDirectory()
}

/** The bundle that is there when it fits the rules, else a fresh one from the compiler. */
const obtainBundle = async (source: PolicySource, files: PolicyFiles): Promise<Bundle> => {
  if (!files.sources) return readBundle(files.bundle!)
  const carried = files.bundle && tryBundle(files.bundle, source)
  const difference = carried?.built && firstDifference(carried.built.sources, hashSources(files.sources))
  if (carried?.built && !difference) return carried

  const why = difference
    ? `${join(source.path, difference.file)} was ${difference.change} since ${bundleFile} was built`
    : `${source.path} has no ${bundleFile} made from its rules`
  const opa = await findOpa(source).catch((error: unknown) => {
    throw new CompilerMissing(`${why}, and ${(error as Error).message}`, { cause: error })
  })
  source.logger.debug({ path: source.path, why }, 'compiling policies')
  return readBundle(await compilePolicies({ sources: files.sources, opa }))
}

const tryBundle = (bytes: Uint8Array, { path, logger }: PolicySource): Bundle | undefined => {
  try {
    return readBundle(bytes)
  } catch (error) {
    logger.warn({ path, error: (error as Error).message }, 'ignoring an unreadable policy bundle')
    return undefined
  }
}

/** An evaluation slower than this is logged, since it holds up every other request. Milliseconds. */
const slowEvaluation = 5
/** At most one such line in this time. Milliseconds. */
const slowLineEvery = 10_000

export const policySet = (bundle: Bundle, { logger, remember = true }: Omit<PolicySource, 'path'>): PolicySet => {
  const engine = createWasmEngine({
    wasm: bundle.wasm,
    data: bundle.data,
    reads: bundle.built?.reads,
    remember,
    print: (line) => logger.info({ line }, 'policy print'),
  })
  let quietUntil = 0
  return {
    revision: bundle.revision,
    entrypoints: engine.entrypoints,
    evaluate(entrypoint, input) {
      const start = performance.now()
      try {
        return engine.evaluate(entrypoint, input)
      } finally {
        const end = performance.now()
        if (end - start > slowEvaluation && end > quietUntil) {
          quietUntil = end + slowLineEvery
          logger.warn({ entrypoint, milliseconds: end - start }, 'slow policy evaluation')
        }
      }
    },
  }
}
