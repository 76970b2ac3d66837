import { PolicyError } from '../base/policy-error.ts'
import type { BuiltinTable } from '../builtins/builtin.ts'
import { compileModule, type InstanceOrigin, instantiate, type MemoryImage, type WasmInstance } from './instance.ts'
import { forSharedMemory } from './shared-memory.ts'

/**
 * A compiled policy with its documents parsed: what takes long about starting one. Can be sent to other threads, which
 * share it.
 */
export interface PreparedEngine {
  module: WebAssembly.Module
  image: MemoryImage
  /**
   * Where it was prepared for another thread: the memory in which the documents were parsed, for one runner, which then
   * copies nothing.
   */
  home?: Home
}

/** A memory that is shared with the thread that made it, and the module for such memories. */
interface Home {
  module: WebAssembly.Module
  memory: WebAssembly.Memory
}

/** `documents` is JSON, and worth giving where it is there anyhow. */
export type EngineSource = { wasm: Uint8Array<ArrayBuffer> } & ({ data: unknown } | { documents: Uint8Array })

/** Bytes. */
export interface EngineLimits {
  /** Of the input as JSON; more is an error. Default 64 kB. */
  input: number
  /** Of the result as JSON; more is an error. Default 64 kB. */
  result: number
  /** Of one instance's memory, the documents included (JSON takes about 14 times its size there). Default 256 MB. */
  memory: number
}

const defaultLimits: EngineLimits = { input: 65_536, result: 65_536, memory: 268_435_456 }

/** An instance that has grown by more than this is replaced, since WASM memory never shrinks. Bytes. */
const keptGrowth = 16_777_216

/**
 * What instances are given. The functions are an argument because threads load them only for policies that use some.
 */
export interface RunnerOptions {
  builtins: BuiltinTable
  limits?: Partial<EngineLimits>
  now?: () => number
  /** Receives the lines that rules print. */
  print?: (line: string) => void
}

/** Lends an instance for one evaluation. Throws `PolicyError`; the next one has a fresh instance. */
export type Run = <Result>(use: (instance: WasmInstance) => Result) => Result

export const createRunner = ({ module, image, home }: PreparedEngine, options: RunnerOptions): Run => {
  // Taken out for the evaluation and put back after a good one. One that threw, or was cut short, is never used again:
  // nothing unwinds its shadow stack, and after some hundred throws every call would fail with "memory access out of
  // bounds". Starting again is cheap, from the image and in the old memory, since callers may be able to provoke
  // errors.
  let place: Place = home ?? { module }
  let idle: WasmInstance | undefined = start(place.module, { image, memory: place.memory }, options)
  let broken: WasmInstance | undefined
  const startAgain = (): WasmInstance => {
    place = broken && keepsMemory(broken) ? { ...place, memory: broken.memory } : { module }
    return start(place.module, { image, memory: place.memory }, options)
  }
  const takeInstance = (): WasmInstance => {
    const instance = idle ?? startAgain()
    idle = undefined
    // Until it comes back: when an evaluation is cut short, no `catch` is reached.
    broken = instance
    return instance
  }

  return (use) => {
    const instance = takeInstance()
    try {
      const result = use(instance)
      broken = undefined
      if (keepsMemory(instance)) idle = instance
      return result
    } catch (error) {
      if (error instanceof PolicyError) throw error
      throw new PolicyError('the policy failed while it was evaluated', { cause: error })
    }
  }
}

/** A module, and a memory of its kind that holds the documents; without one, a new memory is filled. */
type Place = Pick<Home, 'module'> & Partial<Home>

const keepsMemory = (instance: WasmInstance): boolean => instance.grownBy() <= keptGrowth

/** Compiles the module and parses the documents, which is what takes long: see `openBundle`. Throws `PolicyError`. */
export const prepareEngine = (source: EngineSource, options: Pick<RunnerOptions, 'limits'> = {}): PreparedEngine => {
  const module = compileModule(source.wasm)
  const documents = 'documents' in source ? source.documents : new TextEncoder().encode(JSON.stringify(source.data))
  return { module, image: start(module, { documents }, { ...options, builtins: {} }).image }
}

/** The same for a runner in another thread. */
export const prepareElsewhere = ({
  wasm,
  documents,
}: {
  wasm: Uint8Array<ArrayBuffer>
  documents: Uint8Array
}): PreparedEngine => {
  const module = compileModule(forSharedMemory(wasm))
  const { memory, image } = start(module, { documents, shared: true }, { builtins: {} })
  return { module: compileModule(wasm), image, home: { module, memory } }
}

const limitsOf = ({ limits }: Pick<RunnerOptions, 'limits'>): EngineLimits => ({ ...defaultLimits, ...limits })

const start = (module: WebAssembly.Module, origin: InstanceOrigin, options: RunnerOptions): WasmInstance => {
  const limits = limitsOf(options)
  const { builtins, now = Date.now, print = () => {} } = options
  try {
    return instantiate({ module, origin, builtins, limits, now, print })
  } catch (error) {
    if (error instanceof PolicyError) throw error
    throw new PolicyError(`the policy cannot be started within ${limits.memory} bytes`, { cause: error })
  }
}
