import { sortedEntries } from '../../values/order.ts'
import { Decimal, isNumber, numberText, type RegoNumber, type Value } from '../../values/value.ts'
import { display, type GoValue } from '../fmt/sprintf.ts'

/** What Go's text/template makes of JSON: what is true, what can be gone through, and how it is written. */

/** A number that the template itself has; the numbers of the data are texts to Go. */
export type TemplateNumber = { int: bigint } | { float: number }
export type TemplateValue = undefined | TemplateNumber | Exclude<Value, RegoNumber> | RegoNumber

export class TemplateError extends Error {}

export const refuse = (message: string): never => {
  throw new TemplateError(message)
}

/** `.name` of a value. */
export const fieldOf = (value: TemplateValue, name: string): TemplateValue => {
  if (value === undefined) return undefined
  return value instanceof Map ? value.get(name) : refuse(`can't evaluate field ${name}`)
}

/** A number of the data, which is a text of digits to Go. */
export const isDataNumber = (value: TemplateValue) => value !== undefined && isNumber(value as Value)

export const isOwnNumber = (value: TemplateValue): value is TemplateNumber =>
  typeof value === 'object' &&
  value !== null &&
  !(value instanceof Decimal || value instanceof Map || value instanceof Set || Array.isArray(value))

export const isTrue = (value: TemplateValue): boolean => {
  if (value === undefined || value === null || value === false || value === '') return false
  if (value instanceof Map) return value.size > 0
  if (Array.isArray(value)) return value.length > 0
  return isOwnNumber(value) ? !isZero(value) : true
}

const isZero = (value: TemplateNumber): boolean => ('int' in value ? value.int === 0n : value.float === 0)

/** What `range` goes through; `most` is where counting to a number ends. */
export const entriesOf = (value: TemplateValue, most: number): [TemplateValue, TemplateValue][] => {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value.map((item, index) => [{ int: BigInt(index) }, item])
  if (value instanceof Map) return sortedEntries(value)
  if (!isOwnNumber(value) || !('int' in value)) return refuse("range can't iterate over this")
  if (value.int > BigInt(most)) refuse('the template takes too long')
  return Array.from({ length: Math.max(Number(value.int), 0) }, (_, index) => [
    { int: BigInt(index) },
    { int: BigInt(index) },
  ])
}

export const shown = (value: TemplateValue): string =>
  value === undefined || value === null ? '<no value>' : display(goValue(value))

export const goValue = (value: TemplateValue): GoValue => {
  if (typeof value === 'string') return { type: 'string', value }
  if (typeof value === 'boolean') return { type: 'bool', value }
  if (isOwnNumber(value)) {
    return 'int' in value ? { type: 'int', value: value.int } : { type: 'float64', value: value.float }
  }
  if (isDataNumber(value)) return { type: 'json.Number', value: numberText(value as number) }
  return { type: 'string', value: collection(value as Value | undefined) }
}

/** `[a b]`, `map[k:v]`, `<nil>`. */
const collection = (value: Value | undefined): string => {
  if (value === undefined || value === null) return '<nil>'
  if (Array.isArray(value)) return `[${value.map(collection).join(' ')}]`
  if (!(value instanceof Map)) return display(goValue(value))
  return `map[${sortedEntries(value)
    .map(([key, member]) => `${String(key)}:${collection(member)}`)
    .join(' ')}]`
}

/** `fmt.Sprint`: a space between two operands of which neither is a text. */
export const print = (values: readonly TemplateValue[]): string =>
  values
    .map((value, index) => {
      const isText = (one: TemplateValue) => typeof one === 'string' || isDataNumber(one)
      const gap = index > 0 && !isText(value) && !isText(values[index - 1]) ? ' ' : ''
      return gap + display(goValue(value))
    })
    .join('')
