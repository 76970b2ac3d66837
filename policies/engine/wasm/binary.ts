import { PolicyError } from '../base/policy-error.ts'

/**
 * The binary format of WebAssembly (chapter 5 of the specification), as far as modules of OPA use it. What is not known
 * is an error: whoever rewrites a module must have understood all of it.
 */

/** The sections that are known, by their numbers. Custom ones (0) say nothing that matters. */
export const sectionIds = {
  custom: 0,
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
}
export type SectionName = keyof typeof sectionIds
const sectionNames = new Map(Object.entries(sectionIds).map(([name, id]) => [id, name as SectionName]))

export const unknown = (what: string) => new PolicyError(`the module cannot be used: ${what} is not known here`)

/** Reads one thing after the other. Throws `PolicyError` at the end of the bytes. */
export interface Reader {
  /** Offset of what comes next. */
  readonly at: number
  readonly done: boolean
  byte(): number
  /** The next one, which stays the next one. */
  peek(): number
  /** LEB128, unsigned, of 32 bits. */
  number(): number
  /** A number of any size and sign. */
  skipNumber(): void
  skip(length: number): void
  /** Text in UTF-8 behind its length. */
  name(): string
  /** Another reader of the same bytes, from `at` on. */
  again(at: number): Reader
  /** So many of these as a number says. */
  vector<Item>(item: () => Item): Item[]
}

export const readerOf = (bytes: Uint8Array, start = 0, end = bytes.length): Reader => {
  let at = start
  const byte = (): number => {
    if (at >= end) throw new PolicyError('the module ends too early')
    return bytes[at++]!
  }
  const number = (): number => {
    let value = 0
    for (let shift = 0; shift < 35; shift += 7) {
      const next = byte()
      value |= (next & 0x7f) << shift
      if (next < 0x80) return value >>> 0
    }
    throw unknown('a number of more than 32 bits')
  }
  const skip = (length: number): void => {
    at += length
    if (at > end) throw new PolicyError('the module ends too early')
  }
  return {
    peek: () => bytes[at] ?? 0,
    again: (from) => readerOf(bytes, from, end),
    get at() {
      return at
    },
    get done() {
      return at >= end
    },
    byte,
    number,
    skip,
    skipNumber() {
      while (byte() >= 0x80);
    },
    name() {
      const length = number()
      skip(length)
      return Buffer.from(bytes.buffer, bytes.byteOffset + at - length, length).toString()
    },
    vector: (item) => Array.from({ length: number() }, () => item()),
  }
}

const header = 8

/** Every section, in order: custom ones may be anywhere. */
export const sectionsOf = (wasm: Uint8Array): { name: SectionName; start: number; end: number }[] => {
  const reader = readerOf(wasm, header)
  const sections = []
  while (!reader.done) {
    const id = reader.byte()
    const name = sectionNames.get(id)
    if (!name) throw unknown(`section ${id}`)
    const length = reader.number()
    const start = reader.at
    reader.skip(length)
    sections.push({ name, start, end: reader.at })
  }
  return sections
}

/** The module with other contents of some sections. Throws `PolicyError` when it does not have them. */
export const withSections = (
  wasm: Uint8Array,
  contents: Partial<Record<SectionName, Uint8Array>>,
): Uint8Array<ArrayBuffer> => {
  const sections = sectionsOf(wasm)
  const parts = sections.flatMap(({ name, start, end }) => {
    const content = contents[name] ?? wasm.subarray(start, end)
    return [Uint8Array.of(sectionIds[name], ...numberBytes(content.length)), content]
  })
  for (const name of Object.keys(contents)) {
    if (!sections.some((section) => section.name === name)) {
      throw new PolicyError(`the module is no policy of OPA's WASM ABI: it has no ${name} section`)
    }
  }
  return new Uint8Array(Buffer.concat([wasm.subarray(0, header), ...parts]))
}

/** LEB128, unsigned. */
export const numberBytes = (value: number): number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...numberBytes(value >>> 7)]

/** LEB128, signed, of 32 bits. */
export const signedBytes = (value: number): number[] =>
  value >= -64 && value < 64 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signedBytes(value >> 7)]
