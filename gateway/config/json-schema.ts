import { z } from 'zod'
import { descriptions } from './descriptions.ts'
import { gatewaySchema } from './schema.ts'

/**
 * The JSON Schema of `gateway.yaml`, for editors: completion, explanations, and what is wrong while it is written. Made from what reads the
 * file, so that the two cannot differ; `gateway check` finds more, since a schema knows no relations.
 * Draft 7 is what the YAML language server speaks.
 */
export const gatewayJsonSchema = (): Record<string, unknown> => {
  const schema = z.toJSONSchema(gatewaySchema, { io: 'input', target: 'draft-7', unrepresentable: 'any' }) as Node
  annotate(schema, '')
  const { $schema, ...rest } = schema
  return { $schema, title: 'gateway.yaml of Surrogate', ...rest }
}

type Node = Record<string, unknown>

/** A variable of the environment may stand wherever a text does. */
const variable = '\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}'

const annotate = (node: Node, path: string): void => {
  const description = descriptions[path]
  if (description !== undefined) node['description'] = description
  if (typeof node['pattern'] === 'string') node['pattern'] = `(?:${node['pattern']})|${variable}`
  for (const [name, member] of Object.entries((node['properties'] ?? {}) as Record<string, Node>)) {
    annotate(member, path === '' ? name : `${path}.${name}`)
  }
  const { items, additionalProperties, anyOf } = node as {
    items?: Node
    additionalProperties?: unknown
    anyOf?: Node[]
  }
  if (items) annotate(items, `${path}[]`)
  if (typeof additionalProperties === 'object' && additionalProperties !== null) {
    annotate(additionalProperties as Node, `${path}.*`)
  }
  // One thing or a list of such: they are described once.
  for (const choice of anyOf ?? []) annotate((choice['items'] as Node | undefined) ?? choice, path)
}
