import { goJson } from '../go/json.ts'
import { compileRegex, isMatch } from '../go/regexp.ts'
import { compareNumbers, equalValues } from '../values/order.ts'
import {
  inCommonUnits,
  isNumber,
  numberText,
  type RegoNumber,
  type RegoObject,
  toInteger,
  type Value,
} from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { fitsFormat } from './formats.ts'
import { fail, type Result } from './result.ts'

/** The keywords that look at a value alone, without a schema of their own for its parts. */

/** Whether the value has the type that is asked for; other keywords are not looked at when it has another. */
export const assertType = (result: Result, schema: RegoObject, value: Value): boolean => {
  const given = typeOf(value)
  const types = typesOf(schema)
  if (types.length === 0 || types.includes(given) || (given === 'integer' && types.includes('number'))) return true
  const expected = types.length === 1 ? types[0] : `[${types.join(',')}]`
  fail(result, 'invalid_type', `Invalid type. Expected: ${expected}, given: ${given}`)
  return false
}

export const assertAny = (result: Result, schema: RegoObject, value: Value): void => {
  const wanted = schema.get('const')
  if (wanted !== undefined) weigh(wanted, result.meter, timesToCompare)
  if (wanted !== undefined && !equalValues(wanted, value)) {
    fail(result, 'const', `${result.field} does not match: ${goJson(wanted)}`)
  }
  const allowed = listOf(schema.get('enum'))
  weigh(allowed as Value[], result.meter, timesToCompare)
  if (allowed.length > 0 && !allowed.some((one) => equalValues(one, value))) {
    fail(result, 'enum', `${result.field} must be one of the following: ${allowed.map(goJson).join(', ')}`)
  }
  result.score++
}

export const assertNumber = (result: Result, schema: RegoObject, value: RegoNumber): void => {
  const multiple = numberIn(schema, 'multipleOf')
  if (multiple !== undefined && !isMultiple(value, multiple)) {
    fail(result, 'multiple_of', `Must be a multiple of ${numberText(multiple)}`)
  }
  for (const { type, bound, holds, words } of bounds(schema)) {
    if (!holds(compareNumbers(value, bound))) fail(result, type, `Must be ${words} ${numberText(bound)}`)
  }
  assertFormat(result, schema, numberText(value))
  result.score++
}

export const assertText = (result: Result, schema: RegoObject, value: string): void => {
  const [least, most] = [countIn(schema, 'minLength'), countIn(schema, 'maxLength')]
  result.meter.spend(unitsForCharacter * value.length)
  const length = Array.from(value).length
  if (least !== undefined && length < least) {
    fail(result, 'string_gte', `String length must be greater than or equal to ${least}`)
  }
  if (most !== undefined && length > most) {
    fail(result, 'string_lte', `String length must be less than or equal to ${most}`)
  }
  const pattern = schema.get('pattern')
  if (typeof pattern === 'string' && !isMatch(compileRegex(pattern, result.meter), value, result.meter)) {
    fail(result, 'pattern', `Does not match pattern '${pattern}'`)
  }
  assertFormat(result, schema, value)
  result.score++
}

const assertFormat = (result: Result, schema: RegoObject, value: string): void => {
  const name = schema.get('format')
  if (typeof name === 'string' && !fitsFormat(name, value)) fail(result, 'format', `Does not match format '${name}'`)
}

export const assertArray = (result: Result, schema: RegoObject, value: readonly Value[]): void => {
  const [least, most] = [countIn(schema, 'minItems'), countIn(schema, 'maxItems')]
  if (least !== undefined && value.length < least) {
    fail(result, 'array_min_items', `Array must have at least ${least} items`)
  }
  if (most !== undefined && value.length > most) {
    fail(result, 'array_max_items', `Array must have at most ${most} items`)
  }
  if (schema.get('uniqueItems') !== true) return
  weigh(value as Value[], result.meter, timesToCompare)
  const seen = new Map<string, number>()
  for (const [index, item] of value.entries()) {
    const text = goJson(item)
    const before = seen.get(text)
    if (before !== undefined) fail(result, 'unique', `array items[${before},${index}] must be unique`)
    seen.set(text, index)
  }
}

export const assertObject = (result: Result, schema: RegoObject, value: RegoObject): void => {
  const [least, most] = [countIn(schema, 'minProperties'), countIn(schema, 'maxProperties')]
  if (least !== undefined && value.size < least) {
    fail(result, 'array_min_properties', `Must have at least ${least} properties`)
  }
  if (most !== undefined && value.size > most) {
    fail(result, 'array_max_properties', `Must have at most ${most} properties`)
  }
  const required = listOf(schema.get('required'))
  result.meter.spend(unitsForName * required.length)
  for (const name of required) {
    if (value.has(name)) result.score++
    else fail(result, 'required', `${String(name)} is required`)
  }
}

/** To compare a value with those of the schema, and to tell which ones it is none of. */
const timesToCompare = 5
const unitsForCharacter = 5
const unitsForName = 10

const typeOf = (value: Value): string => {
  if (value === null) return 'null'
  if (isNumber(value)) return toInteger(value) === undefined ? 'number' : 'integer'
  if (Array.isArray(value)) return 'array'
  return value instanceof Map ? 'object' : typeof value
}

const typesOf = (schema: RegoObject): readonly string[] => {
  const type = schema.get('type')
  return Array.isArray(type) ? (type as string[]) : typeof type === 'string' ? [type] : []
}

export const listOf = (value: Value | undefined): readonly Value[] => (Array.isArray(value) ? value : [])

const numberIn = (schema: RegoObject, name: string): RegoNumber | undefined => {
  const value = schema.get(name)
  return value !== undefined && isNumber(value) ? value : undefined
}

const countIn = (schema: RegoObject, name: string): number | undefined => {
  const value = numberIn(schema, name)
  return value === undefined ? undefined : Number(toInteger(value))
}

const boundKinds = [
  { name: 'maximum', type: 'number_lte', words: 'less than or equal to', holds: (order: number) => order <= 0 },
  { name: 'exclusiveMaximum', type: 'number_lt', words: 'less than', holds: (order: number) => order < 0 },
  { name: 'minimum', type: 'number_gte', words: 'greater than or equal to', holds: (order: number) => order >= 0 },
  { name: 'exclusiveMinimum', type: 'number_gt', words: 'greater than', holds: (order: number) => order > 0 },
] as const

/** In draft 4 `exclusiveMaximum: true` says how `maximum` is meant. */
const bounds = (schema: RegoObject) =>
  boundKinds.flatMap(({ name, ...kind }) => {
    const isExclusive = name.startsWith('exclusive')
    const partner = isExclusive ? (name === 'exclusiveMaximum' ? 'maximum' : 'minimum') : undefined
    if (partner && schema.get(name) === true) {
      const bound = numberIn(schema, partner)
      return bound === undefined ? [] : [{ ...kind, bound }]
    }
    const exclusive = name === 'maximum' ? 'exclusiveMaximum' : 'exclusiveMinimum'
    const bound = numberIn(schema, name)
    return bound === undefined || (!isExclusive && schema.get(exclusive) === true) ? [] : [{ ...kind, bound }]
  })

/** Exact also for decimal fractions. */
const isMultiple = (value: RegoNumber, unit: RegoNumber): boolean => {
  const units = inCommonUnits(value, unit, 1_000)
  return units !== undefined && units.b !== 0n && units.a % units.b === 0n
}
