import {
  type ASTVisitor,
  type DefinitionNode,
  type DirectiveDefinitionNode,
  type DirectiveNode,
  type DocumentNode,
  type EnumValueDefinitionNode,
  type FieldDefinitionNode,
  type InputValueDefinitionNode,
  Kind,
  type NamedTypeNode,
  type OperationTypeDefinitionNode,
  parse,
  visit,
} from 'graphql/language'
import type { GraphQLSchema } from 'graphql/type'
import { buildASTSchema } from 'graphql/utilities'
import type { Meter } from '../base/meter.ts'

/** A type with what its extensions add to it. */
export interface SchemaType {
  /** As graphql-js begins the names of its kinds: `ObjectType`. */
  kind: string
  name: string
  /** There in every schema. */
  isBuiltIn: boolean
  directives: DirectiveNode[]
  interfaces: NamedTypeNode[]
  /** Of a union. */
  types: NamedTypeNode[]
  fields: (FieldDefinitionNode | InputValueDefinitionNode)[]
  values: EnumValueDefinitionNode[]
}

export interface SchemaParts {
  types: Map<string, SchemaType>
  directives: Map<string, DirectiveDefinitionNode>
  /** By `query`, `mutation`, `subscription`. */
  roots: Map<string, string>
  /** On the schema itself. */
  ownDirectives: DirectiveNode[]
}

/**
 * The document's definitions and extensions together, with what every schema has; `undefined` when they do not fit.
 * Other than in graphql-js, what is extended need not be defined.
 */
export const schemaParts = ({ definitions }: DocumentNode, { spend }: Meter): SchemaParts | undefined => {
  const types = new Map(builtInTypes.map((type) => [type.name, { ...type }]))
  const directives = new Map(builtInDirectives.map((one) => [one.name.value, one]))
  for (const one of definitions.filter(isTypeDefinition)) {
    if (types.has(one.name.value)) return undefined
    types.set(one.name.value, typeOf(one))
  }
  for (const one of definitions.filter(isTypeExtension)) {
    const extension = typeOf(one)
    const type = types.get(extension.name)
    if (type && type.kind !== extension.kind) return undefined
    spend(unitsForDefinition + (type ? sizeOf(type) : 0))
    types.set(extension.name, type ? extended(type, extension) : extension)
  }
  for (const one of definitions) {
    if (one.kind !== Kind.DIRECTIVE_DEFINITION) continue
    if (directives.has(one.name.value) && !redefinable.has(one.name.value)) return undefined
    directives.set(one.name.value, one)
  }
  const schemas = definitions.filter((one) => one.kind === Kind.SCHEMA_DEFINITION || one.kind === Kind.SCHEMA_EXTENSION)
  const ownDirectives = schemas.flatMap((one): readonly DirectiveNode[] => one.directives ?? [])
  const roots = rootsOf(definitions, types)
  return roots && { types, directives, roots, ownDirectives }
}

/** Directives that a schema may define again, since it may come from a server of another edition. */
const redefinable = new Set(['include', 'skip', 'deprecated', 'specifiedBy', 'defer', 'oneOf'])

const rootsOf = (
  definitions: readonly DefinitionNode[],
  types: ReadonlyMap<string, SchemaType>,
): Map<string, string> | undefined => {
  const defined = definitions.filter((one) => one.kind === Kind.SCHEMA_DEFINITION)
  if (defined.length > 1) return undefined
  const extensions = definitions.filter((one) => one.kind === Kind.SCHEMA_EXTENSION)
  const operationTypes: readonly OperationTypeDefinitionNode[] = [...defined, ...extensions].flatMap(
    (one) => one.operationTypes ?? [],
  )
  const roots = new Map(operationTypes.map(({ operation, type }): [string, string] => [operation, type.name.value]))
  if ([...operationTypes].some(({ type }) => !types.has(type.name.value))) return undefined
  if (defined.length === 0) {
    for (const [operation, name] of Object.entries(usualRoots)) {
      if (!roots.has(operation) && types.has(name)) roots.set(operation, name)
    }
  }
  return roots
}

const usualRoots = { query: 'Query', mutation: 'Mutation', subscription: 'Subscription' }

// --- types

interface TypeNode {
  kind: string
  name: { value: string }
  directives?: readonly DirectiveNode[]
  interfaces?: readonly NamedTypeNode[]
  types?: readonly NamedTypeNode[]
  fields?: readonly (FieldDefinitionNode | InputValueDefinitionNode)[]
  values?: readonly EnumValueDefinitionNode[]
}

const isTypeDefinition = (one: DefinitionNode): one is DefinitionNode & TypeNode =>
  one.kind.endsWith('TypeDefinition') && one.kind !== Kind.OPERATION_DEFINITION
const isTypeExtension = (one: DefinitionNode): one is DefinitionNode & TypeNode => one.kind.endsWith('TypeExtension')

const typeOf = ({ kind, name, directives, interfaces, types, fields, values }: TypeNode): SchemaType => ({
  kind: kind.replace(/(?:Definition|Extension)$/, ''),
  name: name.value,
  isBuiltIn: false,
  directives: [...(directives ?? [])],
  interfaces: [...(interfaces ?? [])],
  types: [...(types ?? [])],
  fields: [...(fields ?? [])],
  values: [...(values ?? [])],
})

const unitsForDefinition = 100

const sizeOf = ({ directives, interfaces, types, fields, values }: SchemaType): number =>
  directives.length + interfaces.length + types.length + fields.length + values.length

const extended = (type: SchemaType, extension: SchemaType): SchemaType => ({
  ...type,
  directives: [...type.directives, ...extension.directives],
  interfaces: [...type.interfaces, ...extension.interfaces],
  types: [...type.types, ...extension.types],
  fields: [...type.fields, ...extension.fields],
  values: [...type.values, ...extension.values],
})

const builtInType = (kind: string, name: string): SchemaType => ({
  ...typeOf({ kind, name: { value: name } }),
  isBuiltIn: true,
})

const builtInTypes = [
  ...['Int', 'Float', 'String', 'Boolean', 'ID'].map((name) => builtInType('ScalarType', name)),
  ...['__Schema', '__Type', '__Field', '__InputValue', '__EnumValue', '__Directive'].map((name) =>
    builtInType('ObjectType', name),
  ),
  ...['__TypeKind', '__DirectiveLocation'].map((name) => builtInType('EnumType', name)),
]

const builtInDirectives = parse(`
  directive @defer(if: Boolean = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
  directive @include(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
  directive @skip(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
  directive @deprecated(reason: String = "") on FIELD_DEFINITION | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION | ENUM_VALUE
  directive @specifiedBy(url: String!) on SCALAR
  directive @oneOf on INPUT_OBJECT
`).definitions as readonly DirectiveDefinitionNode[]

// --- for graphql-js

export const payForSchema = ({ types, directives }: SchemaParts, { spend }: Meter): void => {
  for (const type of types.values()) {
    spend(unitsForDefinition * (1 + sizeOf(type)))
    for (const field of type.fields)
      if ('arguments' in field) spend(unitsForDefinition * (field.arguments?.length ?? 0))
  }
  for (const { arguments: list } of directives.values()) spend(unitsForDefinition * (list?.length ?? 0))
}

/** The same as graphql-js has it, which need not check again what was checked. */
export const executableSchema = ({ types, directives, roots }: SchemaParts): GraphQLSchema => {
  const definitions = [...types.values()].filter(({ isBuiltIn }) => !isBuiltIn).map(definitionOf)
  const schema = {
    kind: Kind.SCHEMA_DEFINITION,
    operationTypes: [...roots].map(([operation, name]) => ({
      kind: Kind.OPERATION_TYPE_DEFINITION,
      operation,
      type: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: name } },
    })),
  }
  const document = { kind: Kind.DOCUMENT, definitions: [schema, ...directives.values(), ...definitions] }
  return buildASTSchema(visit(document as DocumentNode, onlyOneOf), { assumeValid: true })
}

const definitionOf = ({ kind, name, isBuiltIn: _, ...members }: SchemaType) => ({
  ...members,
  kind: `${kind}Definition`,
  name: { kind: Kind.NAME, value: name },
})

/**
 * The only directive that says what queries may hold. graphql-js fails at wrong arguments of others, which OPA lets
 * pass.
 */
const onlyOneOf: ASTVisitor = {
  [Kind.DIRECTIVE]: ({ name }: DirectiveNode) => (name.value === 'oneOf' ? undefined : null),
}
