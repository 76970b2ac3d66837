import { Refused } from './refusal.ts'

/**
 * The CBOR (RFC 8949) that authenticators write (CTAP 2.1 §8): integers, byte and text strings, arrays, maps, `true`,
 * `false`, `null`. Tags, floats, indefinite lengths and a key that comes twice are refused, as is nesting beyond
 * `maxDepth`. What a length promises must be there, so that nothing is allocated for what was not sent.
 */
export type CborValue = number | string | boolean | null | Buffer | CborValue[] | CborMap
export type CborMap = Map<number | string, CborValue>

/** Attestation statements nest the deepest: compound ones hold others, which hold lists of certificates. */
const maxDepth = 16

const malformed = () => new Refused('malformed')

/** The value that the bytes begin with, and where it ends. Throws `malformed`. */
export const decodeFirst = (bytes: Buffer, start = 0): { value: CborValue; end: number } => {
  let position = start

  const take = (length: number): Buffer => {
    if (length > bytes.length - position) throw malformed()
    position += length
    return bytes.subarray(position - length, position)
  }

  /** The number that follows the initial byte, or is part of it (RFC 8949 §3). */
  const argument = (information: number): number => {
    if (information < 24) return information
    if (information > 27) throw malformed()
    const value = take(2 ** (information - 24))
    if (information < 27) return value.readUIntBE(0, value.length)
    const large = value.readBigUInt64BE()
    if (large > BigInt(Number.MAX_SAFE_INTEGER)) throw malformed()
    return Number(large)
  }

  const key = (depth: number): number | string => {
    const value = item(depth)
    if (typeof value !== 'number' && typeof value !== 'string') throw malformed()
    return value
  }

  const items: Readonly<Record<number, (length: number, depth: number) => CborValue>> = {
    0: (value) => value,
    1: (value) => -1 - value,
    2: (length) => take(length),
    3: (length) => text(take(length)),
    4(length, depth) {
      const list: CborValue[] = []
      for (let index = 0; index < length; index++) list.push(item(depth + 1))
      return list
    },
    5(length, depth) {
      const map: CborMap = new Map()
      for (let index = 0; index < length; index++) {
        const name = key(depth + 1)
        if (map.has(name)) throw malformed()
        map.set(name, item(depth + 1))
      }
      return map
    },
  }

  const item = (depth: number): CborValue => {
    if (depth > maxDepth) throw malformed()
    const initial = take(1)[0]!
    const simple = simpleValues.get(initial)
    if (simple !== undefined) return simple
    const read = items[initial >> 5]
    if (read === undefined) throw malformed()
    return read(argument(initial & 0x1f), depth)
  }

  return { value: item(0), end: position }
}

/** Exactly one value. Throws `malformed` when more follows. */
export const decode = (bytes: Buffer): CborValue => {
  const { value, end } = decodeFirst(bytes)
  if (end !== bytes.length) throw malformed()
  return value
}

/** Throws `malformed` for what is no map. */
export const asMap = (value: CborValue): CborMap => {
  if (!(value instanceof Map)) throw malformed()
  return value
}

const simpleValues: ReadonlyMap<number, boolean | null> = new Map([
  [0xf4, false],
  [0xf5, true],
  [0xf6, null],
])

const text = (bytes: Buffer): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw malformed()
  }
}
