import { isNumber, numberOf, numberText, type RegoNumber, type RegoObject, type RegoSet, type Value } from './value.ts'

/**
 * Values as the text that pass between the WASM module and its host: JSON with sets (`{1, 2}`, `set()`), with keys of
 * any kind, and with numbers written as they were.
 */

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
  if (Array.isArray(value)) return enclosed('[', value, ']', writeValue)
  if (value instanceof Set) return value.size === 0 ? 'set()' : enclosed('{', value, '}', writeValue)
  return enclosed('{', value, '}', ([key, member]) => `${writeValue(key)}:${writeValue(member)}`)
}

/** Not by `join`, which copies: what is nested a thousand levels deep would be copied a thousand times. */
export const enclosed = <Item>(
  open: string,
  items: Iterable<Item>,
  close: string,
  write: (item: Item) => string,
  separator = ',',
): string => {
  let text = open
  let before = ''
  for (const item of items) {
    text += before + write(item)
    before = separator
  }
  return text + close
}
