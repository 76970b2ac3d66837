import { z } from 'zod'

/** A schema object of OpenAPI 3.1, which is JSON Schema 2020-12. */
export type SchemaObject = Record<string, unknown>

/** Schemas with a name of their own; those of answers refer to them. */
export type NamedSchemas = Readonly<Record<string, z.ZodType>>

/** What callers may send. */
export const inputSchema = (schema: z.ZodType): SchemaObject => convert(schema, 'input', z.registry())

/** Answers and their named parts. */
export const outputSchemas = (named: NamedSchemas) => {
  const registry = z.registry<{ id: string }>()
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id })
  return {
    schemaOf: (schema: z.ZodType): SchemaObject => convert(schema, 'output', registry),
    components: (): Record<string, SchemaObject> =>
      Object.fromEntries(
        Object.entries(named).map(([name, schema]) => [name, convert(schema, 'output', registry, name)]),
      ),
  }
}

interface Parts {
  properties: { value: SchemaObject }
  $defs?: Record<string, SchemaObject>
}

const convert = (
  schema: z.ZodType,
  io: 'input' | 'output',
  registry: z.core.$ZodRegistry<{ id?: string | undefined }>,
  name?: string,
): SchemaObject => {
  // Inside of another schema a named one always becomes a reference, also the outermost.
  const { properties, $defs = {} } = z.toJSONSchema(z.object({ value: schema }), {
    io,
    metadata: registry,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => adjust(jsonSchema, zodSchema, io),
  }) as unknown as Parts
  return withReferences(name === undefined ? properties.value : $defs[name]!)
}

const adjust = (json: SchemaObject, schema: z.core.$ZodType, io: 'input' | 'output') => {
  // `.meta()` and `.describe()` of the schema itself.
  Object.assign(json, z.globalRegistry.get(schema))
  // Members may be added to answers.
  if (io === 'output' && json['additionalProperties'] === false) delete json['additionalProperties']
  // What says nothing: every number of JSON, every name of a member.
  if (json['minimum'] === Number.MIN_SAFE_INTEGER) delete json['minimum']
  if (json['maximum'] === Number.MAX_SAFE_INTEGER) delete json['maximum']
  if (JSON.stringify(json['propertyNames']) === '{"type":"string"}') delete json['propertyNames']
  // A query parameter that is read as a boolean is sent as a text.
  if (typeof json['default'] === 'boolean' && json['type'] === 'string') json['default'] = String(json['default'])
}

const withReferences = (json: SchemaObject): SchemaObject =>
  JSON.parse(JSON.stringify(json), (name, value) => {
    if (name === '$ref') return String(value).replace('#/$defs/', '#/components/schemas/')
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const { id, ...rest } = value as SchemaObject
    // The registry's id, which names the component; a property called id is an object.
    return typeof id === 'string' ? rest : value
  })
