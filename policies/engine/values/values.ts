/**
 * Rego values as the host functions see them, and the text that both sides exchange: JSON with sets (`{1, 2}`, `set()`), with keys of
 * any kind, and with numbers written as they were.
 *
 * An integer beyond 2^53 is a `bigint`; another number that a double would print differently (`1.50`, `1e400`) is a `Decimal`.
 */
export type Value = null | boolean | string | RegoNumber | Value[] | RegoSet | RegoObject
export type RegoNumber = number | bigint | Decimal
export type RegoSet = Set<Value>
export type RegoObject = Map<Value, Value>

export class Decimal {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export const isNumber = (value: Value): value is RegoNumber =>
  typeof value === 'number' || typeof value === 'bigint' || value instanceof Decimal

/** Nearest double; may be infinite. */
export const toDouble = (value: RegoNumber): number => Number(value instanceof Decimal ? value.text : value)

/** The integer that the number is, also when written as `1.0` or `1e3`; `undefined` when it is none (or has over 400 digits). */
export const toInteger = (value: RegoNumber): bigint | undefined => {
  if (typeof value === 'bigint') return value
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : undefined
  const { digits, exponent } = scientific(value.text)
  if (exponent >= 0) return exponent > 400 ? undefined : digits * 10n ** BigInt(exponent)
  if (digits === 0n) return 0n
  if (exponent < -400) return undefined
  const unit = 10n ** BigInt(-exponent)
  return digits % unit === 0n ? digits / unit : undefined
}

/** The number as `digits` × 10^`exponent`. */
export const scientific = (text: string): { digits: bigint; exponent: number } => {
  const [, sign, whole, fraction = '', power = '0'] = /^(-?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  if (whole === undefined) throw new SyntaxError(`not a number: ${text}`)
  const digits = BigInt(`${whole}${fraction}` || '0')
  return { digits: sign === '-' ? -digits : digits, exponent: Number(power) - fraction.length }
}

export const numberText = (value: RegoNumber): string => (value instanceof Decimal ? value.text : String(value))

/** `text` as JSON writes numbers. */
export const numberOf = (text: string): RegoNumber => {
  const number = Number(text)
  if (text.length < 16 || String(number) === text) {
    if (String(number) === text) return number
  }
  return /^-?\d+$/.test(text) ? integerOf(BigInt(text)) : new Decimal(text)
}

/** A `number` where that is exact. */
export const integerOf = (value: bigint): number | bigint =>
  value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value

// --- text

/** Reads what `opa_value_dump` writes, or any JSON. Throws `SyntaxError`. */
export const parseValue = (text: string): Value => {
  const reader = { text, at: 0 }
  const value = readValue(reader)
  skipSpace(reader)
  if (reader.at !== text.length) fail(reader)
  return value
}

interface Reader {
  text: string
  at: number
}

const fail = ({ text, at }: Reader): never => {
  throw new SyntaxError(at < text.length ? `unexpected character at ${at}` : 'unexpected end')
}

const skipSpace = (reader: Reader): void => {
  const { text } = reader
  let code = text.charCodeAt(reader.at)
  while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = text.charCodeAt(++reader.at)
}

const next = (reader: Reader): string => {
  skipSpace(reader)
  return reader.text[reader.at] ?? ''
}

const words: Record<string, { word: string; value: () => Value }> = {
  n: { word: 'null', value: () => null },
  t: { word: 'true', value: () => true },
  f: { word: 'false', value: () => false },
  s: { word: 'set()', value: () => new Set() },
}

const readValue = (reader: Reader): Value => {
  const first = next(reader)
  if (first === '"') return readString(reader)
  if (first === '[') return readArray(reader)
  if (first === '{') return readBraces(reader)
  const known = words[first]
  if (known) {
    if (!reader.text.startsWith(known.word, reader.at)) fail(reader)
    reader.at += known.word.length
    return known.value()
  }
  return readNumber(reader)
}

const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

const readNumber = (reader: Reader): RegoNumber => {
  numberPattern.lastIndex = reader.at
  const found = numberPattern.exec(reader.text)
  if (!found) return fail(reader)
  reader.at = numberPattern.lastIndex
  return numberOf(found[0])
}

const readString = (reader: Reader): string => {
  const { text, at } = reader
  let end = text.indexOf('"', at + 1)
  while (end > 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  if (end < 0) return fail(reader)
  reader.at = end + 1
  return JSON.parse(text.slice(at, end + 1)) as string
}

const isEscaped = (text: string, quote: number): boolean => {
  let first = quote
  while (text.charCodeAt(first - 1) === 0x5c) first--
  return (quote - first) % 2 === 1
}

const readArray = (reader: Reader): Value[] => {
  const items: Value[] = []
  reader.at++
  if (next(reader) === ']') {
    reader.at++
    return items
  }
  for (;;) {
    items.push(readValue(reader))
    if (more(reader, ']')) return items
  }
}

/** Whether the list ends here; else steps over the comma. */
const more = (reader: Reader, end: string): boolean => {
  const mark = next(reader)
  if (mark !== end && mark !== ',') fail(reader)
  reader.at++
  return mark === end
}

const readBraces = (reader: Reader): RegoSet | RegoObject => {
  const object: RegoObject = new Map()
  reader.at++
  if (next(reader) === '}') {
    reader.at++
    return object
  }
  const first = readValue(reader)
  if (next(reader) !== ':') {
    const set: RegoSet = new Set([first])
    while (!more(reader, '}')) set.add(readValue(reader))
    return set
  }
  let key = first
  for (;;) {
    if (next(reader) !== ':') fail(reader)
    reader.at++
    object.set(key, readValue(reader))
    if (more(reader, '}')) return object
    key = readValue(reader)
  }
}

/** The text of a value; `opa_value_parse` reads it. Sets and objects need no order there. */
export const writeValue = (value: Value): string => {
  // As Go reads them. Half a surrogate pair would end the whole evaluation, as it does in an input.
  if (typeof value === 'string') return JSON.stringify(value.toWellFormed())
  if (value === null || typeof value === 'boolean') return String(value)
  if (isNumber(value)) return numberText(value)
  if (Array.isArray(value)) return `[${value.map(writeValue).join(',')}]`
  if (value instanceof Set) return value.size === 0 ? 'set()' : `{${[...value].map(writeValue).join(',')}}`
  return `{${[...value].map(([key, member]) => `${writeValue(key)}:${writeValue(member)}`).join(',')}}`
}

// --- order

/** Rego's order of all values: null, booleans, numbers, strings, arrays, objects, sets. */
export const compareValues = (a: Value, b: Value): number => {
  const kind = kindOf(a)
  const difference = kind - kindOf(b)
  return difference !== 0 ? Math.sign(difference) : byKind[kind]!(a as never, b as never)
}

export const equalValues = (a: Value, b: Value): boolean => a === b || compareValues(a, b) === 0

const kindOf = (value: Value): number => {
  if (value === null) return 0
  if (typeof value === 'boolean') return 1
  if (isNumber(value)) return 2
  if (typeof value === 'string') return 3
  if (Array.isArray(value)) return 4
  return value instanceof Map ? 5 : 6
}

const compareLists = (a: readonly Value[], b: readonly Value[]): number => {
  for (let index = 0; index < a.length && index < b.length; index++) {
    const order = compareValues(a[index]!, b[index]!)
    if (order !== 0) return order
  }
  return Math.sign(a.length - b.length)
}

export const compareNumbers = (a: RegoNumber, b: RegoNumber): number => {
  if (typeof a === 'number' && typeof b === 'number') return Math.sign(a - b)
  const [left, right] = [scientific(numberText(a)), scientific(numberText(b))]
  const exponent = Math.min(left.exponent, right.exponent)
  // Nobody can tell 1e100000 from 1e100001 apart without writing them out; doubles can say which is larger, or that both are infinite.
  if (Math.max(left.exponent, right.exponent) - exponent > 10_000) return Math.sign(toDouble(a) - toDouble(b)) || 0
  const scaled = [left, right].map(({ digits, exponent: own }) => digits * 10n ** BigInt(own - exponent))
  return scaled[0]! < scaled[1]! ? -1 : scaled[0]! > scaled[1]! ? 1 : 0
}

/** By code points, as Go compares the bytes of UTF-8. */
export const compareStrings = (a: string, b: string): number => {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const [left, right] = [a.charCodeAt(index), b.charCodeAt(index)]
    if (left === right) continue
    // Surrogates stand for characters beyond U+FFFF, so they come after U+E000–U+FFFF.
    const surrogates = Number(left >= 0xd800 && left < 0xe000) - Number(right >= 0xd800 && right < 0xe000)
    return surrogates || Math.sign(left - right)
  }
  return Math.sign(a.length - b.length)
}

const byKind: readonly ((a: never, b: never) => number)[] = [
  () => 0,
  (a: boolean, b: boolean) => Number(a) - Number(b),
  compareNumbers,
  compareStrings,
  compareLists,
  (a: RegoObject, b: RegoObject) => {
    const [left, right] = [sortedEntries(a), sortedEntries(b)]
    for (let index = 0; index < left.length && index < right.length; index++) {
      const order = compareLists(left[index]!, right[index]!)
      if (order !== 0) return order
    }
    return Math.sign(left.length - right.length)
  },
  (a: RegoSet, b: RegoSet) => compareLists(sorted(a), sorted(b)),
]

export const sorted = (values: Iterable<Value>): Value[] => [...values].sort(compareValues)

export const sortedEntries = (object: RegoObject): [Value, Value][] =>
  [...object].sort(([a], [b]) => compareValues(a, b))

/** Whether a set or an object's keys hold an equal value; the member that is equal, for `Map.get` and the like. */
export const findKey = (keys: Set<Value> | Map<Value, Value>, key: Value): { key: Value } | undefined => {
  if (keys.has(key)) return { key }
  if (typeof key === 'string' || key === null || typeof key === 'boolean') return undefined
  for (const other of keys.keys()) if (equalValues(other, key)) return { key: other }
  return undefined
}
