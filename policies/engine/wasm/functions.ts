import { type Reader, readerOf, type SectionName, sectionsOf, unknown } from './binary.ts'
import { opcodes, skipInstruction, skipValueType } from './instructions.ts'

/** What metering needs to know of a module. Indices of functions count the imported ones first. */
export interface Functions {
  imported: number
  bodies: Body[]
  /** Functions that are called through the table, without being named. */
  indirect: ReadonlySet<number>
  /** How many there are. */
  globals: number
  exports: ReadonlySet<string>
}

/** The offsets are those in the module. */
export interface Body {
  start: number
  /** Groups of declared locals, and where the first one is. */
  groups: { count: number; start: number }
  /** Parameters and locals. */
  variables: number
  /** The instructions on the way through the body itself, then those of its loops. */
  stretches: [Stretch, ...Stretch[]]
  /** Instructions whose work is as much as their last operand says. */
  sized: { at: number; opcode: number }[]
  end: number
}

/** Instructions of a body, or of a loop, without those of the loops within: each runs once a round at most. */
export interface Stretch {
  /** Where the first one is. */
  at: number
  count: number
  calls: number[]
}

/** Throws `PolicyError` for what is not known. The module must be valid. */
export const readFunctions = (wasm: Uint8Array): Functions => {
  const parameters: number[] = []
  const types: number[] = []
  const bodies: Body[] = []
  const indirect = new Set<number>()
  const exports = new Set<string>()
  let imported = 0
  let globals = 0
  let tables = 0
  const read: Partial<Record<SectionName, (reader: Reader) => void>> = {
    type(reader) {
      if (reader.byte() !== 0x60) throw unknown('a type that is none of functions')
      parameters.push(reader.vector(() => skipValueType(reader)).length)
      reader.vector(() => skipValueType(reader))
    },
    import(reader) {
      reader.name()
      reader.name()
      const kind = reader.byte()
      if (kind > 0) return skipMemory(reader, kind)
      reader.number()
      imported++
    },
    function: (reader) => types.push(reader.number()),
    table(reader) {
      if (tables++ > 0) throw unknown('more than one table')
      if (reader.byte() !== functionReference) throw unknown('a table of this form')
      if (skipLimits(reader) > mostInTable) throw unknown('a table of this size')
    },
    global(reader) {
      skipValueType(reader)
      reader.byte()
      skipExpression(reader)
      globals++
    },
    export(reader) {
      exports.add(reader.name())
      reader.byte()
      reader.number()
    },
    element(reader) {
      if (reader.number() !== 0) throw unknown('a table of this form')
      skipExpression(reader)
      for (const index of reader.vector(reader.number)) indirect.add(index)
    },
    code(reader) {
      const end = reader.number() + reader.at
      bodies.push(readBody(reader, end, parameters[types[bodies.length]!]!))
    },
  }
  for (const { name, start, end } of sectionsOf(wasm)) {
    const reader = readerOf(wasm, start, end)
    const item = read[name]
    if (item) reader.vector(() => item(reader))
  }
  return { imported, bodies, indirect, globals, exports }
}

const functionReference = 0x70
/** All of them are there from the start of every instance. OPA's modules have some hundred. */
const mostInTable = 65_536

const skipMemory = (reader: Reader, kind: number): void => {
  if (kind !== 2) throw unknown('an import that is no function and no memory')
  skipLimits(reader)
}

/** Answers with the minimum. */
const skipLimits = (reader: Reader): number => {
  const form = reader.byte()
  if (form > 1) throw unknown('a memory or table of this form')
  const minimum = reader.number()
  if (form === 1) reader.number()
  return minimum
}

const skipExpression = (reader: Reader): void => {
  while (skipInstruction(reader) !== opcodes.end);
}

/** Each call sets the locals to 0; up to so many cost next to nothing. */
const fewLocals = 100
const instructionsToClear = 12

const sized: readonly number[] = [opcodes.memoryGrow, opcodes.memoryCopy, opcodes.memoryFill]

const readBody = (reader: Reader, end: number, parameters: number): Body => {
  const start = reader.at
  const groups = { count: reader.number(), start: reader.at }
  let variables = parameters
  for (let group = 0; group < groups.count; group++) {
    variables += reader.number()
    skipValueType(reader)
  }
  const toClear = Math.max(0, variables - parameters - fewLocals) * instructionsToClear
  let stretch: Stretch = { at: reader.at, count: toClear, calls: [] }
  const body: Body = { start, groups, variables, stretches: [stretch], sized: [], end }
  /** The stretches around the open blocks. */
  const around: Stretch[] = []
  while (reader.at < end) {
    const { at } = reader
    const opcode = skipInstruction(reader)
    stretch.count++
    if (opcode === opcodes.block || opcode === opcodes.loop || opcode === opcodes.if) around.push(stretch)
    if (opcode === opcodes.loop) {
      stretch = { at: reader.at, count: 1, calls: [] }
      body.stretches.push(stretch)
    } else if (opcode === opcodes.end) stretch = around.pop() ?? stretch
    else if (opcode === opcodes.call) stretch.calls.push(reader.again(at + 1).number())
    else if (sized.includes(opcode)) body.sized.push({ at, opcode })
  }
  if (reader.at !== end || around.length > 0) throw unknown('the form of a function')
  return body
}
