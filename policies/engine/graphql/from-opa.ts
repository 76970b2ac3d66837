import {
  type ArgumentNode,
  type DirectiveDefinitionNode,
  type DirectiveNode,
  type DocumentNode,
  type FieldDefinitionNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type InputValueDefinitionNode,
  Kind,
  type ListTypeNode,
  type NamedTypeNode,
  type NameNode,
  type ObjectFieldNode,
  type OperationDefinitionNode,
  type OperationTypeDefinitionNode,
  type OperationTypeNode,
  type SchemaDefinitionNode,
  type SchemaExtensionNode,
  type SelectionSetNode,
  type TypeDefinitionNode,
  type TypeExtensionNode,
  type TypeNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql/language'
import { refuse } from '../values/operands.ts'
import type { RegoObject } from '../values/value.ts'
import { typeKinds, valueKinds } from './to-opa.ts'

/**
 * The document of an AST that a policy hands over, read by `readStruct`. Every selection is a field: OPA reads no
 * others.
 */
export const queryFromOpa = (value: RegoObject): DocumentNode => ({
  kind: Kind.DOCUMENT,
  definitions: [...list(value, 'Operations').map(operation), ...list(value, 'Fragments').map(fragment)],
})

export const schemaFromOpa = (value: RegoObject): DocumentNode => ({
  kind: Kind.DOCUMENT,
  definitions: [
    ...list(value, 'Schema').map(schemaDefinition),
    ...list(value, 'SchemaExtension').map(schemaExtension),
    ...list(value, 'Directives').map(directiveDefinition),
    ...list(value, 'Definitions').map((one) => typeDefinition(one, 'Definition') as TypeDefinitionNode),
    ...list(value, 'Extensions').map((one) => typeDefinition(one, 'Extension') as TypeExtensionNode),
  ],
})

const text = (value: RegoObject, member: string): string => value.get(member) as string
const texts = (value: RegoObject, member: string): string[] => (value.get(member) ?? []) as string[]
const list = (value: RegoObject, member: string): RegoObject[] => (value.get(member) ?? []) as RegoObject[]
const part = (value: RegoObject, member: string): RegoObject | undefined => value.get(member) as RegoObject | undefined

const nameOf = (value: string): NameNode => ({ kind: Kind.NAME, value })
const name = (value: RegoObject): NameNode => nameOf(text(value, 'Name'))
const named = (value: string): NamedTypeNode => ({ kind: Kind.NAMED_TYPE, name: nameOf(value) })

// --- queries

const operation = (value: RegoObject): OperationDefinitionNode => ({
  kind: Kind.OPERATION_DEFINITION,
  // Where none is said it is a query.
  operation: (text(value, 'Operation') || 'query') as OperationTypeNode,
  name: text(value, 'Name') === '' ? undefined : name(value),
  variableDefinitions: list(value, 'VariableDefinitions').map(variable),
  directives: directives(value),
  selectionSet: selectionSet(value),
})

const fragment = (value: RegoObject): FragmentDefinitionNode => ({
  kind: Kind.FRAGMENT_DEFINITION,
  name: name(value),
  variableDefinitions: list(value, 'VariableDefinition').map(variable),
  typeCondition: named(text(value, 'TypeCondition')),
  directives: directives(value),
  selectionSet: selectionSet(value),
})

const variable = (value: RegoObject): VariableDefinitionNode => ({
  kind: Kind.VARIABLE_DEFINITION,
  variable: { kind: Kind.VARIABLE, name: nameOf(text(value, 'Variable')) },
  type: typeReference(part(value, 'Type')),
  defaultValue: defaultValue(value),
  directives: directives(value),
})

const defaultValue = (value: RegoObject): never | undefined => {
  const given = part(value, 'DefaultValue')
  return given && (literal(given) as never)
}

const selectionSet = (value: RegoObject): SelectionSetNode => ({
  kind: Kind.SELECTION_SET,
  selections: list(value, 'SelectionSet').map(field),
})

const field = (value: RegoObject): FieldNode => ({
  kind: Kind.FIELD,
  alias: text(value, 'Alias') === '' ? undefined : nameOf(text(value, 'Alias')),
  name: name(value),
  arguments: list(value, 'Arguments').map(argument),
  directives: directives(value),
  selectionSet: value.has('SelectionSet') ? selectionSet(value) : undefined,
})

const argument = (value: RegoObject): ArgumentNode => ({
  kind: Kind.ARGUMENT,
  name: name(value),
  value: literal(part(value, 'Value')),
})

const directives = (value: RegoObject): never[] =>
  list(value, 'Directives').map(
    (one): DirectiveNode => ({
      kind: Kind.DIRECTIVE,
      name: name(one),
      arguments: list(one, 'Arguments').map(argument),
    }),
  ) as never[]

const literal = (value: RegoObject | undefined): ValueNode => {
  if (!value) return refuse('a value is missing')
  const raw = text(value, 'Raw')
  const children = list(value, 'Children')
  const kind = valueKinds[value.get('Kind') as number]
  switch (kind) {
    case undefined:
      return refuse('an unknown kind of value')
    case Kind.VARIABLE:
      return { kind, name: nameOf(raw) }
    case Kind.NULL:
      return { kind }
    case Kind.BOOLEAN:
      return { kind, value: raw === 'true' }
    case 'BlockString':
      return { kind: Kind.STRING, value: raw, block: true }
    case Kind.LIST:
      return { kind, values: children.map((one) => literal(part(one, 'Value'))) }
    case Kind.OBJECT:
      return { kind, fields: children.map(objectField) }
    default:
      return { kind, value: raw }
  }
}

const objectField = (value: RegoObject): ObjectFieldNode => ({
  kind: Kind.OBJECT_FIELD,
  name: name(value),
  value: literal(part(value, 'Value')),
})

const typeReference = (value: RegoObject | undefined): TypeNode => {
  if (!value) return refuse('a type is missing')
  const element = part(value, 'Elem')
  const type: ListTypeNode | NamedTypeNode = element
    ? { kind: Kind.LIST_TYPE, type: typeReference(element) }
    : named(text(value, 'NamedType'))
  return value.get('NonNull') === true ? { kind: Kind.NON_NULL_TYPE, type } : type
}

// --- schemas

const schemaDefinition = (value: RegoObject): SchemaDefinitionNode => ({
  kind: Kind.SCHEMA_DEFINITION,
  directives: directives(value),
  operationTypes: list(value, 'OperationTypes').map(operationType),
})

const schemaExtension = (value: RegoObject): SchemaExtensionNode => ({
  ...schemaDefinition(value),
  kind: Kind.SCHEMA_EXTENSION,
})

const operationType = (value: RegoObject): OperationTypeDefinitionNode => ({
  kind: Kind.OPERATION_TYPE_DEFINITION,
  operation: text(value, 'Operation') as OperationTypeNode,
  type: named(text(value, 'Type')),
})

const directiveDefinition = (value: RegoObject): DirectiveDefinitionNode => ({
  kind: Kind.DIRECTIVE_DEFINITION,
  name: name(value),
  arguments: list(value, 'Arguments').map(inputValue),
  repeatable: value.get('IsRepeatable') === true,
  locations: texts(value, 'Locations').map(nameOf),
})

const kindNames = new Map(Object.entries(typeKinds).map(([ours, theirs]) => [theirs, ours]))

/** May hold members that its kind does not have: readers look at the kind first. */
const typeDefinition = (value: RegoObject, as: 'Definition' | 'Extension'): unknown => {
  const kind = kindNames.get(text(value, 'Kind')) ?? refuse('an unknown kind of type')
  return {
    kind: kind + as,
    name: name(value),
    directives: directives(value),
    interfaces: texts(value, 'Interfaces').map(named),
    types: texts(value, 'Types').map(named),
    fields: list(value, 'Fields').map((one) => (kind === 'InputObjectType' ? inputValue(one) : fieldDefinition(one))),
    values: list(value, 'EnumValues').map((one) => ({
      kind: Kind.ENUM_VALUE_DEFINITION,
      name: name(one),
      directives: directives(one),
    })),
  }
}

const fieldDefinition = (value: RegoObject): FieldDefinitionNode => ({
  kind: Kind.FIELD_DEFINITION,
  name: name(value),
  arguments: list(value, 'Arguments').map(inputValue),
  type: typeReference(part(value, 'Type')),
  directives: directives(value),
})

const inputValue = (value: RegoObject): InputValueDefinitionNode => ({
  kind: Kind.INPUT_VALUE_DEFINITION,
  name: name(value),
  type: typeReference(part(value, 'Type')),
  defaultValue: defaultValue(value),
  directives: directives(value),
})
