import { type Reader, unknown } from './binary.ts'

/** The opcodes that metering must tell from others. `0xfc` is a prefix: the number behind it is added to `0xfc00`. */
export const opcodes = {
  unreachable: 0x00,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  end: 0x0b,
  call: 0x10,
  localGet: 0x20,
  localSet: 0x21,
  localTee: 0x22,
  globalGet: 0x23,
  globalSet: 0x24,
  memoryGrow: 0x40,
  constant: 0x41,
  lessThan: 0x48,
  add: 0x6a,
  subtract: 0x6b,
  and: 0x71,
  shiftLeft: 0x74,
  shiftRight: 0x76,
  memoryCopy: 0xfc0a,
  memoryFill: 0xfc0b,
} as const

const prefix = 0xfc

/** How many numbers follow each opcode; `unlisted` where that is not all there is to it. */
const unlisted = 255
const operands = new Uint8Array(0x1_0000).fill(unlisted)
for (const [first, last, count] of [
  [0x00, 0x01, 0], // unreachable, nop
  [0x05, 0x05, 0], // else
  [0x0b, 0x0b, 0], // end
  [0x0c, 0x0d, 1], // br, br_if
  [0x0f, 0x0f, 0], // return
  [0x10, 0x10, 1], // call
  [0x11, 0x11, 2], // call_indirect
  [0x1a, 0x1b, 0], // drop, select
  [0x20, 0x24, 1], // variables
  [0x28, 0x3e, 2], // load, store: alignment and offset
  [0x3f, 0x42, 1], // memory.size, memory.grow, i32.const, i64.const
  [0x45, 0xc4, 0], // numeric
  [0xfc00, 0xfc07, 0], // conversions
  [0xfc0a, 0xfc0a, 2], // memory.copy
  [0xfc0b, 0xfc0b, 1], // memory.fill
] as const) {
  operands.fill(count, first, last + 1)
}
const branchTable = 0x0e
const noResult = 0x40
const bytesOfFloat: Record<number, number> = { 67: 4, 68: 8 }

/** Of a number; no others are known. */
export const skipValueType = (reader: Reader): void => {
  const type = reader.byte()
  if (type < 0x7c || type > 0x7f) throw unknown(`the type 0x${type.toString(16)}`)
}

/** Goes behind one instruction and answers with its opcode. Throws `PolicyError` for one that is not known. */
export const skipInstruction = (reader: Reader): number => {
  const first = reader.byte()
  const opcode = first === prefix ? prefix * 256 + reader.number() : first
  const count = operands[opcode] ?? unlisted
  if (count !== unlisted) {
    // An alignment that is larger names one of several memories.
    if (opcode >= 0x28 && opcode <= 0x3e && reader.peek() >= 0x40) throw unknown('more than one memory')
    for (let operand = 0; operand < count; operand++) reader.skipNumber()
  } else if (opcode >= opcodes.block && opcode <= opcodes.if) {
    // A type of references is longer than a byte: what follows would be read as other instructions than it is.
    if (reader.peek() === noResult) reader.byte()
    else skipValueType(reader)
  } else if (opcode === branchTable) {
    for (let labels = reader.number() + 1; labels > 0; labels--) reader.skipNumber()
  } else if (bytesOfFloat[opcode]) reader.skip(bytesOfFloat[opcode])
  else throw unknown(`the instruction 0x${opcode.toString(16)}`)
  return opcode
}
