import { hostBuiltins } from './builtins/index.ts'
import { type EntrypointOptions, entrypointTable, inputText, resultOf } from './entrypoints.ts'
import { PolicyError } from './policy-error.ts'
import { parseValue, type RegoObject, type RegoSet, type Value } from './values.ts'
import {
  compileModule,
  type InstanceOrigin,
  instantiate,
  type MemoryImage,
  memoryOf,
  type WasmInstance,
} from './wasm-instance.ts'

export interface WasmEngine {
  readonly entrypoints: readonly string[]
  /** The value of the entrypoint, `undefined` when no rule gives one. Throws `PolicyError`; the next call has a fresh instance. */
  evaluate(entrypoint: string, input: unknown): unknown
  /** The same from and as JSON (see `resultOf`), always evaluated: for questions that come from another thread. */
  answer(entrypoint: string, input: string | undefined): Answer
  /** The same as an exact Rego value; the input is the text of one. For tools: several times slower. */
  evaluateExactly(entrypoint: string, input: string | undefined): Value | undefined
}

export interface Answer {
  text: string
  /** Whether the same input would be answered the same at any time. */
  repeatable: boolean
}

/** Bytes. */
export interface EngineLimits {
  /** Of the input as JSON; more is an error. Default 64 kB. */
  input: number
  /** Of the result as JSON; more is an error. Default 64 kB. */
  result: number
  /** Of one instance's memory, the documents included (JSON takes about 14 times its size there). Default 256 MB. */
  memory: number
}

export const defaultLimits: EngineLimits = { input: 65_536, result: 65_536, memory: 268_435_456 }

/** An instance that has grown by more than this is replaced, since WASM memory never shrinks. Bytes. */
const keptGrowth = 16_777_216

export interface EngineSource {
  wasm: Uint8Array<ArrayBuffer>
  data: unknown
}

export interface EngineOptions extends EntrypointOptions {
  limits?: Partial<EngineLimits>
  now?: () => number
  /** Receives the lines that rules print. */
  print?: (line: string) => void
}

/** A compiled policy with its documents parsed: what takes long about starting one. Can be sent to other threads, which share it. */
export interface PreparedEngine {
  module: WebAssembly.Module
  image: MemoryImage
}

/**
 * Runs a compiled policy on this thread. Throws `PolicyError` when the module is not an OPA policy or needs a built-in function
 * that we do not supply.
 */
export const createWasmEngine = (options: EngineSource & EngineOptions): WasmEngine =>
  engineOf(prepareEngine(options), options)

/** The same from what was prepared here or in another thread, without holding this one up. */
export const loadWasmEngine = async (prepared: PreparedEngine, options: EngineOptions = {}): Promise<WasmEngine> =>
  engineOf(prepared, options, await memoryOf(prepared.image, limitsOf(options)))

/** Parses the documents and compiles the module, which takes long: see `openBundle`. Throws `PolicyError`. */
export const prepareEngine = ({ wasm, data, ...options }: EngineSource & EngineOptions): PreparedEngine => {
  const module = compileModule(wasm)
  return { module, image: start(module, { data }, options).image() }
}

const limitsOf = ({ limits }: EngineOptions): EngineLimits => ({ ...defaultLimits, ...limits })

const start = (module: WebAssembly.Module, origin: InstanceOrigin, options: EngineOptions): WasmInstance => {
  const limits = limitsOf(options)
  try {
    return instantiate({
      module,
      origin,
      builtins: hostBuiltins,
      limits,
      now: options.now ?? Date.now,
      print: options.print ?? (() => {}),
    })
  } catch (error) {
    if (error instanceof PolicyError) throw error
    throw new PolicyError(`the policy cannot be started within ${limits.memory} bytes`, { cause: error })
  }
}

/** From the image again and again: callers may be able to provoke errors, so starting another instance must be cheap. */
const engineOf = (
  { module, image }: PreparedEngine,
  options: EngineOptions,
  memory?: WebAssembly.Memory,
): WasmEngine => {
  const named = entrypointTable(image.entrypoints, options)

  // Taken out for the evaluation and put back after a good one. One that threw is never used again: nothing unwinds its shadow
  // stack, and after some hundred throws every call would fail with "memory access out of bounds".
  let idle: WasmInstance | undefined = start(module, { image, memory }, options)
  let spare: WebAssembly.Memory | undefined
  const takeInstance = (): WasmInstance => {
    const [instance, memory] = [idle, spare]
    idle = undefined
    if (instance) return instance
    spare = undefined
    return start(module, { image, memory }, options)
  }

  const run = <Result>(use: (instance: WasmInstance) => Result): Result => {
    const instance = takeInstance()
    try {
      const result = use(instance)
      if (instance.grownBy() <= keptGrowth) idle = instance
      return result
    } catch (error) {
      if (instance.grownBy() <= keptGrowth) spare = instance.memory
      if (error instanceof PolicyError) throw error
      throw new PolicyError('the policy failed while it was evaluated', { cause: error })
    }
  }

  return {
    entrypoints: Object.keys(image.entrypoints),
    evaluate(entrypoint, input) {
      const found = named(entrypoint)
      const text = inputText(input, found)
      const known = text === undefined ? undefined : found.known?.get(text)
      if (known !== undefined) return resultOf(known)
      return run((instance) => {
        const answer = instance.evaluate(found.id, text)
        const result = resultOf(answer)
        if (text !== undefined && instance.repeatable()) found.known?.set(text, answer)
        return result
      })
    },
    answer(entrypoint, input) {
      const { id } = named(entrypoint)
      return run((instance) => ({ text: instance.evaluate(id, input), repeatable: instance.repeatable() }))
    },
    evaluateExactly(entrypoint, input) {
      const { id } = named(entrypoint)
      return run((instance) => {
        // A set of at most one object, unlike the JSON of it.
        const [answer] = parseValue(instance.evaluate(id, input, 'value')) as RegoSet
        return (answer as RegoObject | undefined)?.get('result')
      })
    },
  }
}
