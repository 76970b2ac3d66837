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
  /** Of an engine that was prepared for another thread. One runner takes it over and copies nothing. */
  sharedMemory?: SharedMemory
}

/** The memory in which a thread parsed the documents, and the module for memories that threads share. */
interface SharedMemory {
  module: WebAssembly.Module
  memory: WebAssembly.Memory
}

/** `documents` are the same as `data`, as JSON: callers that have them spare the work of writing them. */
export type EngineSource = { wasm: Uint8Array<ArrayBuffer> } & ({ data: unknown } | { documents: Uint8Array })

export interface EngineLimits {
  /** Of the input as JSON, in bytes; more is an error. Default 64 kB. */
  input: number
  /** Of the result as JSON, in bytes; more is an error. Default 64 kB. */
  result: number
  /**
   * Of one instance's memory, the documents included (JSON takes about 14 times its size there), in bytes. Default 256
   * MB.
   */
  memory: number
  /** Of work in one evaluation. Default 5 000 000. */
  units: number
}

const defaultLimits: EngineLimits = { input: 65_536, result: 65_536, memory: 268_435_456, units: 5_000_000 }

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

export const createRunner = ({ module, image, sharedMemory }: PreparedEngine, options: RunnerOptions): Run => {
  // An instance is taken out for an evaluation and put back when that went well. One that threw, or was cut short, is
  // never used again: nothing unwinds its shadow stack, and after some hundred throws every call would fail with
  // "memory access out of bounds". Callers may be able to provoke errors, so another instance starts cheaply: from the
  // image, and in the old memory.
  let from: StartPoint = sharedMemory ?? { module }
  let idle: WasmInstance | undefined = start(from.module, { image, memory: from.memory }, options)
  let broken: WasmInstance | undefined
  const startAgain = (): WasmInstance => {
    from = broken && keepsMemory(broken) ? { ...from, memory: broken.memory } : { module }
    return start(from.module, { image, memory: from.memory }, options)
  }
  const takeInstance = (): WasmInstance => {
    const instance = idle ?? startAgain()
    idle = undefined
    // It counts as broken until it comes back: an evaluation that is cut short reaches no `catch`.
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

/** What an instance starts from: without a memory that holds the documents, a new one is filled. */
type StartPoint = Pick<SharedMemory, 'module'> & Partial<SharedMemory>

const keepsMemory = (instance: WasmInstance): boolean => instance.grownBy() <= keptGrowth

/** Compiles the module and parses the documents, which is what takes long: see `openBundle`. Throws `PolicyError`. */
export const prepareEngine = (source: EngineSource, options: Pick<RunnerOptions, 'limits'> = {}): PreparedEngine => {
  const module = compileModule(source.wasm)
  const documents = 'documents' in source ? source.documents : new TextEncoder().encode(JSON.stringify(source.data))
  return { module, image: start(module, { documents }, { ...options, builtins: {} }).image }
}

/** The same for a runner in another thread. */
export const prepareForThread = ({
  wasm,
  documents,
}: {
  wasm: Uint8Array<ArrayBuffer>
  documents: Uint8Array
}): PreparedEngine => {
  const module = compileModule(forSharedMemory(wasm))
  const { memory, image } = start(module, { documents, shared: true }, { builtins: {} })
  return { module: compileModule(wasm), image, sharedMemory: { module, memory } }
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
