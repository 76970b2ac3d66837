import { memoized } from '../base/memoized.ts'
import type { Meter } from '../base/meter.ts'
import { goJson } from '../go/json.ts'
import { payForRegex } from '../go/regexp.ts'
import { checkSchema } from '../json-schema/check-schema.ts'
import { type SchemaDocument, SchemaError, schemaDocument } from '../json-schema/references.ts'
import { SchemaTooDeep, validate } from '../json-schema/validate.ts'
import { asValue, objectOf, refuse } from '../values/operands.ts'
import { parseValue } from '../values/text.ts'
import type { Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

const unitsToRead = 10
const timesToRead = 10

/** A document or schema: an object, or a text with the JSON of one. Sets become arrays. */
const readDocument = (value: Value, meter: Meter): Value => {
  if (typeof value === 'string') meter.spend(unitsToRead * value.length)
  else weigh(value, meter, timesToRead)
  if (value instanceof Map) return parseValue(goJson(value))
  if (typeof value !== 'string') return refuse('operand must be an object or a JSON text')
  try {
    JSON.parse(value)
    return parseValue(value)
  } catch {
    throw new SchemaError('invalid JSON string')
  }
}

/** By its JSON. Rules have few. */
const schemaOf = memoized(200, (json: string): SchemaDocument => schemaDocument(parseValue(json)))
const checked = new WeakSet<SchemaDocument>()

/** For each character of its JSON. */
const unitsToCheck = 50

const readSchema = (value: Value, meter: Meter): SchemaDocument => {
  const json = goJson(readDocument(value, meter))
  meter.spendOnce(`schema ${json}`, unitsToCheck * json.length)
  const schema = schemaOf(json)
  for (const pattern of schema.patterns) payForRegex(pattern, meter)
  if (!checked.has(schema)) checkSchema(schema)
  checked.add(schema)
  return schema
}

const match = (document: Value, schema: Value, meter: Meter): Value => {
  try {
    const errors = validate(readSchema(schema, meter), readDocument(document, meter), meter).map(
      ({ type, field, description }) => objectOf({ error: `${field}: ${description}`, type, field, desc: description }),
    )
    return [errors.length === 0, errors]
  } catch (error) {
    if (error instanceof SchemaError || error instanceof SchemaTooDeep)
      return refuse('the schema or document is not valid')
    throw error
  }
}

const verify = (schema: Value, meter: Meter): Value => {
  try {
    readSchema(schema, meter)
    return [true, null]
  } catch (error) {
    if (error instanceof SchemaError) return [false, `jsonschema: ${error.message}`]
    throw error
  }
}

export const jsonSchemaBuiltins: BuiltinTable = {
  'json.match_schema': builtin([asValue, asValue], match),
  'json.verify_schema': builtin([asValue], verify),
}
