import type { Meter } from '../../base/meter.ts'
import { compareStrings } from '../../values/order.ts'
import { numberText } from '../../values/value.ts'
import { weigh } from '../../values/weight.ts'
import { isPrintable } from '../fmt/quote.ts'
import { display, sprintf } from '../fmt/sprintf.ts'
import { runeOf } from '../rune.ts'
import { queryEscape } from '../url.ts'
import { goValue, isDataNumber, isOwnNumber, isTrue, print, refuse, type TemplateValue } from './values.ts'

/** Operands are evaluated when they are asked for: `and` and `or` stop at the first that decides. */
export type TemplateFunction = (operands: readonly (() => TemplateValue)[], meter: Meter) => TemplateValue

/** A single text is taken as it is. */
const textOf = (values: readonly TemplateValue[]): string =>
  values.length === 1 && typeof values[0] === 'string' ? values[0] : print(values)

const htmlEscapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
  '\0': '\ufffd',
}

const jsEscape = (text: string): string =>
  Array.from(text, (character) => {
    if ('\\\'"'.includes(character)) return `\\${character}`
    if (!'<>&='.includes(character) && (character >= ' ' ? isPrintable(character) : false)) return character
    return `\\u${runeOf(character).toString(16).toUpperCase().padStart(4, '0')}`
  }).join('')

const indexNumber = (value: TemplateValue, most: number): number => {
  if (!isOwnNumber(value) || !('int' in value)) return refuse('an index must be an integer')
  return value.int >= 0n && value.int <= BigInt(most) ? Number(value.int) : refuse('index out of range')
}

const index = ([value, ...keys]: TemplateValue[]): TemplateValue =>
  keys.reduce<TemplateValue>((at, key) => {
    if (at instanceof Map) return typeof key === 'string' ? at.get(key) : refuse('the key of a map must be a text')
    if (Array.isArray(at)) return at[indexNumber(key, at.length - 1)]
    if (typeof at === 'string')
      return { int: BigInt(Buffer.from(at).readUInt8(indexNumber(key, Buffer.byteLength(at) - 1))) }
    return refuse("can't index this")
  }, value)

const slice = ([value, ...bounds]: TemplateValue[]): TemplateValue => {
  if ((typeof value !== 'string' && !Array.isArray(value)) || bounds.length > 2) return refuse("can't slice this")
  const whole = typeof value === 'string' ? Buffer.from(value) : value
  const to = bounds[1] === undefined ? whole.length : indexNumber(bounds[1], whole.length)
  const from = bounds[0] === undefined ? 0 : indexNumber(bounds[0], to)
  const part = whole.slice(from, to)
  return Array.isArray(part) ? part : Buffer.from(part).toString()
}

const length = ([value]: TemplateValue[]): TemplateValue => {
  if (value instanceof Map) return { int: BigInt(value.size) }
  if (Array.isArray(value)) return { int: BigInt(value.length) }
  const text = isDataNumber(value) ? numberText(value as number) : value
  return typeof text === 'string' ? { int: BigInt(Buffer.byteLength(text)) } : refuse('this has no length')
}

/** What can be compared with each other. */
const basic = (value: TemplateValue): { kind: string; value: string | boolean | bigint | number | null } => {
  if (value === undefined || value === null) return { kind: 'nil', value: null }
  if (typeof value === 'string' || typeof value === 'boolean') return { kind: typeof value, value }
  if (isDataNumber(value)) return { kind: 'string', value: numberText(value as number) }
  if (!isOwnNumber(value)) return refuse('this cannot be compared')
  return 'int' in value ? { kind: 'int', value: value.int } : { kind: 'float', value: value.float }
}

const equal = (a: TemplateValue, b: TemplateValue): boolean => {
  const [left, right] = [basic(a), basic(b)]
  if (left.kind !== right.kind && left.kind !== 'nil' && right.kind !== 'nil')
    refuse('incompatible types for comparison')
  return left.value === right.value
}

const less = (a: TemplateValue, b: TemplateValue): boolean => {
  const [left, right] = [basic(a), basic(b)]
  if (left.kind !== right.kind || !['int', 'float', 'string'].includes(left.kind))
    refuse('invalid types for comparison')
  if (typeof left.value === 'string') return compareStrings(left.value, right.value as string) < 0
  return (left.value as number) < (right.value as number)
}

const two =
  (test: (a: TemplateValue, b: TemplateValue) => boolean) =>
  (args: TemplateValue[]): boolean =>
    args.length === 2 ? test(args[0], args[1]) : refuse('two operands are needed')

const shortCut =
  (name: string, decides: (value: TemplateValue) => boolean): TemplateFunction =>
  (operands) => {
    if (operands.length === 0) return refuse(`${name} needs an operand`)
    let value: TemplateValue
    for (const operand of operands) {
      value = operand()
      if (decides(value)) return value
    }
    return value
  }

const eager: Record<string, (args: TemplateValue[], meter: Meter) => TemplateValue> = {
  call: () => refuse('there is no function to call'),
  eq: ([first, ...others]) =>
    others.length === 0 ? refuse('missing argument for comparison') : others.some((other) => equal(first, other)),
  ge: two((a, b) => !less(a, b)),
  gt: two((a, b) => !less(a, b) && !equal(a, b)),
  html: (args) => textOf(args).replace(/[&<>"'\0]/g, (character) => htmlEscapes[character] ?? character),
  index,
  js: (args) => jsEscape(textOf(args)),
  le: two((a, b) => less(a, b) || equal(a, b)),
  len: length,
  lt: two(less),
  ne: two((a, b) => !equal(a, b)),
  not: ([value]) => !isTrue(value),
  print,
  printf: ([format, ...args], meter) =>
    typeof format === 'string' ? sprintf(format, args.map(goValue), meter) : refuse('a format must be a text'),
  println: (args) => `${args.map((value) => display(goValue(value))).join(' ')}\n`,
  slice,
  urlquery: (args) => queryEscape(textOf(args)),
}

/** Functions that make a text of all that they are given. */
const writers = new Set(['html', 'js', 'print', 'printf', 'println', 'urlquery'])
const unitsForCall = 50
const timesToWrite = 8

/** Of values written as texts, collections with all that they hold. */
export const payForText = (values: readonly TemplateValue[], meter: Meter): void => {
  for (const value of values) {
    meter.spend(unitsForCall)
    if (value !== undefined && !isOwnNumber(value)) weigh(value, meter, timesToWrite)
  }
}

/** The functions that every template has. */
export const functions: ReadonlyMap<string, TemplateFunction> = new Map([
  ['and', shortCut('and', (value) => !isTrue(value))],
  ['or', shortCut('or', isTrue)],
  ...Object.entries(eager).map(([name, run]): [string, TemplateFunction] => [
    name,
    (operands, meter) => {
      const args = operands.map((operand) => operand())
      if (writers.has(name)) payForText(args, meter)
      else
        meter.spend(
          args.reduce<number>((sum, one) => sum + unitsForCall + (typeof one === 'string' ? one.length : 0), 0),
        )
      return run(args, meter)
    },
  ]),
])
