import { isRegex } from '../go/regexp.ts'
import { sorted } from '../values/order.ts'
import { isNumber, numberText, type RegoObject, scientific, toInteger, type Value } from '../values/value.ts'
import { resolveReference, type SchemaDocument, SchemaError } from './references.ts'

/**
 * Throws `SchemaError` with gojsonschema's message when the schema is not valid. Who asks has paid for it, its patterns
 * included.
 */
export const checkSchema = (schemas: SchemaDocument): void => {
  const checkPart = (schema: Value): void => {
    if (typeof schema === 'boolean') return
    if (!(schema instanceof Map)) throw new SchemaError('schema is invalid')
    const reference = schema.get('$ref')
    if (reference !== undefined) {
      if (typeof reference !== 'string') throw new SchemaError('Invalid type. Expected: string, given: $ref')
      resolveReference(schemas, schema, reference)
    }
    for (const [keyword, value] of schema) {
      const check = typeof keyword === 'string' && Object.hasOwn(keywords, keyword) ? keywords[keyword] : undefined
      for (const part of check?.(value) ?? []) checkPart(part)
    }
    crossChecks(schema)
  }
  checkPart(schemas.root)
}

const refuse = (message: string): never => {
  throw new SchemaError(message)
}

const types = ['array', 'boolean', 'integer', 'number', 'null', 'object', 'string']

const primitive = (type: Value): void => {
  if (typeof type !== 'string') refuse('Invalid type. Expected: type, given: string/Array Of Strings')
  if (types.includes(type as string)) return
  refuse(
    `has a primitive type that is NOT VALID -- given: /${String(type)}/ Expected valid values are:[${types.join(' ')}]`,
  )
}

/** Answers with the schemas in a keyword's value. */
type Check = (value: Value) => readonly Value[]

const asList =
  (keyword: string): Check =>
  (value) =>
    Array.isArray(value) && value.length > 0 ? value : refuse(`${keyword} must be of type array`)

const asMembers =
  (keyword: string): Check =>
  (value) =>
    value instanceof Map ? [...value.values()] : refuse(`${keyword} must be of type object`)

const asNumber =
  (keyword: string): Check =>
  (value) =>
    isNumber(value) ? [] : refuse(`${keyword} must be of a Number`)

const asBound =
  (keyword: string): Check =>
  (value) =>
    isNumber(value) || typeof value === 'boolean' ? [] : refuse(`${keyword} must be of a Number`)

const asCount =
  (keyword: string): Check =>
  (value) => {
    const count = isNumber(value) ? toInteger(value) : undefined
    if (count === undefined) return refuse(`${keyword} must be of an Integer`)
    return count < 0n ? refuse(`${keyword} must be greater than or equal to 0`) : []
  }

const asPattern: Check = (value) =>
  typeof value === 'string' && isRegex(value) ? [] : refuse('pattern must be a valid regex')

const one: Check = (value) => [value]

const keywords: Record<string, Check> = {
  type: (value) => {
    for (const type of Array.isArray(value) ? value : [value]) primitive(type)
    return []
  },
  properties: asMembers('Properties'),
  patternProperties: (value) => {
    if (value instanceof Map) for (const pattern of value.keys()) asPattern(pattern)
    return asMembers('patternProperties')(value)
  },
  definitions: asMembers('definitions'),
  dependencies: (value) => asMembers('dependencies')(value).filter((part) => !Array.isArray(part)),
  items: (value) => (Array.isArray(value) ? value : [value]),
  additionalItems: one,
  additionalProperties: one,
  propertyNames: one,
  contains: one,
  not: one,
  if: one,
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema; nobody awaits the table.
  then: one,
  else: one,
  allOf: asList('allOf'),
  anyOf: asList('anyOf'),
  oneOf: asList('oneOf'),
  enum: (value) => {
    if (!Array.isArray(value) || value.length === 0) refuse('enum must be of type array')
    return []
  },
  required: (value) => {
    if (!Array.isArray(value) || value.some((name) => typeof name !== 'string'))
      refuse('required must be of type array')
    return []
  },
  pattern: asPattern,
  minimum: asNumber('minimum'),
  maximum: asNumber('maximum'),
  exclusiveMinimum: asBound('exclusiveMinimum'),
  exclusiveMaximum: asBound('exclusiveMaximum'),
  multipleOf: (value) => {
    asNumber('multipleOf')(value)
    if (isNumber(value) && scientific(numberText(value)).digits <= 0n)
      refuse('multipleOf must be strictly greater than 0')
    return []
  },
  minLength: asCount('minLength'),
  maxLength: asCount('maxLength'),
  minItems: asCount('minItems'),
  maxItems: asCount('maxItems'),
  minProperties: asCount('minProperties'),
  maxProperties: asCount('maxProperties'),
  uniqueItems: (value) => (typeof value === 'boolean' ? [] : refuse('uniqueItems must be of type boolean')),
  format: (value) => (typeof value === 'string' ? [] : refuse('format must be of type string')),
}

const pairs = [
  ['minimum', 'maximum'],
  ['minLength', 'maxLength'],
  ['minItems', 'maxItems'],
  ['minProperties', 'maxProperties'],
] as const

const crossChecks = (schema: RegoObject): void => {
  for (const [least, most] of pairs) {
    const [low, high] = [schema.get(least), schema.get(most)]
    if (low === undefined || high === undefined || !isNumber(low) || !isNumber(high)) continue
    if (sorted([low, high])[0] !== low) refuse(`${least} cannot be greater than ${most}`)
  }
}
