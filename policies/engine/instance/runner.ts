import { PolicyError } from '../base/policy-error.ts'
import type { BuiltinTable } from '../builtins/builtin.ts'
import { loadImage, type MemoryImage } from './image.ts'
import { instantiate, type WasmInstance } from './instance.ts'
import { pages, weigh } from './memory.ts'
import { compileModule } from './module.ts'

/**
 * A compiled policy with its documents parsed: what takes long about starting one. Can be sent to other threads, which
 * share it.
 */
export interface PreparedEngine {
  module: WebAssembly.Module
  image: MemoryImage
  /** Of an engine that was prepared for another thread. One runner takes it over and copies nothing. */
  sharedMemory?: MemoryWithDocuments
}

/** A memory that holds the documents of the image, and the module for such a memory. */
interface MemoryWithDocuments {
  module: WebAssembly.Module
  memory: WebAssembly.Memory
}

/** `documents` are the same as `data`, as JSON: callers that have them spare the work of writing them. */
export type EngineSource = { wasm: Uint8Array<ArrayBuffer> } & ({ data: unknown } | { documents: Uint8Array })

export interface EngineLimits {
  /** Of the input as JSON; more is an error. Bytes, default 64 kB. */
  input: number
  /** Of the result as JSON; more is an error. Bytes, default 64 kB. */
  result: number
  /** What one evaluation may use of memory, beside the documents. Bytes, default 32 MB. */
  room: number
  /**
   * Of one instance's memory, the documents included (JSON takes about 14 times its size there). Bytes, default 256 MB.
   */
  memory: number
  /** What one evaluation may spend, in units of work (see `wasm/meter.ts`). Default 5 000 000. */
  units: number
}

/** What an evaluation on the thread of its caller may spend, unless told otherwise. */
export const defaultUnits = 5_000_000

const defaultLimits: EngineLimits = {
  input: 65_536,
  result: 65_536,
  room: 33_554_432,
  memory: 268_435_456,
  units: defaultUnits,
}

/**
 * What instances are given. The functions are an argument because threads load them only for policies that use some.
 */
export interface RunnerOptions {
  builtins: BuiltinTable
  limits?: Partial<EngineLimits> | undefined
  now?: () => number
  /** Receives the lines that rules print. */
  print?: (line: string) => void
}

/** Lends an instance for one evaluation. Throws `PolicyError`; the next one has a fresh instance. */
export type Run = <Result>(use: (instance: WasmInstance) => Result) => Result

export const createRunner = ({ module, image, sharedMemory }: PreparedEngine, options: RunnerOptions): Run => {
  const { builtins, now = Date.now, print = () => {} } = options
  const limits = limitsOf(options)
  const maximum = Math.max(image.size, Math.min(limits.memory, image.heap + limits.room))
  /** A memory that no instance uses. */
  let spare: MemoryWithDocuments | undefined = sharedMemory
  const start = (): Started => {
    const from = spare ?? { module, memory: memoryOf(image, maximum) }
    spare = undefined
    weigh(from.memory)
    try {
      return { ...from, instance: instantiate({ ...from, image, builtins, limits, now, print }) }
    } catch (error) {
      throw failure(error)
    }
  }
  // An instance is taken out for an evaluation and put back when that went well. One that threw is never used again:
  // nothing unwinds its shadow stack, and after some hundred throws every call would fail with "memory access out of
  // bounds". Callers may be able to provoke errors, so another instance starts cheaply: from the image, and in the old
  // memory. One whose memory grew is not used again either, since that never shrinks, and the next evaluation would
  // not pay for it.
  let idle: Started | undefined = start()

  return (use) => {
    const started = idle ?? start()
    idle = undefined
    const grew = () => started.memory.buffer.byteLength > image.size
    try {
      const result = use(started.instance)
      if (!grew()) idle = started
      return result
    } catch (error) {
      if (!grew()) spare = started
      throw failure(error)
    }
  }
}

const failure = (cause: unknown): PolicyError =>
  cause instanceof PolicyError
    ? cause
    : new PolicyError('the policy failed while it was evaluated', { code: 'failed', cause })

type Started = MemoryWithDocuments & { instance: WasmInstance }

/** Compiles the module and parses the documents, which is what takes long: see `openBundle`. Throws `PolicyError`. */
export const prepareEngine = (source: EngineSource, options: Pick<RunnerOptions, 'limits'> = {}): PreparedEngine => {
  const module = compileModule(source.wasm)
  const documents = 'documents' in source ? source.documents : new TextEncoder().encode(JSON.stringify(source.data))
  return { module, image: loadImage(module, documents, limitsOf(options)) }
}

/** The same for a runner in another thread, which uses the memory as it is. */
export const prepareForThread = (wasm: Uint8Array<ArrayBuffer>, documents: Uint8Array): PreparedEngine => {
  const module = compileModule(wasm)
  let memory: WebAssembly.Memory | undefined
  const image = loadImage(module, documents, defaultLimits, (bytes, start, end) => {
    const size = pages(bytes.length)
    memory = new WebAssembly.Memory({ initial: size, maximum: size, shared: true })
    const kept = new Uint8Array(memory.buffer as SharedArrayBuffer, start, end - start)
    kept.set(bytes.subarray(start, end))
    return kept
  })
  return { module, image, ...(memory && { sharedMemory: { module: compileModule(wasm, { shared: true }), memory } }) }
}

const memoryOf = ({ size, own, documents }: MemoryImage, maximum: number): WebAssembly.Memory => {
  const memory = new WebAssembly.Memory({ initial: pages(size), maximum: pages(maximum) })
  new Uint8Array(memory.buffer).set(documents, own.length)
  return memory
}

const limitsOf = ({ limits }: Pick<RunnerOptions, 'limits'>): EngineLimits => ({ ...defaultLimits, ...limits })
