import { hostBuiltins } from './builtins/index.ts'
import { type InputReads, projectInput } from './input-reads.ts'
import { createKnownAnswers } from './known-answers.ts'
import { PolicyError } from './policy-error.ts'
import { parseValue, type RegoObject, type RegoSet, type Value } from './values.ts'
import { compileModule, instantiate, type MemoryImage, memoryOf, type WasmInstance } from './wasm-instance.ts'

export interface WasmEngine {
  readonly entrypoints: readonly string[]
  /** The value of the entrypoint, `undefined` when no rule gives one. Throws `PolicyError`; the next call has a fresh instance. */
  evaluate(entrypoint: string, input: unknown): unknown
  /** The same as an exact Rego value; the input is the text of one. For tools: several times slower. */
  evaluateExactly(entrypoint: string, input: string | undefined): Value | undefined
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

export interface EngineOptions {
  wasm: Uint8Array<ArrayBuffer>
  data: unknown
  /** What each entrypoint reads of its input; the rest is not handed over. Without: everything is. */
  reads?: Readonly<Record<string, InputReads>> | undefined
  limits?: Partial<EngineLimits>
  /** Whether an input that was answered before may be answered from memory. Default true; only speed differs. */
  remember?: boolean
  now?: () => number
  /** Receives the lines that rules print. */
  print?: (line: string) => void
}

/** A compiled policy with its documents parsed: what takes long about starting one. */
export interface PreparedEngine {
  module: WebAssembly.Module
  image: MemoryImage
}

/**
 * Runs a compiled policy on this thread. Throws `PolicyError` when the module is not an OPA policy or needs a built-in function
 * that we do not supply.
 */
export const createWasmEngine = (options: EngineOptions): WasmEngine => {
  const module = compileModule(options.wasm)
  const start = starter(module, options)
  const first = start()
  return engineOf({ start, first, image: first.image() }, options)
}

/** The same for a bundle, without holding this thread up where it was opened in another one. */
export const loadWasmEngine = async (
  bundle: Pick<EngineOptions, 'wasm' | 'data'> & { prepared?: PreparedEngine },
  options: Omit<EngineOptions, 'wasm' | 'data'> = {},
): Promise<WasmEngine> => {
  if (!bundle.prepared) return createWasmEngine({ ...options, wasm: bundle.wasm, data: bundle.data })
  const { module, image } = bundle.prepared
  // The documents are in the image.
  const start = starter(module, { ...options, data: undefined })
  const memory = await memoryOf(image, { ...defaultLimits, ...options.limits })
  return engineOf({ start, first: start({ image, memory }), image }, options)
}

export const prepareEngine = (options: Pick<EngineOptions, 'wasm' | 'data' | 'limits'>): PreparedEngine => {
  const module = compileModule(options.wasm)
  return { module, image: starter(module, options)().image() }
}

type Start = (from?: { image: MemoryImage; memory?: WebAssembly.Memory | undefined }) => WasmInstance

const starter = (module: WebAssembly.Module, options: Omit<EngineOptions, 'wasm'>): Start => {
  const limits = { ...defaultLimits, ...options.limits }
  return (from) => {
    try {
      return instantiate({
        module,
        data: options.data,
        ...(from && { from }),
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
}

/** `image`: callers may be able to provoke errors, so starting again must be cheap; parsing large documents would not be. */
const engineOf = (
  { start, first, image }: { start: Start; first: WasmInstance; image: MemoryImage },
  options: Pick<EngineOptions, 'reads' | 'remember'>,
): WasmEngine => {
  const entrypoints = new Map(
    Object.entries(first.entrypoints).map(([name, id]) => {
      const known = options.remember === false ? undefined : createKnownAnswers()
      return [name, { id, reads: options.reads?.[name] ?? null, known }]
    }),
  )

  // Taken out for the evaluation and put back after a good one. One that threw is never used again: nothing unwinds its shadow
  // stack, and after some hundred throws every call would fail with "memory access out of bounds".
  let idle: WasmInstance | undefined = first
  let spare: WebAssembly.Memory | undefined
  const takeInstance = (): WasmInstance => {
    const [instance, memory] = [idle, spare]
    idle = undefined
    if (instance) return instance
    spare = undefined
    return start({ image, memory })
  }

  const named = (entrypoint: string) => {
    const found = entrypoints.get(entrypoint)
    if (!found) throw new PolicyError(`the policy has no entrypoint ${entrypoint}`)
    return found
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
    entrypoints: [...entrypoints.keys()],
    evaluate(entrypoint, input) {
      const found = named(entrypoint)
      const text = writeInput(projectInput(input, found.reads))
      const known = text === undefined ? undefined : found.known?.get(text)
      if (known !== undefined) return resultOf(known)
      return run((instance) => {
        const answer = instance.evaluate(found.id, text)
        const result = resultOf(answer)
        if (text !== undefined && instance.repeatable()) found.known?.set(text, answer)
        return result
      })
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

/** Every answer is `[{"result":…}]`, or `[]` when no rule gave one. */
const resultOf = (answer: string): unknown => (JSON.parse(answer) as { result: unknown }[])[0]?.result

const writeInput = (input: unknown): string | undefined => {
  try {
    return JSON.stringify(input)
  } catch (error) {
    throw new PolicyError('the policy input cannot be written as JSON', { cause: error })
  }
}
