import type { Meter } from '../../base/meter.ts'
import { sorted } from '../../values/order.ts'
import { isNumber, numberText, type RegoNumber, type Value } from '../../values/value.ts'
import { formatFloat } from '../fmt/float.ts'
import { runeOf } from '../rune.ts'
import { needsQuotes } from './resolve.ts'

/**
 * A value as go-yaml writes it: block style, two spaces, lists not indented below their key, long texts folded after
 * column 80. `undefined` when a text holds what YAML cannot carry. Keys of objects must be texts.
 */
export const writeYaml = (value: Value, meter: Meter): string | undefined => {
  const writer = createWriter(meter)
  try {
    writeNode(writer, value, { indent: -2, inMapping: false, isKey: false })
  } catch (error) {
    if (error === unwritable) return undefined
    throw error
  }
  return `${writer.text()}\n`
}

const unwritable = Symbol('not YAML')

interface Writer {
  text(): string
  column(): number
  put(text: string): void
  /** A new line, unless this one has nothing but the indentation that is wanted. */
  indent(to: number): void
  breakLine(): void
}

/** Indentation is paid for: what is nested deeply may have more of that than of anything else. */
const createWriter = ({ spend }: Meter): Writer => {
  let all = ''
  let column = 0
  /** Whether the line so far has only spaces and indicators such as `- `. */
  let onlyIndicators = true
  const breakLine = () => {
    all += '\n'
    column = 0
    onlyIndicators = true
  }
  return {
    text: () => all,
    column: () => column,
    put(text) {
      all += text
      column += Array.from(text).length
      if (!/^(?:[-?:] ?| *)$/.test(text)) onlyIndicators = false
    },
    indent(to) {
      if (!onlyIndicators || column > to) breakLine()
      spend(to + 10)
      all += ' '.repeat(Math.max(to - column, 0))
      column = Math.max(column, to)
    },
    breakLine,
  }
}

interface Place {
  /** Of the collection around it. */
  indent: number
  inMapping: boolean
  isKey: boolean
}

const writeNode = (writer: Writer, value: Value, place: Place): void => {
  if (value instanceof Map) writeMapping(writer, value, place)
  else if (Array.isArray(value) || value instanceof Set) writeList(writer, value, place)
  else if (typeof value === 'string') writeText(writer, value, { ...place, indent: Math.max(place.indent, 0) + 2 })
  else writer.put(isNumber(value) ? numberOf(value) : String(value))
}

/** Integers of 64 bits as they are, everything else as a double. */
const numberOf = (number: RegoNumber): string => {
  const text = numberText(number)
  if (/^-?\d+$/.test(text)) {
    const integer = BigInt(text)
    if (integer >= -(2n ** 63n) && integer < 2n ** 64n) return String(integer)
  }
  const double = Number(text)
  if (!Number.isFinite(double)) throw unwritable
  return formatFloat(double, 'g', -1)
}

const writeList = (writer: Writer, value: Value[] | Set<Value>, place: Place): void => {
  const items = Array.isArray(value) ? value : sorted(value)
  if (items.length === 0) writer.put('[]')
  const indent = place.inMapping ? place.indent : place.indent + 2
  for (const item of items) {
    writer.indent(indent)
    writer.put('- ')
    writeNode(writer, item, { indent, inMapping: false, isKey: false })
  }
}

const writeMapping = (writer: Writer, value: Map<Value, Value>, place: Place): void => {
  if (value.size === 0) writer.put('{}')
  const indent = place.indent + 2
  const members = [...value].map(([key, member]) => ({ key: String(key), member }))
  for (const { key, member } of members.sort((a, b) => compareKeys(a.key, b.key))) {
    writer.indent(indent)
    const isSimple = !key.includes('\n') && Buffer.byteLength(key) <= 128
    if (isSimple) {
      writeText(writer, key, { indent: indent + 2, inMapping: true, isKey: true })
      writer.put(':')
    } else {
      writer.put('? ')
      writeText(writer, key, { indent: indent + 2, inMapping: true, isKey: false })
      writer.indent(indent)
      writer.put(': ')
      writeNode(writer, member, { indent, inMapping: false, isKey: false })
      continue
    }
    const isBlock = member instanceof Map ? member.size > 0 : typeof member === 'object' && isFilled(member)
    if (!isBlock) writer.put(' ')
    writeNode(writer, member, { indent, inMapping: true, isKey: false })
  }
}

const isFilled = (value: Value): boolean =>
  (Array.isArray(value) && value.length > 0) || (value instanceof Set && value.size > 0)

/** Letters behind other characters, and runs of digits by their number: a2 before a10. */
const compareKeys = (a: string, b: string): number => {
  const [left, right] = [Array.from(a), Array.from(b)]
  const isLetter = (character: string) => /\p{L}/u.test(character)
  const isDigit = (character: string | undefined) => character !== undefined && /\p{Nd}/u.test(character)
  let digits = false
  for (const [index, one] of left.entries()) {
    const other = right[index]
    if (other === undefined) break
    if (one === other) {
      digits = isDigit(one)
      continue
    }
    if (isLetter(one) && isLetter(other)) return runeOf(one) - runeOf(other)
    if (isLetter(one) || isLetter(other)) return isLetter(one) === digits ? -1 : 1
    const [numberA, endA] = numberAt(left, index)
    const [numberB, endB] = numberAt(right, index)
    const lead = (one === '0' || other === '0') && hasNonZeroBefore(left, index) ? '1' : ''
    const difference = BigInt(`${lead}${numberA}` || '0') - BigInt(`${lead}${numberB}` || '0')
    if (difference !== 0n) return difference < 0n ? -1 : 1
    return endA !== endB ? endA - endB : runeOf(one) - runeOf(other)
  }
  return left.length - right.length
}

const isAsciiDigit = (character: string | undefined): boolean => character !== undefined && /[0-9]/.test(character)

const numberAt = (characters: readonly string[], from: number): [string, number] => {
  let end = from
  while (isAsciiDigit(characters[end])) end++
  return [characters.slice(from, end).join(''), end]
}

const hasNonZeroBefore = (characters: readonly string[], from: number): boolean => {
  for (let at = from - 1; isAsciiDigit(characters[at]); at--) if (characters[at] !== '0') return true
  return false
}

// --- texts

const bestWidth = 80

/** In what forms a text can be written. */
const formsOf = (text: string) => {
  const characters = Array.from(text)
  const special = characters.some((character) => !isPrintable(character) && character !== '\n')
  const spaceBeforeBreak = / \n/.test(text)
  const breakBeforeSpace = /\n /.test(text)
  const indicators =
    /^(?:---|\.\.\.|[#,[\]{}&*!|>'"%@`]|[?:-](?:[\s\0]|$))/.test(text) ||
    /:(?:[ \t\n]|$)/.test(text) ||
    /[ \t\n]#/.test(text)
  const edges = /^[ \n]|[ \n]$/.test(text)
  return {
    plain: !special && !spaceBeforeBreak && !breakBeforeSpace && !indicators && !edges && !text.includes('\n'),
    single: !special && !spaceBeforeBreak && !breakBeforeSpace,
    block: !special && !spaceBeforeBreak && !text.endsWith(' '),
  }
}

/** libyaml prints neither tabs nor what lies outside of the basic plane. */
const isPrintable = (character: string): boolean => {
  const code = runeOf(character)
  return (code >= 0x20 && code <= 0x7e) || (code >= 0xa0 && code <= 0xffff && code !== 0xfeff && code < 0xfffe)
}

/** What a YAML reader refuses, so that go-yaml, which reads the JSON of a value first, refuses it too. */
const unreadable = (text: string): boolean => /[\x7f-\x84\x86-\x9f\ufffe\uffff]/.test(text)

const writeText = (writer: Writer, text: string, { indent, isKey }: Place): void => {
  if (unreadable(text)) throw unwritable
  const forms = formsOf(text)
  if (text.includes('\n') && !isKey && forms.block) writeLiteral(writer, text, indent)
  else if (text.includes('\n') || needsQuotes(text)) writeDouble(writer, text, indent, isKey)
  else if (forms.plain) writePlain(writer, text, indent, isKey)
  else if (forms.single) writeSingle(writer, text, indent, isKey)
  else writeDouble(writer, text, indent, isKey)
}

const writeLiteral = (writer: Writer, text: string, indent: number): void => {
  const hint = /^[ \n]/.test(text) ? '2' : ''
  const chomp = !text.endsWith('\n') ? '-' : text === '\n' || text.endsWith('\n\n') ? '+' : ''
  writer.put(`|${hint}${chomp}`)
  const lines = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
  for (const line of lines) {
    writer.breakLine()
    if (line === '') continue
    writer.indent(indent)
    writer.put(line)
  }
  if (chomp === '+') writer.breakLine()
}

/** At a lone space behind column 80 the line is broken instead. */
const writePlain = (writer: Writer, text: string, indent: number, isKey: boolean): void => {
  for (const [part, next] of partsOf(text)) {
    if (part === ' ' && !isKey && writer.column() > bestWidth && next !== '') writer.indent(indent)
    else writer.put(part)
  }
}

/** Words and runs of spaces, each with what comes behind it. */
const partsOf = (text: string): [string, string][] => {
  const parts = text.match(/ +|[^ ]+/g) ?? []
  return parts.map((part, index) => [part, parts[index + 1] ?? ''])
}

const writeSingle = (writer: Writer, text: string, indent: number, isKey: boolean): void => {
  writer.put("'")
  const parts = partsOf(text)
  for (const [index, [part, next]] of parts.entries()) {
    const isInside = index > 0 && next !== ''
    if (part === ' ' && !isKey && isInside && writer.column() > bestWidth) writer.indent(indent)
    else writer.put(part.replaceAll("'", "''"))
  }
  writer.put("'")
}

const escapes: Record<string, string> = {
  '\0': '\\0',
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\x1b': '\\e',
  '"': '\\"',
  '\\': '\\\\',
  '\x85': '\\N',
  '\u2028': '\\L',
  '\u2029': '\\P',
}

const escaped = (character: string): string => {
  if (escapes[character]) return escapes[character]
  if (isPrintable(character)) return character
  const hex = runeOf(character).toString(16).toUpperCase()
  if (hex.length <= 2) return `\\x${hex.padStart(2, '0')}`
  return hex.length <= 4 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}

const writeDouble = (writer: Writer, text: string, indent: number, isKey: boolean): void => {
  const characters = Array.from(text)
  writer.put('"')
  let afterSpace = false
  for (const [index, character] of characters.entries()) {
    const isInside = index > 0 && index < characters.length - 1
    if (character === ' ' && !isKey && !afterSpace && isInside && writer.column() > bestWidth) {
      writer.indent(indent)
      if (characters[index + 1] === ' ') writer.put('\\')
      afterSpace = true
      continue
    }
    writer.put(escaped(character))
    afterSpace = character === ' '
  }
  writer.put('"')
}
