import type { DocumentNode } from 'graphql/language'
import { isValidQuery } from '../graphql/check-query.ts'
import { isValidSchema } from '../graphql/check-schema.ts'
import { queryFromOpa, schemaFromOpa } from '../graphql/from-opa.ts'
import { parseQuery, parseSchema } from '../graphql/parse.ts'
import { executableSchema, type SchemaParts, schemaParts } from '../graphql/schema.ts'
import { readStruct } from '../graphql/structs.ts'
import { queryToOpa, schemaToOpa } from '../graphql/to-opa.ts'
import { asString, asValue, refuse, unlessRefused } from '../values/operands.ts'
import type { RegoObject, Value } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** A document, given as a text or as the AST that `graphql.parse_query` and `graphql.parse_schema` make. */
interface Given {
  document: DocumentNode
  ast(): RegoObject
}

const readGiven = (value: Value | undefined, kind: 'Query' | 'Schema'): Given => {
  const { parse, fromOpa, toOpa, struct } = kinds[kind]
  if (typeof value === 'string') {
    const document = parse(value)
    return { document, ast: () => toOpa(document) }
  }
  const ast = value instanceof Map ? readStruct(struct, value) : refuse('operand must be a string or an object')
  return { document: fromOpa(ast), ast: () => ast }
}

const asQuery = (value: Value | undefined): Given => readGiven(value, 'Query')

const asSchema = (value: Value | undefined): Given => readGiven(value, 'Schema')

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
const verified = (first: Value, second: Value): [RegoObject, RegoObject] => {
  const [query, schema] = [asQuery(first), asSchema(second)]
  if (!fits(query.document, validParts(schema.document))) refuse('the query is not valid')
  return [query.ast(), schema.ast()]
}

export const graphqlBuiltins: BuiltinTable = {
  'graphql.is_valid': builtin([asValue, asValue], (query, schema) =>
    Boolean(unlessRefused(() => verified(query, schema))),
  ),
  'graphql.parse': builtin([asValue, asValue], verified),
  'graphql.parse_and_verify': builtin([asValue, asValue], (query, schema) => {
    const documents = unlessRefused(() => verified(query, schema))
    return documents ? [true, ...documents] : [false, new Map(), new Map()]
  }),
  'graphql.parse_query': builtin([asString], (text) => queryToOpa(parseQuery(text))),
  'graphql.parse_schema': builtin([asString], (text) => schemaToOpa(parseSchema(text))),
  'graphql.schema_is_valid': builtin([asValue], (schema) =>
    Boolean(unlessRefused(() => validParts(asSchema(schema).document))),
  ),
}
