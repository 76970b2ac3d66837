import type { Meter } from '../base/meter.ts'
import { compileRegex, isMatch } from '../go/regexp.ts'
import { sortedEntries } from '../values/order.ts'
import { isNumber, type RegoObject, type Value } from '../values/value.ts'
import { assertAny, assertArray, assertNumber, assertObject, assertText, assertType, listOf } from './assertions.ts'
import { resolveReference, type SchemaDocument } from './references.ts'
import { emptyResult, fail, isValid, type Mismatch, merge, mergeClosest, type Result } from './result.ts'

/** A schema may refer to itself; a document is only so deep. */
const deepest = 500

export class SchemaTooDeep extends Error {}

/**
 * JSON Schema (drafts 4, 6 and 7) with the answers of gojsonschema, which OPA uses: their order, types and words.
 * Nothing is compiled into code, and patterns are Go's, in linear time. Here are the keywords that apply schemas to a
 * value and its parts; those that look at a value alone are in `assertions.ts`. Throws `SchemaTooDeep`, and
 * `SchemaError` for a reference that leads nowhere. Every step is paid for: schemas that refer to each other can ask
 * for a number of them that grows with the power of their size.
 */
export const validate = (schemas: SchemaDocument, document: Value, meter: Meter): Mismatch[] => {
  let depth = 0

  const check = (schema: Value, value: Value, field: string): Result => {
    const result = emptyResult(field, meter)
    checkInto(result, schema, value)
    return result
  }

  const checkInto = (result: Result, schema: Value, value: Value): void => {
    if (++depth > deepest) throw new SchemaTooDeep()
    meter.spend(unitsForStep)
    if (schema === false) fail(result, 'false', 'False always fails validation')
    else if (schema instanceof Map) {
      const reference = schema.get('$ref')
      if (typeof reference === 'string') {
        meter.spend(unitsForCharacter * reference.length)
        checkInto(result, resolveReference(schemas, schema, reference), value)
      } else checkKeywords(result, schema, value)
    }
    depth--
  }

  const checkKeywords = (result: Result, schema: RegoObject, value: Value): void => {
    if (!assertType(result, schema, value)) return
    combinations(result, schema, value)
    if (isNumber(value)) assertNumber(result, schema, value)
    assertAny(result, schema, value)
    if (typeof value === 'string') assertText(result, schema, value)
    if (Array.isArray(value)) arrays(result, schema, value)
    if (value instanceof Map) objects(result, schema, value)
  }

  const combinations = (result: Result, schema: RegoObject, value: Value): void => {
    const alternatives = (name: string) => listOf(schema.get(name)).map((part) => check(part, value, result.field))
    const valid = (results: readonly Result[]) => results.filter(isValid).length

    const anyOf = alternatives('anyOf')
    if (anyOf.length > 0 && valid(anyOf) === 0) {
      fail(result, 'number_any_of', 'Must validate at least one schema (anyOf)')
      mergeClosest(result, anyOf)
    }
    const oneOf = alternatives('oneOf')
    if (oneOf.length > 0 && valid(oneOf) !== 1) {
      fail(result, 'number_one_of', 'Must validate one and only one schema (oneOf)')
      if (valid(oneOf) === 0) mergeClosest(result, oneOf)
    }
    const allOf = alternatives('allOf')
    for (const part of allOf) if (!isValid(part)) merge(result, part)
    if (valid(allOf) !== allOf.length) fail(result, 'number_all_of', 'Must validate all the schemas (allOf)')
    const not = schema.get('not')
    if (not !== undefined && isValid(check(not, value, result.field))) {
      fail(result, 'number_not', 'Must not validate the schema (not)')
    }
    if (value instanceof Map) dependencies(result, schema, value)
    const condition = schema.get('if')
    if (condition !== undefined) conditions(result, schema, condition, value)
    result.score++
  }

  const dependencies = (result: Result, schema: RegoObject, value: RegoObject): void => {
    const needed = schema.get('dependencies')
    if (!(needed instanceof Map)) return
    for (const [name] of sortedEntries(value)) {
      const dependency = needed.get(name)
      if (!Array.isArray(dependency)) {
        if (dependency !== undefined) checkInto(result, dependency, value)
        continue
      }
      for (const other of dependency) {
        if (!value.has(other)) fail(result, 'missing_dependency', `Has a dependency on ${String(other)}`)
      }
    }
  }

  const conditions = (result: Result, schema: RegoObject, condition: Value, value: Value): void => {
    const holds = isValid(check(condition, value, result.field))
    const branch = schema.get(holds ? 'then' : 'else')
    if (branch === undefined) return
    const checked = check(branch, value, result.field)
    if (isValid(checked)) return
    if (holds) fail(result, 'condition_then', 'Must validate "then" as "if" was valid')
    else fail(result, 'condition_else', 'Must validate "else" as "if" was not valid')
    merge(result, checked)
  }

  const arrays = (result: Result, schema: RegoObject, value: Value[]): void => {
    items(result, schema, value)
    assertArray(result, schema, value)
    const wanted = schema.get('contains')
    if (wanted !== undefined) {
      const checked = value.map((item, index) => check(wanted, item, below(result.field, String(index))))
      if (!checked.some(isValid)) {
        fail(result, 'contains', 'At least one of the items must match')
        mergeClosest(result, checked)
      }
    }
    result.score++
  }

  const items = (result: Result, schema: RegoObject, value: Value[]): void => {
    const parts = schema.get('items')
    const isList = Array.isArray(parts)
    const additional = isList && parts.length > 0 ? schema.get('additionalItems') : undefined
    const behind = additional === false ? undefined : additional
    for (const [index, item] of value.entries()) {
      const part = !isList ? parts : index < parts.length ? parts[index] : behind
      if (part !== undefined) merge(result, check(part, item, below(result.field, String(index))))
    }
    if (additional === false && isList && parts.length < value.length) {
      fail(result, 'array_no_additional_items', 'No additional items allowed on array')
    }
  }

  const objects = (result: Result, schema: RegoObject, value: RegoObject): void => {
    meter.spend(unitsForMember * value.size)
    assertObject(result, schema, value)
    const described = schema.get('properties')
    for (const [name, member] of sortedEntries(value) as [string, Value][]) {
      const isDescribed = described instanceof Map && described.has(name)
      if (!patternProperties(result, schema, name, member) && !isDescribed) {
        additionalProperty(result, schema, name, member)
      }
    }
    const names = schema.get('propertyNames')
    if (names !== undefined) {
      for (const [name] of sortedEntries(value)) {
        const checked = check(names, name, result.field)
        if (isValid(checked)) continue
        fail(result, 'invalid_property_name', `Property name of ${JSON.stringify(name)} does not match`)
        merge(result, checked)
      }
    }
    result.score++
    if (!(described instanceof Map)) return
    for (const [name, part] of described) {
      const member = value.get(name)
      if (member !== undefined) merge(result, check(part, member, below(result.field, String(name))))
    }
  }

  const patternProperties = (result: Result, schema: RegoObject, name: string, member: Value): boolean => {
    const patterns = schema.get('patternProperties')
    let found = false
    for (const [pattern, part] of patterns instanceof Map ? (patterns as Map<string, Value>) : []) {
      if (!isMatch(compileRegex(pattern, meter), name, meter)) continue
      found = true
      merge(result, check(part, member, below(result.field, name)))
    }
    return found
  }

  const additionalProperty = (result: Result, schema: RegoObject, name: string, member: Value): void => {
    const additional = schema.get('additionalProperties')
    if (additional === false) {
      fail(result, 'additional_property_not_allowed', `Additional property ${name} is not allowed`)
    } else if (additional instanceof Map) merge(result, check(additional, member, below(result.field, name)))
  }

  return check(schemas.root, document, root).mismatches
}

const unitsForStep = 100
const unitsForMember = 60
const unitsForCharacter = 10

const root = '(Root)'
const below = (field: string, name: string): string => (field === root ? name : `${field}.${name}`)
