import type { z } from 'zod'
import { inputSchema, type SchemaObject } from './json-schema.ts'

/** The members of a schema as parameters of an operation. */
export const parametersOf = (schema: z.ZodType | undefined, where: 'path' | 'query'): SchemaObject[] => {
  if (schema === undefined) return []
  const { properties = {}, required = [] } = inputSchema(schema) as {
    properties?: Record<string, SchemaObject>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: where,
    required: where === 'path' || required.includes(name),
    ...(description !== undefined && { description }),
    schema: rest,
  }))
}
