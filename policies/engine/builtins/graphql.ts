import type { DocumentNode } from 'graphql/language'
import { isValidQuery } from '../graphql/check-query.ts'
import { isValidSchema } from '../graphql/check-schema.ts'
import { queryFromOpa, schemaFromOpa } from '../graphql/from-opa.ts'
import { parseQuery, parseSchema } from '../graphql/parse.ts'
import { executableSchema, type SchemaParts, schemaParts } from '../graphql/schema.ts'
import { readStruct } from '../graphql/structs.ts'
import { queryToOpa, schemaToOpa } from '../graphql/to-opa.ts'
import { asString, BuiltinError, refuse } from '../values/operands.ts'
import type { RegoObject, Value } from '../values/values.ts'
import type { HostBuiltin } from './index.ts'

/** A document, given as a text or as the AST that `graphql.parse_query` and `graphql.parse_schema` make. */
interface Given {
  document: DocumentNode
  ast(): RegoObject
}

const given = (value: Value | undefined, kind: 'Query' | 'Schema'): Given => {
  const { parse, fromOpa, toOpa, struct } = kinds[kind]
  if (typeof value === 'string') {
    const document = parse(value)
    return { document, ast: () => toOpa(document) }
  }
  const ast = value instanceof Map ? readStruct(struct, value) : refuse('operand must be a string or an object')
  return { document: fromOpa(ast), ast: () => ast }
}

const kinds = {
  Query: { parse: parseQuery, fromOpa: queryFromOpa, toOpa: queryToOpa, struct: 'QueryDocument' },
  Schema: { parse: parseSchema, fromOpa: schemaFromOpa, toOpa: schemaToOpa, struct: 'SchemaDocument' },
} as const

const validParts = (document: DocumentNode): SchemaParts => {
  const parts = schemaParts(document)
  return parts && isValidSchema(parts) ? parts : refuse('the schema is not valid')
}

/** What graphql-js does not take is not valid, whatever the reason. */
const fits = (query: DocumentNode, schema: SchemaParts): boolean => {
  try {
    return isValidQuery(executableSchema(schema), query)
  } catch {
    return false
  }
}

/** Both as ASTs when the query is valid for the schema; refuses otherwise. */
const verified = ([first, second]: readonly Value[]): [RegoObject, RegoObject] => {
  const [query, schema] = [given(first, 'Query'), given(second, 'Schema')]
  if (!fits(query.document, validParts(schema.document))) refuse('the query is not valid')
  return [query.ast(), schema.ast()]
}

/** What `read` answers, or the other value where an operand is no document or not valid. */
const orElse = <Answer>(read: () => Answer, otherwise: Answer): Answer => {
  try {
    return read()
  } catch (error) {
    if (error instanceof BuiltinError) return otherwise
    throw error
  }
}

export const graphqlBuiltins: Record<string, HostBuiltin> = {
  'graphql.is_valid': (operands) => orElse(() => Boolean(verified(operands)), false),
  'graphql.parse': verified,
  'graphql.parse_and_verify': (operands) =>
    orElse<Value>(() => [true, ...verified(operands)], [false, new Map(), new Map()]),
  'graphql.parse_query': ([text]) => queryToOpa(parseQuery(asString(text))),
  'graphql.parse_schema': ([text]) => schemaToOpa(parseSchema(asString(text))),
  'graphql.schema_is_valid': ([schema]) => orElse(() => Boolean(validParts(given(schema, 'Schema').document)), false),
}
