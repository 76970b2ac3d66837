import { goJson } from '../builtins/encoding.ts'
import { compileRegex } from '../builtins/regex.ts'
import {
  compareNumbers,
  equalValues,
  isNumber,
  numberText,
  type RegoNumber,
  type RegoObject,
  scientific,
  sortedEntries,
  toInteger,
  type Value,
} from '../values.ts'
import { fitsFormat } from './formats.ts'
import { resolveReference, type SchemaDocument } from './references.ts'

/**
 * JSON Schema (drafts 4, 6 and 7) with the answers of gojsonschema, which OPA uses: their order, types and words. Nothing is compiled
 * into code, and patterns are Go's, in linear time.
 */
export interface SchemaError {
  type: string
  field: string
  description: string
}

/** What went wrong, and how close the document came: of several alternatives the closest one's errors are told. */
interface Result {
  errors: SchemaError[]
  score: number
}

/** A schema may refer to itself; a document is only so deep. */
const deepest = 500

export class SchemaTooDeep extends Error {}

export const validate = (schemas: SchemaDocument, document: Value): SchemaError[] => {
  let depth = 0

  const check = (schema: Value, value: Value, field: string): Result => {
    const result: Result = { errors: [], score: 0 }
    checkInto(result, schema, value, field)
    return result
  }

  const fail = (result: Result, type: string, field: string, description: string): void => {
    result.errors.push({ type, field, description })
    result.score -= 2
  }

  const merge = (result: Result, other: Result): void => {
    result.errors.push(...other.errors)
    result.score += other.score
  }

  const checkInto = (result: Result, schema: Value, value: Value, field: string): void => {
    if (++depth > deepest) throw new SchemaTooDeep()
    if (schema === false) fail(result, 'false', field, 'False always fails validation')
    else if (schema instanceof Map) {
      const reference = schema.get('$ref')
      if (typeof reference === 'string') checkInto(result, resolveReference(schemas, schema, reference), value, field)
      else checkObject(result, schema, value, field)
    }
    depth--
  }

  const checkObject = (result: Result, schema: RegoObject, value: Value, field: string): void => {
    const given = typeOf(value)
    const types = typesOf(schema)
    if (types.length > 0 && !types.includes(given) && !(given === 'integer' && types.includes('number'))) {
      const expected = types.length === 1 ? types[0] : `[${types.join(',')}]`
      fail(result, 'invalid_type', field, `Invalid type. Expected: ${expected}, given: ${given}`)
      return
    }
    combinations(result, schema, value, field)
    if (isNumber(value)) numbers(result, schema, value, field)
    common(result, schema, value, field)
    if (typeof value === 'string') texts(result, schema, value, field)
    if (Array.isArray(value)) arrays(result, schema, value, field)
    if (value instanceof Map) objects(result, schema, value, field)
  }

  /** The first alternative that came closest. */
  const closest = (results: readonly Result[]): Result | undefined =>
    results.reduce<Result | undefined>((best, one) => (!best || one.score > best.score ? one : best), undefined)

  const combinations = (result: Result, schema: RegoObject, value: Value, field: string): void => {
    const alternatives = (name: string) => listOf(schema.get(name)).map((part) => check(part, value, field))
    const valid = (results: readonly Result[]) => results.filter(({ errors }) => errors.length === 0).length

    const anyOf = alternatives('anyOf')
    if (anyOf.length > 0 && valid(anyOf) === 0) {
      fail(result, 'number_any_of', field, 'Must validate at least one schema (anyOf)')
      merge(result, closest(anyOf)!)
    }
    const oneOf = alternatives('oneOf')
    if (oneOf.length > 0 && valid(oneOf) !== 1) {
      fail(result, 'number_one_of', field, 'Must validate one and only one schema (oneOf)')
      if (valid(oneOf) === 0) merge(result, closest(oneOf)!)
    }
    const allOf = alternatives('allOf')
    for (const part of allOf) if (part.errors.length > 0) merge(result, part)
    if (valid(allOf) !== allOf.length) {
      fail(result, 'number_all_of', field, 'Must validate all the schemas (allOf)')
    }
    if (schema.has('not') && check(schema.get('not')!, value, field).errors.length === 0) {
      fail(result, 'number_not', field, 'Must not validate the schema (not)')
    }
    if (value instanceof Map) dependencies(result, schema, value, field)
    if (schema.has('if')) conditions(result, schema, value, field)
    result.score++
  }

  const dependencies = (result: Result, schema: RegoObject, value: RegoObject, field: string): void => {
    const needed = schema.get('dependencies')
    if (!(needed instanceof Map)) return
    for (const [name] of sortedEntries(value)) {
      const dependency = needed.get(name)
      if (!Array.isArray(dependency)) {
        if (dependency !== undefined) checkInto(result, dependency, value, field)
        continue
      }
      for (const other of dependency) {
        if (!value.has(other)) fail(result, 'missing_dependency', field, `Has a dependency on ${String(other)}`)
      }
    }
  }

  const conditions = (result: Result, schema: RegoObject, value: Value, field: string): void => {
    const holds = check(schema.get('if')!, value, field).errors.length === 0
    const branch = schema.get(holds ? 'then' : 'else')
    if (branch === undefined) return
    const checked = check(branch, value, field)
    if (checked.errors.length === 0) return
    if (holds) fail(result, 'condition_then', field, 'Must validate "then" as "if" was valid')
    else fail(result, 'condition_else', field, 'Must validate "else" as "if" was not valid')
    merge(result, checked)
  }

  const common = (result: Result, schema: RegoObject, value: Value, field: string): void => {
    if (schema.has('const') && !equalValues(schema.get('const')!, value)) {
      fail(result, 'const', field, `${field} does not match: ${goJson(schema.get('const')!)}`)
    }
    const allowed = listOf(schema.get('enum'))
    if (allowed.length > 0 && !allowed.some((one) => equalValues(one, value))) {
      fail(result, 'enum', field, `${field} must be one of the following: ${allowed.map(goJson).join(', ')}`)
    }
    result.score++
  }

  const numbers = (result: Result, schema: RegoObject, value: RegoNumber, field: string): void => {
    const multiple = numberIn(schema, 'multipleOf')
    if (multiple !== undefined && !isMultiple(value, multiple)) {
      fail(result, 'multiple_of', field, `Must be a multiple of ${numberText(multiple)}`)
    }
    for (const { type, bound, holds, words } of bounds(schema)) {
      if (!holds(compareNumbers(value, bound))) fail(result, type, field, `Must be ${words} ${numberText(bound)}`)
    }
    format(result, schema, numberText(value), field)
    result.score++
  }

  const format = (result: Result, schema: RegoObject, value: string, field: string): void => {
    const name = schema.get('format')
    if (typeof name === 'string' && !fitsFormat(name, value)) {
      fail(result, 'format', field, `Does not match format '${name}'`)
    }
  }

  const texts = (result: Result, schema: RegoObject, value: string, field: string): void => {
    const [least, most] = [countIn(schema, 'minLength'), countIn(schema, 'maxLength')]
    const length = Array.from(value).length
    if (least !== undefined && length < least) {
      fail(result, 'string_gte', field, `String length must be greater than or equal to ${least}`)
    }
    if (most !== undefined && length > most) {
      fail(result, 'string_lte', field, `String length must be less than or equal to ${most}`)
    }
    const pattern = schema.get('pattern')
    if (typeof pattern === 'string' && !compileRegex(pattern).matcher(value).find()) {
      fail(result, 'pattern', field, `Does not match pattern '${pattern}'`)
    }
    format(result, schema, value, field)
    result.score++
  }

  const arrays = (result: Result, schema: RegoObject, value: Value[], field: string): void => {
    items(result, schema, value, field)
    const [least, most] = [countIn(schema, 'minItems'), countIn(schema, 'maxItems')]
    if (least !== undefined && value.length < least) {
      fail(result, 'array_min_items', field, `Array must have at least ${least} items`)
    }
    if (most !== undefined && value.length > most) {
      fail(result, 'array_max_items', field, `Array must have at most ${most} items`)
    }
    if (schema.get('uniqueItems') === true) {
      const seen = new Map<string, number>()
      for (const [index, item] of value.entries()) {
        const text = goJson(item)
        const before = seen.get(text)
        if (before !== undefined) {
          fail(result, 'unique', field, `array items[${before},${index}] must be unique`)
        }
        seen.set(text, index)
      }
    }
    if (schema.has('contains')) {
      const checked = value.map((item, index) => check(schema.get('contains')!, item, below(field, String(index))))
      if (checked.every(({ errors }) => errors.length > 0)) {
        fail(result, 'contains', field, 'At least one of the items must match')
        const best = closest(checked)
        if (best) merge(result, best)
      }
    }
    result.score++
  }

  const items = (result: Result, schema: RegoObject, value: Value[], field: string): void => {
    const parts = schema.get('items')
    const checkItem = (part: Value, index: number) =>
      merge(result, check(part, value[index]!, below(field, String(index))))
    if (parts === undefined) return
    if (!Array.isArray(parts)) {
      for (const index of value.keys()) checkItem(parts, index)
      return
    }
    const both = Math.min(parts.length, value.length)
    for (let index = 0; index < both; index++) checkItem(parts[index]!, index)
    const additional = schema.get('additionalItems')
    if (parts.length === 0 || parts.length >= value.length || additional === undefined) return
    if (additional === false) {
      fail(result, 'array_no_additional_items', field, 'No additional items allowed on array')
    } else for (let index = both; index < value.length; index++) checkItem(additional, index)
  }

  const objects = (result: Result, schema: RegoObject, value: RegoObject, field: string): void => {
    const [least, most] = [countIn(schema, 'minProperties'), countIn(schema, 'maxProperties')]
    if (least !== undefined && value.size < least) {
      fail(result, 'array_min_properties', field, `Must have at least ${least} properties`)
    }
    if (most !== undefined && value.size > most) {
      fail(result, 'array_max_properties', field, `Must have at most ${most} properties`)
    }
    for (const name of listOf(schema.get('required'))) {
      if (value.has(name)) result.score++
      else fail(result, 'required', field, `${String(name)} is required`)
    }
    const described = schema.get('properties')
    for (const [name, member] of sortedEntries(value) as [string, Value][]) {
      const isDescribed = described instanceof Map && described.has(name)
      if (!patternProperties(result, schema, name, member, field) && !isDescribed) {
        additionalProperty(result, schema, name, member, field)
      }
    }
    if (schema.has('propertyNames')) {
      for (const [name] of sortedEntries(value)) {
        const checked = check(schema.get('propertyNames')!, name, field)
        if (checked.errors.length === 0) continue
        fail(result, 'invalid_property_name', field, `Property name of ${JSON.stringify(name)} does not match`)
        merge(result, checked)
      }
    }
    result.score++
    if (!(described instanceof Map)) return
    for (const [name, part] of described) {
      if (value.has(name)) checkInto(result, part, value.get(name)!, below(field, String(name)))
    }
  }

  const patternProperties = (
    result: Result,
    schema: RegoObject,
    name: string,
    member: Value,
    field: string,
  ): boolean => {
    const patterns = schema.get('patternProperties')
    let found = false
    for (const [pattern, part] of patterns instanceof Map ? (patterns as Map<string, Value>) : []) {
      if (!compileRegex(pattern).matcher(name).find()) continue
      found = true
      merge(result, check(part, member, below(field, name)))
    }
    return found
  }

  const additionalProperty = (result: Result, schema: RegoObject, name: string, member: Value, field: string): void => {
    const additional = schema.get('additionalProperties')
    if (additional === false) {
      fail(result, 'additional_property_not_allowed', field, `Additional property ${name} is not allowed`)
    } else if (additional instanceof Map) merge(result, check(additional, member, below(field, name)))
  }

  return check(schemas.root, document, root).errors
}

const root = '(Root)'
const below = (field: string, name: string): string => (field === root ? name : `${field}.${name}`)

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

const listOf = (value: Value | undefined): readonly Value[] => (Array.isArray(value) ? value : [])

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
  const [a, b] = [scientific(numberText(value)), scientific(numberText(unit))]
  if (b.digits === 0n) return false
  const exponent = Math.min(a.exponent, b.exponent)
  if (Math.max(a.exponent, b.exponent) - exponent > 1_000) return false
  const scaled = [a, b].map(({ digits, exponent: own }) => digits * 10n ** BigInt(own - exponent))
  return scaled[0]! % scaled[1]! === 0n
}
