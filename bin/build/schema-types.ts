/** JSON Schemas, as our OpenAPI document has them, as types of TypeScript. */

interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  items?: Schema
  prefixItems?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  not?: unknown
}

/** Named types begin with `$`, so that they are told from words in a text. */
export const typeNameOf = (component: string): string => component.replaceAll(/\W/g, '_')

export const typeOf = (schema: object): string => {
  const { $ref, type, anyOf, oneOf, allOf, not, ...rest } = schema as Schema
  if ($ref !== undefined) return `$${typeNameOf($ref.split('/').at(-1)!)}`
  if ('const' in rest) return JSON.stringify(rest.const)
  if (rest.enum) return union(rest.enum.map((value) => JSON.stringify(value)))
  const choices = anyOf ?? oneOf
  if (choices) return union(choices.map(typeOf))
  if (allOf) return allOf.map((part) => `(${typeOf(part)})`).join(' & ')
  if (not !== undefined && type === undefined) return 'never'
  if (Array.isArray(type)) return union(type.map((one) => typeOf({ ...rest, type: one })))
  return (type !== undefined && simple[type]?.(rest)) || 'unknown'
}

const simple: Readonly<Record<string, (schema: Schema) => string>> = {
  string: () => 'string',
  number: () => 'number',
  integer: () => 'number',
  boolean: () => 'boolean',
  null: () => 'null',
  array: ({ items, prefixItems }) =>
    prefixItems ? `[${prefixItems.map(typeOf).join(', ')}]` : `(${items ? typeOf(items) : 'unknown'})[]`,
  object: ({ properties = {}, required = [], additionalProperties }) => {
    const members = Object.entries(properties).map(
      ([name, member]) => `${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(member)}`,
    )
    if (typeof additionalProperties === 'object' && members.length === 0)
      return `Record<string, ${typeOf(additionalProperties)}>`
    return `{ ${members.join('; ')} }`
  },
}

const union = (types: readonly string[]): string => [...new Set(types)].map((type) => `(${type})`).join(' | ')
