import {
  type ArgumentNode,
  type DirectiveDefinitionNode,
  type DirectiveNode,
  type DocumentNode,
  type EnumValueDefinitionNode,
  type FieldDefinitionNode,
  type FragmentDefinitionNode,
  type InputValueDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type OperationTypeDefinitionNode,
  type SchemaDefinitionNode,
  type SchemaExtensionNode,
  type SelectionNode,
  type StringValueNode,
  type Token,
  TokenKind,
  type TypeDefinitionNode,
  type TypeExtensionNode,
  type TypeNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql/language'
import type { RegoObject, Value } from '../values/value.ts'
import { struct } from './structs.ts'

/** OPA's AST of a document that was parsed with its locations. See `structs.ts`. */
export const queryToOpa = ({ definitions }: DocumentNode): RegoObject =>
  struct('QueryDocument', {
    Operations: definitions.flatMap((one) => (one.kind === Kind.OPERATION_DEFINITION ? [operation(one)] : [])),
    Fragments: definitions.flatMap((one) => (one.kind === Kind.FRAGMENT_DEFINITION ? [fragment(one)] : [])),
  })

export const schemaToOpa = ({ definitions, loc }: DocumentNode): RegoObject => {
  const schema: Value[] = []
  const schemaExtensions: Value[] = []
  const directiveDefinitions: Value[] = []
  const types: Value[] = []
  const extensions: Value[] = []
  for (const one of definitions) {
    if (one.kind === Kind.SCHEMA_DEFINITION) schema.push(schemaDefinition(one))
    else if (one.kind === Kind.SCHEMA_EXTENSION) schemaExtensions.push(schemaDefinition(one))
    else if (one.kind === Kind.DIRECTIVE_DEFINITION) directiveDefinitions.push(directiveDefinition(one))
    else if (one.kind.endsWith('Extension')) extensions.push(typeDefinition(one as TypeExtensionNode))
    else types.push(typeDefinition(one as TypeDefinitionNode))
  }
  return struct('SchemaDocument', {
    Schema: schema,
    SchemaExtension: schemaExtensions,
    Directives: directiveDefinitions,
    Definitions: types,
    Extensions: extensions,
    Comment: commentsBefore(loc?.endToken),
  })
}

// --- comments

interface Located {
  readonly loc?: { readonly startToken: Token; readonly endToken: Token } | undefined
}

/** A comment belongs to the token behind it. */
const commentsBefore = (token: Token | undefined): Value | undefined => {
  const list: Value[] = []
  for (let one = token?.prev; one?.kind === TokenKind.COMMENT; one = one.prev) {
    list.push(struct('Comment', { Value: `#${one.value}` }))
  }
  return struct('CommentGroup', { List: list.reverse() })
}

const commentsOf = ({ loc }: Located): Value | undefined => commentsBefore(loc?.startToken)

const nextToken = (token: Token | undefined): Token | undefined => {
  let next = token?.next
  while (next?.kind === TokenKind.COMMENT) next = next.next
  return next ?? undefined
}

/** `first`: the token behind the description, if there is one. */
const described = (description: StringValueNode | undefined, first: Token | undefined) => ({
  Description: description?.value ?? '',
  BeforeDescriptionComment: description && commentsOf(description),
  AfterDescriptionComment: commentsBefore(first),
})

/** Of members of definitions: the parser forgets the comments before a description that is empty. */
const describedMember = ({ description, name }: { description?: StringValueNode | undefined; name: Located }) => {
  const found = described(description, name.loc?.startToken)
  return description?.value === '' ? { ...found, BeforeDescriptionComment: undefined } : found
}

const describedDefinition = (node: Located & { description?: StringValueNode | undefined }) => {
  const { description, loc } = node
  return described(description, description ? nextToken(description.loc?.endToken) : loc?.startToken)
}

// --- queries

const operation = (node: OperationDefinitionNode): Value =>
  struct('OperationDefinition', {
    Operation: node.operation,
    Name: node.name?.value,
    VariableDefinitions: node.variableDefinitions?.map(variable),
    Directives: directives(node),
    SelectionSet: node.selectionSet.selections.map(selection),
    // Those before a query that is only braces are lost.
    Comment: node.loc?.startToken.kind === TokenKind.NAME ? commentsOf(node) : undefined,
  })

const fragment = (node: FragmentDefinitionNode): Value =>
  struct('FragmentDefinition', {
    Name: node.name.value,
    VariableDefinition: node.variableDefinitions?.map(variable),
    TypeCondition: node.typeCondition.name.value,
    Directives: directives(node),
    SelectionSet: node.selectionSet.selections.map(selection),
    Comment: commentsOf(node),
  })

const variable = (node: VariableDefinitionNode): Value =>
  struct('VariableDefinition', {
    Variable: node.variable.name.value,
    Type: typeReference(node.type),
    DefaultValue: node.defaultValue && literal(node.defaultValue),
    Directives: directives(node),
    Comment: commentsOf(node),
  })

const selection = (node: SelectionNode): Value => {
  const common = { Directives: directives(node), Comment: commentsOf(node) }
  if (node.kind === Kind.FRAGMENT_SPREAD) return struct('FragmentSpread', { ...common, Name: node.name.value })
  const selections = node.selectionSet?.selections.map(selection)
  if (node.kind === Kind.INLINE_FRAGMENT) {
    const condition = node.typeCondition?.name.value
    return struct('InlineFragment', { ...common, TypeCondition: condition, SelectionSet: selections })
  }
  return struct('Field', {
    ...common,
    Alias: (node.alias ?? node.name).value,
    Name: node.name.value,
    Arguments: node.arguments?.map(argument),
    SelectionSet: selections,
  })
}

const argument = (node: ArgumentNode): Value =>
  struct('Argument', { Name: node.name.value, Value: literal(node.value), Comment: commentsOf(node) })

const directives = ({ directives: list }: { directives?: readonly DirectiveNode[] | undefined }): Value | undefined =>
  list?.map((node) => struct('Directive', { Name: node.name.value, Arguments: node.arguments?.map(argument) }))

/** Kinds of values by OPA's numbers for them. */
export const valueKinds = [
  Kind.VARIABLE,
  Kind.INT,
  Kind.FLOAT,
  Kind.STRING,
  'BlockString',
  Kind.BOOLEAN,
  Kind.NULL,
  Kind.ENUM,
  Kind.LIST,
  Kind.OBJECT,
] as const

const literal = (node: ValueNode): Value => {
  const kind = node.kind === Kind.STRING && node.block ? 'BlockString' : node.kind
  return struct('Value', { Kind: valueKinds.indexOf(kind), ...literalMembers(node) })
}

const literalMembers = (node: ValueNode): Record<string, Value | undefined> => {
  if (node.kind === Kind.VARIABLE) return { Raw: node.name.value }
  if (node.kind === Kind.NULL) return { Raw: 'null' }
  if (node.kind === Kind.LIST) {
    const children = node.values.map((one) => struct('ChildValue', { Value: literal(one) }))
    return { Children: children, Comment: commentsOf(node) }
  }
  if (node.kind === Kind.OBJECT) {
    const children = node.fields.map((one) =>
      struct('ChildValue', { Name: one.name.value, Value: literal(one.value), Comment: commentsOf(one) }),
    )
    return { Children: children, Comment: commentsOf(node) }
  }
  return { Raw: String(node.value) }
}

const typeReference = (node: TypeNode): Value => {
  const nonNull = node.kind === Kind.NON_NULL_TYPE
  const type = nonNull ? node.type : node
  if (type.kind === Kind.LIST_TYPE) return struct('Type', { Elem: typeReference(type.type), NonNull: nonNull })
  return struct('Type', { NamedType: type.name.value, NonNull: nonNull })
}

// --- schemas

const schemaDefinition = (node: SchemaDefinitionNode | SchemaExtensionNode): Value =>
  struct('SchemaDefinition', {
    ...describedDefinition(node),
    Directives: directives(node),
    OperationTypes: node.operationTypes?.map(operationType),
    EndOfDefinitionComment: node.operationTypes && commentsBefore(node.loc?.endToken),
  })

const operationType = (node: OperationTypeDefinitionNode): Value =>
  struct('OperationTypeDefinition', {
    Operation: node.operation,
    Type: node.type.name.value,
    Comment: commentsOf(node),
  })

const directiveDefinition = (node: DirectiveDefinitionNode): Value =>
  struct('DirectiveDefinition', {
    ...describedDefinition(node),
    Name: node.name.value,
    Arguments: node.arguments?.map((one) => inputValue(one, 'ArgumentDefinition')),
    Locations: node.locations.map(({ value }) => value),
    IsRepeatable: node.repeatable,
  })

/** OPA's names for the kinds of types, by how graphql-js begins its own. */
export const typeKinds: Readonly<Record<string, string>> = {
  ScalarType: 'SCALAR',
  ObjectType: 'OBJECT',
  InterfaceType: 'INTERFACE',
  UnionType: 'UNION',
  EnumType: 'ENUM',
  InputObjectType: 'INPUT_OBJECT',
}

const typeDefinition = (node: TypeDefinitionNode | TypeExtensionNode): Value => {
  const named = (list: readonly { name: { value: string } }[] | undefined) => list?.map(({ name }) => name.value)
  const fields = 'fields' in node ? node.fields : undefined
  const values = 'values' in node ? node.values : undefined
  const hasBlock = fields !== undefined || values !== undefined
  return struct('Definition', {
    ...describedDefinition(node),
    Kind: typeKinds[node.kind.replace(/(?:Definition|Extension)$/, '')],
    Name: node.name.value,
    Directives: directives(node),
    Interfaces: 'interfaces' in node ? named(node.interfaces) : undefined,
    Types: 'types' in node ? named(node.types) : undefined,
    Fields: fields?.map((one) =>
      one.kind === Kind.FIELD_DEFINITION ? fieldDefinition(one) : inputValue(one, 'FieldDefinition'),
    ),
    EnumValues: values?.map(enumValue),
    EndOfDefinitionComment: hasBlock ? commentsBefore(node.loc?.endToken) : undefined,
  })
}

const fieldDefinition = (node: FieldDefinitionNode): Value =>
  struct('FieldDefinition', {
    ...describedMember(node),
    Name: node.name.value,
    Arguments: node.arguments?.map((one) => inputValue(one, 'ArgumentDefinition')),
    Type: typeReference(node.type),
    Directives: directives(node),
  })

const inputValue = (node: InputValueDefinitionNode, as: 'ArgumentDefinition' | 'FieldDefinition'): Value =>
  struct(as, {
    ...describedMember(node),
    Name: node.name.value,
    DefaultValue: node.defaultValue && literal(node.defaultValue),
    Type: typeReference(node.type),
    Directives: directives(node),
  })

const enumValue = (node: EnumValueDefinitionNode): Value =>
  struct('EnumValueDefinition', {
    ...describedMember(node),
    Name: node.name.value,
    Directives: directives(node),
  })
