import { z } from 'zod'
import { gatewayFile } from './settings/file.ts'

/** A part of a JSON Schema, as far as the settings need it. */
export interface SchemaNode {
  description?: string
  default?: unknown
  pattern?: string
  properties?: Record<string, SchemaNode>
  items?: SchemaNode
  additionalProperties?: SchemaNode | boolean
  anyOf?: SchemaNode[]
}

/**
 * The JSON Schema of `gateway.yaml`, for editors: completion, explanations, and what is wrong while it is written. It
 * is made from the rows that read the file, so the two cannot differ; `gateway check` finds more, since a schema knows
 * no relations. Draft 7 is what the YAML language server speaks.
 */
export const gatewayJsonSchema = (): SchemaNode => {
  const schema = z.toJSONSchema(gatewayFile, { io: 'input', target: 'draft-7', unrepresentable: 'any' })
  const { $schema, ...rest } = schema as SchemaNode & { $schema?: string }
  allowVariables(rest)
  return { $schema, title: 'gateway.yaml of Surrogate', ...rest } as SchemaNode
}

/** The node, the items of a list, and each form of a choice: wherever members of a setting may be described. */
export const formsOf = (node: SchemaNode): SchemaNode[] => [
  node,
  ...(node.items ? formsOf(node.items) : []),
  ...(node.anyOf ?? []).flatMap(formsOf),
]

/** The names that may stand at a path of the file. */
export const namesAt = (path: readonly PropertyKey[]): string[] => {
  let nodes = formsOf(gatewayJsonSchema())
  for (const step of path.filter((one) => typeof one === 'string')) {
    nodes = nodes.flatMap(({ properties, additionalProperties }) => {
      const member = properties?.[step] ?? additionalProperties
      return typeof member === 'object' ? formsOf(member) : []
    })
  }
  return nodes.flatMap(({ properties }) => Object.keys(properties ?? {}))
}

/** A variable of the environment may stand wherever a text does. */
const allowVariables = (node: SchemaNode): void => {
  if (node.pattern !== undefined) node.pattern = `(?:${node.pattern})|\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}`
  const { properties = {}, items, additionalProperties, anyOf = [] } = node
  const deeper = [...Object.values(properties), items, additionalProperties, ...anyOf]
  for (const child of deeper) if (typeof child === 'object') allowVariables(child)
}
