import { randomBytes } from 'node:crypto'
import { PolicyError, UnitsUsedUp } from '../base/policy-error.ts'
import type { Builtin, BuiltinTable, EvaluationContext } from '../builtins/builtin.ts'
import { BuiltinError } from '../values/operands.ts'
import { parseValue, writeValue } from '../values/text.ts'
import type { Value } from '../values/value.ts'
import { unitsExport } from '../wasm/meter.ts'
import { link } from './abi.ts'
import type { MemoryImage } from './image.ts'
import { aligned } from './memory.ts'

/**
 * One instance of an OPA policy module, called through OPA's WASM ABI 1.2 or later (`opa_eval`, one call a decision):
 * the input is written behind the heap's end as JSON, and the answer is JSON that ends with a NUL. Every instance has a
 * memory of its own and is not re-entrant.
 */
export interface WasmInstance {
  /**
   * The answer as JSON, or as the text of a Rego value (see `values/text.ts`): sets stay sets, keys what they are.
   * Throws `UnitsUsedUp` when it takes more than `units` (default: those of the limits), and other `PolicyError`s.
   */
  evaluate(entrypoint: number, input: string | undefined, options?: { units?: number; form?: 'json' | 'value' }): string
  /** What the last evaluation took; also when it threw. */
  unitsTaken(): number
  /**
   * Whether the last evaluation would answer the same again: it asked for nothing but its input and the documents, and
   * printed nothing.
   */
  repeatable(): boolean
  readonly memory: WebAssembly.Memory
}

const envelopeBytes = '[{"result":}]'.length

/** What every call of a built-in function takes, some 3 µs, and one more for each character read or byte written. */
const unitsOfCall = 1_000
/** And every line that is printed, for whoever writes it down. */
const unitsOfLine = 5_000

const encoder = new TextEncoder()

/** @param memory one that holds the documents of the image. */
export const instantiate = ({
  module,
  image,
  memory,
  builtins,
  limits,
  now,
  print,
}: {
  module: WebAssembly.Module
  image: MemoryImage
  memory: WebAssembly.Memory
  builtins: BuiltinTable
  limits: { input: number; result: number; units: number }
  /** Milliseconds since 1970; asked at most once an evaluation. */
  now: () => number
  print: (line: string) => void
}): WasmInstance => {
  const supplied = suppliedBuiltins(image, builtins)
  let nowNs: bigint | undefined
  let drawn: Map<string, Uint8Array> | undefined
  let paid: Set<string> | undefined
  let repeatable = true
  let given = 0
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
      context.spend(unitsOfLine + line.length)
      print(line)
    },
    spend: (units) => {
      const rest = left.value - units
      left.value = Math.max(-1, rest)
      if (rest < 0) throw new UnitsUsedUp(given)
    },
    spendOnce: (purpose, units) => {
      paid ??= new Set()
      if (paid.has(purpose)) return
      context.spend(units)
      paid.add(purpose)
    },
  }
  /** 0 where there is no answer: the expression that asked is undefined. */
  const callBuiltin = (id: number, _reserved: number, ...operands: number[]): number => {
    const builtin = supplied[id]
    if (!builtin) {
      throw new PolicyError(`the policy calls the built-in function ${id}, which it does not name`, { code: 'failed' })
    }
    const texts = operands.map((operand) => textAt(exports.opa_value_dump(operand)))
    context.spend(texts.reduce((sum, { length }) => sum + length, unitsOfCall))
    const result = answerOf(builtin, texts.map(parseValue), context)
    if (result === undefined) return 0
    const answer = encoder.encode(writeValue(result))
    context.spend(answer.length)
    return write(answer, exports.opa_value_parse)
  }

  const { exports, bytes, textAt, write } = link(module, memory, { callBuiltin, print: context.print })
  const left = exports[unitsExport]
  bytes().set(image.own)
  const { heap } = image

  return {
    memory,
    evaluate(entrypoint, input, { units = limits.units, form = 'json' } = {}) {
      nowNs = undefined
      drawn = undefined
      paid = undefined
      repeatable = true
      given = units
      left.value = units
      const length = input === undefined ? 0 : writeInput(bytes(), heap, input, limits.input)
      const start = aligned(heap + length)
      const format = form === 'json' ? 0 : 1
      try {
        const answer = exports.opa_eval(0, entrypoint, image.data, length === 0 ? 0 : heap, length, start, format)
        return textAt(answer, limits.result + envelopeBytes)
      } catch (error) {
        // By the trap of the meter; what else is thrown leaves units over.
        if (left.value < 0) throw new UnitsUsedUp(units)
        throw error
      }
    },
    unitsTaken: () => Math.min(given, given - left.value),
    repeatable: () => repeatable,
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

const writeInput = (bytes: Buffer, address: number, input: string, most: number): number => {
  const { read, written } = encoder.encodeInto(input, bytes.subarray(address, address + most))
  if (read < input.length) throw new PolicyError(`the policy input is larger than ${most} bytes`)
  return written
}
