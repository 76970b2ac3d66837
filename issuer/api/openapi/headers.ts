import type { SchemaObject } from './json-schema.ts'

export const text = (description: string) => ({ description, schema: { type: 'string' } })

/** Of answers of every API here. */
export const commonHeaders: Readonly<Record<string, SchemaObject>> = {
  'Logto-Core-Request-Id': text('Give it to the operator when something failed.'),
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer', minimum: 0 } },
}

/** Components by their own names. */
export const referencesTo = (section: string, names: readonly string[]): Record<string, SchemaObject> =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/${section}/${name}` }]))
