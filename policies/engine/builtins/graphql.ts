import type { DocumentNode } from 'graphql/language'
import type { Meter } from '../base/meter.ts'
import { isValidQuery } from '../graphql/check-query.ts'
import { isValidSchema } from '../graphql/check-schema.ts'
import { queryFromOpa, schemaFromOpa } from '../graphql/from-opa.ts'
import { parseQuery, parseSchema } from '../graphql/parse.ts'
import { payForQuery } from '../graphql/query-cost.ts'
import { executableSchema, payForSchema, type SchemaParts, schemaParts } from '../graphql/schema.ts'
import { readStruct } from '../graphql/structs.ts'
import { queryToOpa, schemaToOpa } from '../graphql/to-opa.ts'
import { asString, asValue, refuse, unlessRefused } from '../values/operands.ts'
import type { RegoObject, Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** A document, given as a text or as the AST that `graphql.parse_query` and `graphql.parse_schema` make. */
interface Given {
  document: DocumentNode
  ast(): RegoObject
}

const readGiven = (value: Value, kind: 'Query' | 'Schema', meter: Meter): Given => {
  const { parse, fromOpa, toOpa, struct } = kinds[kind]
  if (typeof value === 'string') {
    const document = parse(value, meter)
    return { document, ast: () => toOpa(document) }
  }
  weigh(value, meter, timesToRead)
  const ast = value instanceof Map ? readStruct(struct, value) : refuse('operand must be a string or an object')
  return { document: fromOpa(ast), ast: () => ast }
}

/** An AST: each member's name is looked for, in any case. */
const timesToRead = 20

const kinds = {
  Query: { parse: parseQuery, fromOpa: queryFromOpa, toOpa: queryToOpa, struct: 'QueryDocument' },
  Schema: { parse: parseSchema, fromOpa: schemaFromOpa, toOpa: schemaToOpa, struct: 'SchemaDocument' },
} as const

const validParts = (document: DocumentNode, meter: Meter): SchemaParts => {
  const parts = schemaParts(document, meter)
  return parts && isValidSchema(parts, meter) ? parts : refuse('the schema is not valid')
}

/** What graphql-js does not take is not valid, whatever the reason. */
const fits = (query: DocumentNode, schema: SchemaParts, meter: Meter): boolean => {
  payForSchema(schema, meter)
  payForQuery(query, schema, meter)
  try {
    return isValidQuery(executableSchema(schema), query)
  } catch {
    return false
  }
}

/** Both as ASTs when the query is valid for the schema; refuses otherwise. */
const verified = (first: Value, second: Value, meter: Meter): [RegoObject, RegoObject] => {
  const [query, schema] = [readGiven(first, 'Query', meter), readGiven(second, 'Schema', meter)]
  if (!fits(query.document, validParts(schema.document, meter), meter)) refuse('the query is not valid')
  return [query.ast(), schema.ast()]
}

export const graphqlBuiltins: BuiltinTable = {
  'graphql.is_valid': builtin([asValue, asValue], (query, schema, meter) =>
    Boolean(unlessRefused(() => verified(query, schema, meter))),
  ),
  'graphql.parse': builtin([asValue, asValue], verified),
  'graphql.parse_and_verify': builtin([asValue, asValue], (query, schema, meter) => {
    const documents = unlessRefused(() => verified(query, schema, meter))
    return documents ? [true, ...documents] : [false, new Map(), new Map()]
  }),
  'graphql.parse_query': builtin([asString], (text, meter) => queryToOpa(parseQuery(text, meter))),
  'graphql.parse_schema': builtin([asString], (text, meter) => schemaToOpa(parseSchema(text, meter))),
  'graphql.schema_is_valid': builtin([asValue], (schema, meter) =>
    Boolean(unlessRefused(() => validParts(readGiven(schema, 'Schema', meter).document, meter))),
  ),
}
