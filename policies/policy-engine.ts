import { readFile } from 'node:fs/promises'
import {
  type EngineLimits,
  type Isolation,
  type IsolationOptions,
  loadWasmEngine,
  openBundle,
  PolicyError,
  prepareEngine,
  startIsolation,
  type Verification,
} from './engine/index.ts'

/**
 * `surrogate/policy-engine`: Rego policies in WebAssembly for programs of any kind, with a bound for each evaluation.
 * It reads bundles of OPA (`opa build -t wasm`, or `surrogate policy build` for rules that use more of OPA's
 * functions), and needs neither OPA nor a network.
 */
export {
  type BundleKey,
  type Isolation,
  type IsolationOptions,
  PolicyError,
  type PolicyErrorCode,
  type Verification,
} from './engine/index.ts'

export interface PolicyOptions {
  /** What one evaluation may spend, in units of work: 1 to 3 ns each. Default 5 000 000, up to 2 147 483 647. */
  units?: number
  /** What one evaluation may use of memory, in bytes. Default 32 MB; with the documents at most 256 MB. */
  memory?: number
  /** The largest input as JSON, in bytes. Default 64 kB. */
  input?: number
  /** The largest result as JSON, in bytes. Default 64 kB. */
  result?: number
  /** Documents (`data` of the rules) in the place of those in the bundle. */
  data?: Readonly<Record<string, unknown>>
  /** The bundle must be signed with one of these keys. */
  verification?: Verification
  /** Receives the lines that rules print. Default: nobody. */
  print?: (line: string) => void
}

/** A policy on this thread. It holds nothing but memory: without a reference it is gone. */
export interface Policy {
  /** Of the manifest of the bundle; may be empty. */
  readonly revision: string
  /** Such as `example/decision`. */
  readonly entrypoints: readonly string[]
  /**
   * The value of the entrypoint as JSON, `undefined` when no rule gives one. Answers that depend on the input alone may
   * come from memory. Throws `PolicyError` when there is no answer; whatever ended an evaluation, the next is not
   * affected.
   */
  evaluate(entrypoint: string, input?: unknown): unknown
  /**
   * What the last evaluation took; the same for the same question on every machine, and 0 for an answer from memory.
   */
  unitsTaken(): number
  /**
   * The same policy in threads of its own, for rules that may take longer than this thread has time: `units` are those
   * of the deadline, unless told otherwise, and memory is bounded at 256 MB for all of a thread. End them with `close`.
   */
  startIsolation(options?: IsolationOptions): Promise<Isolation>
}

/**
 * Loads a bundle, from its file or its bytes. Rejects with `PolicyError` (`invalid`), which says what is wrong with it
 * or which functions are not supplied that it needs.
 */
export const loadPolicy = async (bundle: string | URL | Uint8Array, options: PolicyOptions = {}): Promise<Policy> => {
  const { verification, print = () => {} } = options
  const bytes = bundle instanceof Uint8Array ? bundle : await readFile(bundle).catch(unreadable(bundle))
  const opened = await openBundle(bytes, verification)
  const limits = limitsOf(options)
  // What was parsed by the thread that opened it has the usual documents and the usual room.
  const asUsual = options.data === undefined && options.memory === undefined
  const prepared =
    (asUsual && opened.prepared) || prepareEngine({ wasm: opened.wasm, data: options.data ?? opened.data }, { limits })
  const common = { reads: opened.built?.reads, limits, print }
  const { entrypoints, evaluate, unitsTaken } = await loadWasmEngine(prepared, common)
  return {
    revision: opened.revision,
    entrypoints,
    evaluate,
    unitsTaken,
    startIsolation: (isolation = {}) => startIsolation({ ...isolation, ...common, prepared }),
  }
}

const limitsOf = ({ units, memory, input, result }: PolicyOptions): Partial<EngineLimits> => ({
  ...(units !== undefined && { units }),
  ...(memory !== undefined && { room: memory }),
  ...(input !== undefined && { input }),
  ...(result !== undefined && { result }),
})

const unreadable = (file: string | URL) => (cause: unknown) => {
  throw new PolicyError(`${file} cannot be read`, { cause })
}
