import { randomBytes } from 'node:crypto'
import { PolicyError, UnitsUsedUp } from '../base/policy-error.ts'
import type { Builtin, BuiltinTable, EvaluationContext } from '../builtins/builtin.ts'
import { BuiltinError } from '../values/operands.ts'
import { parseValue, writeValue } from '../values/text.ts'
import type { Value } from '../values/value.ts'
import { pageBytes, pages, sharedCopy, sharedPart, weigh } from './memory.ts'

/**
 * One instance of an OPA policy module, called through OPA's WASM ABI 1.2 or later (`opa_eval`, one call a decision):
 * the input is written behind the heap's end as JSON, and the answer is JSON that ends with a NUL. Every instance has a
 * memory of its own and is not re-entrant.
 */
export interface WasmInstance {
  readonly entrypoints: Readonly<Record<string, number>>
  /** The answer as JSON, or as the text of a Rego value (see `values/text.ts`): sets stay sets, keys what they are. */
  evaluate(entrypoint: number, input: string | undefined, form?: 'json' | 'value'): string
  /**
   * Whether the last evaluation would answer the same again: it asked for nothing but its input and the documents, and
   * printed nothing.
   */
  repeatable(): boolean
  /** Bytes by which the memory grew since the start. */
  grownBy(): number
  readonly memory: WebAssembly.Memory
  /** What other instances start from. */
  readonly image: MemoryImage
}

/**
 * A memory with its documents parsed. Other instances start from it without parsing them again, in a new memory or in
 * that of an instance that threw: globals (the shadow stack's pointer among them) belong to instances, so a new
 * instance in an old memory is sound.
 */
export interface MemoryImage {
  /** The memory below the documents: the module's own variables and its stack. */
  own: Uint8Array<SharedArrayBuffer>
  /**
   * The parsed documents, from there to `heap`, which no evaluation changes. Shared: other threads need no copy to
   * start from.
   */
  documents: Uint8Array<SharedArrayBuffer>
  /** The parsed documents. Address. */
  data: number
  /** Where each evaluation puts its input. Address, a multiple of 8. */
  heap: number
  /** Of the whole memory at the start. Bytes. */
  size: number
  entrypoints: Readonly<Record<string, number>>
  /** Names by the number under which the module calls them. */
  builtins: readonly string[]
}

/** The exports that are used. Addresses and lengths are numbers; 0 is NULL. */
interface Exports {
  opa_wasm_abi_version: WebAssembly.Global
  opa_wasm_abi_minor_version: WebAssembly.Global
  builtins(): number
  entrypoints(): number
  opa_malloc(size: number): number
  opa_json_parse(address: number, length: number): number
  opa_json_dump(value: number): number
  /** Like the two above for values of any kind: see `values/text.ts`. */
  opa_value_parse(address: number, length: number): number
  opa_value_dump(value: number): number
  opa_heap_ptr_get(): number
  opa_heap_ptr_set(address: number): void
  opa_eval(
    reserved: 0,
    entrypoint: number,
    data: number,
    input: number,
    inputLength: number,
    heap: number,
    format: 0 | 1,
  ): number
}

/** Room for the answers of most decisions, so that memory need not grow. Bytes. */
const workspace = 524_288

const envelopeBytes = '[{"result":}]'.length

const encoder = new TextEncoder()

/**
 * Either documents to parse, as JSON (`shared`: into shared memory, for a module made for it), or an image (`memory`:
 * one that already holds its documents).
 */
export type InstanceOrigin =
  | { documents: Uint8Array; shared?: boolean }
  | { image: MemoryImage; memory?: WebAssembly.Memory | undefined }

export const instantiate = ({
  module,
  origin,
  builtins,
  limits,
  now,
  print,
}: {
  module: WebAssembly.Module
  origin: InstanceOrigin
  builtins: BuiltinTable
  limits: { input: number; result: number; memory: number; units: number }
  /** Milliseconds since 1970; asked at most once an evaluation. */
  now: () => number
  print: (line: string) => void
}): WasmInstance => {
  const maximum = pages(limits.memory)
  const from = 'image' in origin ? origin : undefined
  const initial = pages(from?.image.size ?? limits.input + workspace)
  const shared = 'shared' in origin && origin.shared === true
  const memory = from?.memory ?? new WebAssembly.Memory({ initial, maximum, shared })
  let bytes = Buffer.from(memory.buffer)
  /** Growing the memory detaches the old view. */
  const view = (): Buffer => {
    if (bytes.buffer !== memory.buffer) bytes = Buffer.from(memory.buffer)
    return bytes
  }

  const textAt = (address: number, most = Number.POSITIVE_INFINITY): string => {
    const all = view()
    const end = all.indexOf(0, address)
    if (end - address > most) throw new PolicyError(`the decision is larger than ${limits.result} bytes`)
    return all.toString('utf8', address, end)
  }
  const readJson = (value: number): unknown => JSON.parse(textAt(exports.opa_json_dump(value)))
  const readValue = (value: number): Value => parseValue(textAt(exports.opa_value_dump(value)))
  const write = (encoded: Uint8Array, parse: (address: number, length: number) => number): number => {
    const address = exports.opa_malloc(encoded.length)
    view().set(encoded, address)
    const parsed = parse(address, encoded.length)
    if (parsed === 0) throw new PolicyError('a value is not valid for the policy')
    return parsed
  }

  let nowNs: bigint | undefined
  let drawn: Map<string, Uint8Array> | undefined
  let repeatable = true
  let paid: Set<string> | undefined
  let left = limits.units
  // All that reaches a policy from outside goes through here.
  const context: EvaluationContext = {
    nowNs: () => {
      repeatable = false
      nowNs ??= BigInt(now()) * 1_000_000n
      return nowNs
    },
    random: (purpose, length) => {
      repeatable = false
      drawn ??= new Map()
      const known = drawn.get(purpose)
      if (known?.length === length) return known
      const fresh = randomBytes(length)
      drawn.set(purpose, fresh)
      return fresh
    },
    print: (line) => {
      repeatable = false
      print(line)
    },
    spend: (units) => {
      left -= units
      if (left < 0) throw new UnitsUsedUp(limits.units)
    },
    spendOnce: (purpose, units) => {
      paid ??= new Set()
      if (paid.has(purpose)) return
      context.spend(units)
      paid.add(purpose)
    },
  }
  /** 0 where there is no answer: the expression that asked is undefined. */
  const callBuiltin = (id: number, _context: number, ...args: number[]): number => {
    const builtin = supplied[id]
    if (!builtin) throw new PolicyError(`the policy calls the built-in function ${id}, which it does not name`)
    const result = answerOf(builtin, args.map(readValue), context)
    return result === undefined ? 0 : write(encoder.encode(writeValue(result)), exports.opa_value_parse)
  }

  const instance = new WebAssembly.Instance(module, {
    env: {
      memory,
      opa_abort: (message: number) => {
        throw new PolicyError(textAt(message))
      },
      opa_println: (line: number) => context.print(textAt(line)),
      opa_builtin0: callBuiltin,
      opa_builtin1: callBuiltin,
      opa_builtin2: callBuiltin,
      opa_builtin3: callBuiltin,
      opa_builtin4: callBuiltin,
    },
  })
  const exports = instance.exports as unknown as Exports
  requireAbi(exports)

  const load = (json: Uint8Array): MemoryImage => {
    const needed: string[] = []
    for (const [name, id] of Object.entries(readJson(exports.builtins()) as Record<string, number>)) needed[id] = name
    const entrypoints = readJson(exports.entrypoints()) as Record<string, number>
    const start = exports.opa_heap_ptr_get()
    const data = write(json, exports.opa_json_parse)
    const heap = aligned(exports.opa_heap_ptr_get())
    const room = heap + limits.input + workspace - memory.buffer.byteLength
    if (room > 0) memory.grow(pages(room))
    const size = memory.buffer.byteLength
    const own = sharedCopy(memory.buffer, 0, start)
    const read = shared ? sharedPart : sharedCopy
    return { own, documents: read(memory.buffer, start, heap), data, heap, size, entrypoints, builtins: needed }
  }
  const image = 'image' in origin ? origin.image : load(origin.documents)
  // One that only loads documents evaluates nothing.
  const supplied = from ? suppliedBuiltins(image, builtins) : []
  if (from) view().set(image.own)
  if (from && !from.memory) view().set(image.documents, image.own.length)
  const { heap } = image
  weigh(memory)

  return {
    entrypoints: image.entrypoints,
    memory,
    evaluate(entrypoint, input, form = 'json') {
      nowNs = undefined
      drawn = undefined
      paid = undefined
      repeatable = true
      left = limits.units
      const length = input === undefined ? 0 : writeInput(view(), heap, input, limits.input)
      const start = aligned(heap + length)
      const format = form === 'json' ? 0 : 1
      const answer = exports.opa_eval(0, entrypoint, image.data, length === 0 ? 0 : heap, length, start, format)
      return textAt(answer, limits.result + envelopeBytes)
    },
    repeatable: () => repeatable,
    grownBy: () => memory.buffer.byteLength - image.size,
    image,
  }
}

const suppliedBuiltins = ({ builtins: needed }: MemoryImage, builtins: BuiltinTable): Builtin[] => {
  const supplied: Builtin[] = []
  const missing: string[] = []
  // Not every number has a name.
  needed.forEach((name, id) => {
    const builtin = builtins[name]
    if (builtin) supplied[id] = builtin
    else missing.push(name)
  })
  if (missing.length > 0) {
    throw new PolicyError(`the policy uses built-in functions that are not supplied: ${missing.sort().join(', ')}`)
  }
  return supplied
}

const answerOf = (builtin: Builtin, args: readonly Value[], context: EvaluationContext): Value | undefined => {
  try {
    return builtin(args, context)
  } catch (error) {
    if (error instanceof BuiltinError) return undefined
    throw error
  }
}

const aligned = (address: number): number => (address + 7) & ~7

/** Throws `PolicyError` when the bytes are not WebAssembly. */
export const compileModule = (wasm: Uint8Array<ArrayBuffer>): WebAssembly.Module => {
  try {
    return new WebAssembly.Module(wasm)
  } catch (error) {
    throw new PolicyError('the bundle holds no valid WebAssembly module', { cause: error })
  }
}

/** The built-in functions that a policy needs from its host. */
export const neededBuiltins = (wasm: Uint8Array<ArrayBuffer>): string[] => {
  const instance = instantiate({
    module: compileModule(wasm),
    origin: { documents: encoder.encode('{}') },
    builtins: {},
    limits: { input: pageBytes, result: pageBytes, memory: 1024 * pageBytes, units: 0 },
    now: Date.now,
    print: () => {},
  })
  return Object.values(instance.image.builtins)
}

const writeInput = (bytes: Buffer, address: number, input: string, most: number): number => {
  const { read, written } = encoder.encodeInto(input, bytes.subarray(address, address + most))
  if (read < input.length) throw new PolicyError(`the policy input is larger than ${most} bytes`)
  return written
}

const requireAbi = (exports: Exports): void => {
  const version = exports.opa_wasm_abi_version?.value
  const minor = exports.opa_wasm_abi_minor_version?.value
  if (version !== 1 || !(minor >= 2)) {
    throw new PolicyError(`the module speaks OPA's WASM ABI ${version}.${minor}; 1.2 or a later 1.x is needed`)
  }
}
