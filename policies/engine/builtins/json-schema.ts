import { checkSchema } from '../json-schema/check-schema.ts'
import { type SchemaDocument, SchemaError, schemaDocument } from '../json-schema/references.ts'
import { SchemaTooDeep, validate } from '../json-schema/validate.ts'
import { objectOf, refuse } from '../values/operands.ts'
import { parseValue, type Value } from '../values/values.ts'
import { goJson } from './encoding.ts'
import type { HostBuiltin } from './index.ts'

/** A document or schema: an object, or a text with the JSON of one. Sets become arrays. */
const asDocument = (value: Value | undefined): Value => {
  if (typeof value !== 'string' && !(value instanceof Map)) return refuse('operand must be an object or a JSON text')
  if (value instanceof Map) return parseValue(goJson(value))
  try {
    JSON.parse(value)
    return parseValue(value)
  } catch {
    throw new SchemaError('invalid JSON string')
  }
}

/** Schemas by their text; rules have few. */
const known = new Map<string, SchemaDocument>()
const mostKnown = 200

const asSchema = (value: Value | undefined): SchemaDocument => {
  const document = asDocument(value)
  const text = goJson(document)
  const before = known.get(text)
  if (before) return before
  const schemas = schemaDocument(document)
  checkSchema(schemas)
  if (known.size >= mostKnown) known.clear()
  known.set(text, schemas)
  return schemas
}

const match = (document: Value | undefined, schema: Value | undefined): Value => {
  try {
    const errors = validate(asSchema(schema), asDocument(document)).map(({ type, field, description }) =>
      objectOf({ error: `${field}: ${description}`, type, field, desc: description }),
    )
    return [errors.length === 0, errors]
  } catch (error) {
    if (error instanceof SchemaError || error instanceof SchemaTooDeep)
      return refuse('the schema or document is not valid')
    throw error
  }
}

const verify = (schema: Value | undefined): Value => {
  try {
    asSchema(schema)
    return [true, null]
  } catch (error) {
    if (error instanceof SchemaError) return [false, `jsonschema: ${error.message}`]
    throw error
  }
}

export const jsonSchemaBuiltins: Record<string, HostBuiltin> = {
  'json.match_schema': ([document, schema]) => match(document, schema),
  'json.verify_schema': ([schema]) => verify(schema),
}
