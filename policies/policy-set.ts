import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Logger } from '../platform/logger.ts'
import { assetUrl } from '../platform/module-url.ts'
import {
  type Bundle,
  type Compiled,
  CompilerMissing,
  compileBundle,
  findOpa,
  firstDifference,
  hashSources,
  type InputPaths,
  type InputReads,
  type Isolation,
  type IsolationOptions,
  loadWasmEngine,
  openBundle,
  PolicyError,
  type PreparedEngine,
  prepareEngine,
  reuseCompiled,
  startIsolation,
  UnitsUsedUp,
  type Verification,
} from './engine/index.ts'
import { bundleFile, isOpenAddress, type PolicyFiles, policyOrigin, type RemoteSettings } from './origin.ts'

/** Compiled policies, ready to be asked. */
export interface PolicySet {
  /** Of the bundle, for the decision log. */
  readonly revision: string
  /** Such as `surrogate/gateway/decision`. */
  readonly entrypoints: readonly string[]
  /**
   * The value of the entrypoint, or `undefined` when no rule gives one. Synchronous. Throws `PolicyError` when the
   * evaluation failed, `UnitsUsedUp` when it wanted more than its units; the next one is not affected.
   */
  evaluate(entrypoint: string, input: unknown): unknown
  /** What the last evaluation took of them; 0 when the answer was known. */
  unitsTaken?(): number
  /** The same in a thread of its own, ended at its deadline. Only in sets that were loaded with `isolation`. */
  isolated?: Pick<Isolation, 'evaluate'>
  /** What another thread needs to evaluate the same. */
  forThread?(): PortablePolicies
  /** Ends its threads, if it has any; `evaluate` still works afterwards. */
  close?(): Promise<void>
}

export interface PortablePolicies {
  prepared: PreparedEngine
  /** SHA-256 of the rules by their files, where it is known what they were compiled from. */
  sources: Readonly<Record<string, string>> | undefined
  /** What each entrypoint reads of its input, where that is known. */
  reads: Readonly<Record<string, InputReads>> | undefined
  /** The same as deep as it is known. */
  paths: Readonly<Record<string, InputPaths>> | undefined
}

/** @param prepared made from the bundle; it may have a memory that belongs to another runner. */
export const portable = ({ built }: Pick<Bundle, 'built'>, { module, image }: PreparedEngine): PortablePolicies => ({
  prepared: { module, image },
  sources: built?.sources,
  reads: built?.reads,
  paths: built?.paths,
})

export interface PolicySource {
  /**
   * A folder of rules (compiled when its `bundle.tar.gz` is missing or was made from other rules), a bundle file, or
   * the address of one.
   */
  path: string
  logger: Logger
  /** The setting OPA_BIN. */
  opaBin?: string | undefined
  /** See `EntrypointOptions`. */
  remember?: boolean
  /** For a path that is an address. */
  remote?: RemoteSettings | undefined
  /** Bundles must be signed so; a folder of rules cannot be. */
  verification?: Verification | undefined
  /** Threads for evaluations that must not hold up others. */
  isolation?: IsolationOptions | undefined
  /** Called for each isolated evaluation that used up its units, or whose thread had to be ended. */
  onRunaway?: ((entrypoint: string) => void) | undefined
  /** The largest input as JSON, in bytes. Default 64 kB. */
  input?: number | undefined
  /** What an evaluation on this thread may spend, in units of work. Default 5 000 000. */
  units?: number | undefined
  /** Called for each that was ended because it wanted more. */
  onUsedUp?: ((entrypoint: string) => void) | undefined
  /** Called for each evaluation on this thread that took longer than 5 ms. */
  onSlow?: ((entrypoint: string) => void) | undefined
}

/**
 * The policies that come with Surrogate: the gateway's default policy and the impersonation policy that allows
 * everything.
 */
export const shippedPolicies = fileURLToPath(assetUrl('./', import.meta.url))

/**
 * Loads policies from a folder, a bundle file or an address. Throws `PolicyError` that says what is wrong and, where it
 * is known, where.
 */
export const loadPolicies = async (source: PolicySource): Promise<PolicySet> => {
  const origin = policyOrigin(source.path, source.remote)
  try {
    return await policySet(await obtainBundle(source, await origin.read()), source)
  } finally {
    await origin.close()
  }
}

/**
 * The bundle that is there when it fits the rules, else a fresh one from the compiler; which need not be asked when
 * only documents changed.
 * @param running what was compiled last.
 */
export const obtainBundle = async (
  source: PolicySource,
  files: PolicyFiles,
  running?: Compiled | undefined,
): Promise<Bundle> => {
  const { path, verification } = source
  if (!files.sources) {
    if (!verification && isOpenAddress(path)) throw new PolicyError(`${path} needs https, or signed bundles`)
    return openBundle(files.bundle, verification)
  }
  if (verification) throw new PolicyError(`${path} is a folder of rules, and only signed bundles are accepted`)
  const carried = files.bundle && (await tryBundle(files.bundle, source))
  const difference = carried?.built && firstDifference(carried.built.sources, hashSources(files.sources))
  if (carried?.built && !difference) return carried

  const reused = running && (await reuseCompiled(running, files.sources))
  if (reused) return reused

  const why = difference
    ? `${join(path, difference.file)} was ${difference.change} since ${bundleFile} was built`
    : `${path} has no ${bundleFile} made from its rules`
  const opa = await findOpa(source).catch((error: unknown) => {
    throw new CompilerMissing(`${why}, and ${(error as Error).message}`, { cause: error })
  })
  source.logger.debug({ path, why }, 'compiling policies')
  return compileBundle({ sources: files.sources, opa })
}

const tryBundle = async (bytes: Uint8Array, { path, logger }: PolicySource): Promise<Bundle | undefined> => {
  try {
    return await openBundle(bytes)
  } catch (error) {
    logger.warn({ path, error: (error as Error).message }, 'ignoring an unreadable policy bundle')
    return undefined
  }
}

/** An evaluation slower than this is logged, since it holds up every other request. Milliseconds. */
const slowEvaluation = 5
/** At most one line of a kind in this time. Milliseconds. */
const lineEvery = 10_000

/** A bundle in an engine, and in threads when the source asks for them: ready, or `PolicyError`. */
export const policySet = async (bundle: Bundle, source: Omit<PolicySource, 'path'>): Promise<PolicySet> => {
  const { logger, remember = true, isolation, input, units, onRunaway, onSlow, onUsedUp } = source
  const print = (line: string) => logger.info({ line }, 'policy print')
  const options = { reads: bundle.built?.reads, remember, print }
  const prepared = bundle.prepared ?? prepareEngine(bundle)
  const limits = { ...(input !== undefined && { input }) }
  const ownLimits = { ...limits, ...(units !== undefined && { units }) }
  const engine = await loadWasmEngine(prepared, { ...options, limits: ownLimits })
  const isolated = isolation && (await startIsolation({ ...isolation, ...options, limits, prepared, onRunaway }))
  /** Tells of at most one a while, since callers may be able to repeat it. */
  const linesOf = (message: string) => {
    let quietUntil = 0
    return (entrypoint: string, milliseconds: number): void => {
      const now = performance.now()
      if (now < quietUntil) return
      quietUntil = now + lineEvery
      logger.warn({ entrypoint, milliseconds, units: engine.unitsTaken() }, message)
    }
  }
  const tellSlow = linesOf('slow policy evaluation')
  const tellUsedUp = linesOf('a policy used up its units of work and was ended')
  /** Entrypoints evaluated before: the first time V8 compiles their code, which says nothing of the rules. */
  const compiled = new Set<string>()
  return {
    revision: bundle.revision,
    entrypoints: engine.entrypoints,
    unitsTaken: engine.unitsTaken,
    forThread: () => portable(bundle, prepared),
    ...(isolated && { isolated, close: isolated.close }),
    evaluate(entrypoint, input) {
      const start = performance.now()
      try {
        return engine.evaluate(entrypoint, input)
      } catch (error) {
        if (error instanceof UnitsUsedUp) {
          onUsedUp?.(entrypoint)
          tellUsedUp(entrypoint, performance.now() - start)
        }
        throw error
      } finally {
        const milliseconds = performance.now() - start
        if (!compiled.has(entrypoint)) compiled.add(entrypoint)
        else if (milliseconds > slowEvaluation) {
          onSlow?.(entrypoint)
          tellSlow(entrypoint, milliseconds)
        }
      }
    },
  }
}
