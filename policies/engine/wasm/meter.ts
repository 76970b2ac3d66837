import { PolicyError } from '../base/policy-error.ts'
import { numberBytes, readerOf, sectionsOf, signedBytes, withSections } from './binary.ts'
import { type Body, type Functions, readFunctions, type Stretch } from './functions.ts'
import { opcodes } from './instructions.ts'

/**
 * The module that counts its own work: a global variable, exported as `unitsExport`, goes down with every round of a
 * loop, with calls, and with memory that is added, copied or filled. What takes it below 0 ends by a trap. The same
 * input always takes the same. The host sets the variable before it calls.
 *
 * The module must be valid: code that names the variable would be made valid by this. Throws `PolicyError` for a module
 * that holds what is not known here.
 */
export const metered = (wasm: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
  const functions = readFunctions(wasm)
  if (functions.exports.has(unitsExport)) throw new PolicyError(`the module has an export ${unitsExport} of its own`)
  const variable = numberBytes(functions.globals)
  const start = signedBytes(unitsOfStart)
  return withSections(wasm, {
    global: withItem(wasm, 'global', [i32, mutable, opcodes.constant, ...start, opcodes.end]),
    export: withItem(wasm, 'export', [unitsExport.length, ...Buffer.from(unitsExport), globalKind, ...variable]),
    code: codeOf(wasm, functions, variable),
  })
}

export const unitsExport = 'surrogate:units'
/** What the variable can hold. */
export const mostUnits = 0x7fff_ffff
/** For the module's own start, before the host can set anything. */
const unitsOfStart = 1_000_000

/** So many instructions are a unit, as they are written: of two branches both count. That takes 1 to 3 ns. */
const instructionsOfUnit = 128
/** Bodies of up to so many instructions, with those that they call, are in the price of whoever calls them. */
const small = 200
/** A quarter of what the variable holds: however much is taken at once, it cannot wrap around to above 0. */
const mostAtOnce = 0x2000_0000

const i32 = 0x7f
const mutable = 1
const globalKind = 3
const noResult = 0x40

/** The content of a section with one item more. */
const withItem = (wasm: Uint8Array, wanted: 'global' | 'export', item: readonly number[]): Uint8Array => {
  const section = sectionsOf(wasm).find(({ name }) => name === wanted)
  if (!section) throw new PolicyError("the module speaks no version of OPA's WASM ABI")
  const reader = readerOf(wasm, section.start, section.end)
  const count = numberBytes(reader.number() + 1)
  return concat([Uint8Array.from(count), wasm.subarray(reader.at, section.end), Uint8Array.from(item)])
}

/**
 * What each stretch of a module takes, in units; 0 where it is in the price of whoever calls. Those pay for themselves
 * that are not small, that are called through the table, and one of each circle of calls.
 */
const pricesOf = ({ imported, bodies, indirect }: Functions): Map<Stretch, number> => {
  const prices = new Map<Stretch, number>()
  /** In instructions, for whoever calls; undefined while it is being found. */
  const callPrices = new Map<number, number | undefined>()
  const payForThemselves = new Set(indirect)

  const instructionsOf = ({ count, calls }: Stretch): number =>
    calls.reduce((sum, callee) => sum + callPriceOf(callee), count)
  const callPriceOf = (index: number): number => {
    const body = bodies[index - imported]
    if (!body) return 0
    if (callPrices.has(index)) {
      const known = callPrices.get(index)
      if (known === undefined) payForThemselves.add(index)
      return known ?? 0
    }
    callPrices.set(index, undefined)
    const [whole, ...loops] = body.stretches
    for (const loop of loops) prices.set(loop, unitsOf(instructionsOf(loop)))
    const instructions = instructionsOf(whole)
    const pays = instructions > small || payForThemselves.has(index)
    prices.set(whole, pays ? unitsOf(instructions) : 0)
    callPrices.set(index, pays ? 0 : instructions)
    return pays ? 0 : instructions
  }
  for (const at of bodies.keys()) callPriceOf(imported + at)
  return prices
}

const unitsOf = (instructions: number): number => Math.min(mostAtOnce, Math.ceil(instructions / instructionsOfUnit))

const codeOf = (wasm: Uint8Array, functions: Functions, variable: readonly number[]): Uint8Array => {
  const prices = pricesOf(functions)
  const parts: Uint8Array[] = [Uint8Array.from(numberBytes(functions.bodies.length))]
  for (const body of functions.bodies) {
    const content = withInsertions(wasm, body, insertionsOf(body, prices, variable))
    const length = content.reduce((sum, part) => sum + part.length, 0)
    parts.push(Uint8Array.from(numberBytes(length)), ...content)
  }
  return concat(parts)
}

interface Insertion {
  at: number
  code: readonly number[]
}

const insertionsOf = (
  { variables, stretches, sized }: Body,
  prices: Map<Stretch, number>,
  variable: readonly number[],
): Insertion[] => {
  // The two locals that `withInsertions` adds.
  const operand = numberBytes(variables)
  const left = numberBytes(variables + 1)
  const take = (units: readonly number[]): number[] => [
    ...[opcodes.globalGet, ...variable, ...units, opcodes.subtract, opcodes.localTee, ...left],
    ...[opcodes.globalSet, ...variable, opcodes.localGet, ...left, opcodes.constant, 0, opcodes.lessThan],
    ...[opcodes.if, noResult, opcodes.unreachable, opcodes.end],
  ]
  const ofStretches = stretches.flatMap((stretch) => {
    const price = prices.get(stretch) ?? 0
    return price === 0 ? [] : { at: stretch.at, code: take([opcodes.constant, ...signedBytes(price)]) }
  })
  const ofSizes = sized.map(({ at, opcode }) => {
    const units = [opcodes.localGet, ...operand, ...(opcode === opcodes.memoryGrow ? unitsOfPages : unitsOfBytes)]
    return { at, code: [opcodes.localSet, ...operand, ...take(units), opcodes.localGet, ...operand] }
  })
  return [...ofStretches, ...ofSizes].sort((one, other) => one.at - other.at)
}

/**
 * A unit for 8 bytes of new memory, or for 64 that are copied or filled, and for nothing as much as for a little: the
 * call alone takes long. Of pages no more than there can be.
 */
const oneMore = [opcodes.constant, 1, opcodes.add]
const pagesAtMost = [opcodes.constant, ...signedBytes(0xffff), opcodes.and]
const unitsOfPages = [...pagesAtMost, ...oneMore, opcodes.constant, 13, opcodes.shiftLeft]
const unitsOfBytes = [opcodes.constant, 6, opcodes.shiftRight, ...oneMore]

const withInsertions = (wasm: Uint8Array, { start, groups, stretches, end }: Body, insertions: Insertion[]) => {
  if (insertions.length === 0) return [wasm.subarray(start, end)]
  const code = stretches[0].at
  const locals = [wasm.subarray(groups.start, code), Uint8Array.of(2, i32)]
  const parts = [Uint8Array.from(numberBytes(groups.count + 1)), ...locals]
  let copied = code
  for (const { at, code } of insertions) {
    parts.push(wasm.subarray(copied, at), Uint8Array.from(code))
    copied = at
  }
  return [...parts, wasm.subarray(copied, end)]
}

const concat = (parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.concat(parts))
