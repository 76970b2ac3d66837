import { memoized } from '../base/memoized.ts'
import { goJson } from '../go/json.ts'
import { checkSchema } from '../json-schema/check-schema.ts'
import { type SchemaDocument, SchemaError, schemaDocument } from '../json-schema/references.ts'
import { SchemaTooDeep, validate } from '../json-schema/validate.ts'
import { asValue, objectOf, refuse } from '../values/operands.ts'
import { parseValue } from '../values/text.ts'
import type { Value } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** A document or schema: an object, or a text with the JSON of one. Sets become arrays. */
const readDocument = (value: Value): Value => {
  if (value instanceof Map) return parseValue(goJson(value))
  if (typeof value !== 'string') return refuse('operand must be an object or a JSON text')
  try {
    JSON.parse(value)
    return parseValue(value)
  } catch {
    throw new SchemaError('invalid JSON string')
  }
}

/** A checked schema, by its JSON. Rules have few. */
const schemaOf = memoized(200, (json: string): SchemaDocument => {
  const schema = schemaDocument(parseValue(json))
  checkSchema(schema)
  return schema
})

const readSchema = (value: Value): SchemaDocument => schemaOf(goJson(readDocument(value)))

const match = (document: Value, schema: Value): Value => {
  try {
    const errors = validate(readSchema(schema), readDocument(document)).map(({ type, field, description }) =>
      objectOf({ error: `${field}: ${description}`, type, field, desc: description }),
    )
    return [errors.length === 0, errors]
  } catch (error) {
    if (error instanceof SchemaError || error instanceof SchemaTooDeep)
      return refuse('the schema or document is not valid')
    throw error
  }
}

const verify = (schema: Value): Value => {
  try {
    readSchema(schema)
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
