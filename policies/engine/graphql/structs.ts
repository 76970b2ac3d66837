import { asArray, asBoolean, asInteger, asObject, asString } from '../values/operands.ts'
import type { RegoObject, Value } from '../values/value.ts'

const comments = { Comment: 'CommentGroup' } as const
const around = { BeforeDescriptionComment: 'CommentGroup', AfterDescriptionComment: 'CommentGroup' } as const
const aroundAll = { ...around, EndOfDefinitionComment: 'CommentGroup' } as const

/**
 * OPA's AST of GraphQL is the JSON of the structs of the Go package `gqlparser`, without positions, and without members
 * that are null, an empty list or an empty object; texts, flags and numbers are there also when they are empty. What
 * only validation fills in is left out.
 */
const structs = {
  QueryDocument: { Operations: ['OperationDefinition'], Fragments: ['FragmentDefinition'], ...comments },
  OperationDefinition: {
    Operation: 'text',
    Name: 'text',
    VariableDefinitions: ['VariableDefinition'],
    Directives: ['Directive'],
    SelectionSet: ['Field'],
    ...comments,
  },
  VariableDefinition: {
    Variable: 'text',
    Type: 'Type',
    DefaultValue: 'Value',
    Directives: ['Directive'],
    Used: 'flag',
    ...comments,
  },
  FragmentDefinition: {
    Name: 'text',
    VariableDefinition: ['VariableDefinition'],
    TypeCondition: 'text',
    Directives: ['Directive'],
    SelectionSet: ['Field'],
    ...comments,
  },
  Field: {
    Alias: 'text',
    Name: 'text',
    Arguments: ['Argument'],
    Directives: ['Directive'],
    SelectionSet: ['Field'],
    ...comments,
  },
  FragmentSpread: { Name: 'text', Directives: ['Directive'], ...comments },
  InlineFragment: { TypeCondition: 'text', Directives: ['Directive'], SelectionSet: ['Field'], ...comments },
  Argument: { Name: 'text', Value: 'Value', ...comments },
  Value: { Raw: 'text', Children: ['ChildValue'], Kind: 'number', ExpectedTypeHasDefault: 'flag', ...comments },
  ChildValue: { Name: 'text', Value: 'Value', ...comments },
  Directive: { Name: 'text', Arguments: ['Argument'], Location: 'text' },
  Type: { NamedType: 'text', Elem: 'Type', NonNull: 'flag' },
  SchemaDocument: {
    Schema: ['SchemaDefinition'],
    SchemaExtension: ['SchemaDefinition'],
    Directives: ['DirectiveDefinition'],
    Definitions: ['Definition'],
    Extensions: ['Definition'],
    ...comments,
  },
  SchemaDefinition: {
    Description: 'text',
    Directives: ['Directive'],
    OperationTypes: ['OperationTypeDefinition'],
    ...aroundAll,
  },
  OperationTypeDefinition: { Operation: 'text', Type: 'text', ...comments },
  DirectiveDefinition: {
    Description: 'text',
    Name: 'text',
    Arguments: ['ArgumentDefinition'],
    Locations: ['text'],
    IsRepeatable: 'flag',
    ...around,
  },
  Definition: {
    Kind: 'text',
    Description: 'text',
    Name: 'text',
    Directives: ['Directive'],
    Interfaces: ['text'],
    Fields: ['FieldDefinition'],
    Types: ['text'],
    EnumValues: ['EnumValueDefinition'],
    BuiltIn: 'flag',
    ...aroundAll,
  },
  FieldDefinition: {
    Description: 'text',
    Name: 'text',
    Arguments: ['ArgumentDefinition'],
    DefaultValue: 'Value',
    Type: 'Type',
    Directives: ['Directive'],
    ...around,
  },
  ArgumentDefinition: {
    Description: 'text',
    Name: 'text',
    DefaultValue: 'Value',
    Type: 'Type',
    Directives: ['Directive'],
    ...around,
  },
  EnumValueDefinition: { Description: 'text', Name: 'text', Directives: ['Directive'], ...around },
  CommentGroup: { List: ['Comment'] },
  Comment: { Value: 'text' },
} as const satisfies Record<string, Record<string, MemberType>>

type Scalar = 'text' | 'flag' | 'number'
type MemberType = string | readonly [string]

export type StructName = keyof typeof structs

/** Members by name; those that are not given have the value that Go begins with. */
export const struct = (name: StructName, given: Readonly<Record<string, Value | undefined>>): RegoObject => {
  const members: RegoObject = new Map()
  for (const [member, type] of Object.entries(structs[name])) {
    const value = given[member] ?? (isScalar(type) ? scalars[type].zero : undefined)
    if (value !== undefined && !isEmpty(value)) members.set(member, value)
  }
  return members
}

const isEmpty = (value: Value): boolean =>
  (Array.isArray(value) && value.length === 0) || (value instanceof Map && value.size === 0)

const scalars: Record<Scalar, { zero: Value; read: (value: Value) => Value }> = {
  text: { zero: '', read: asString },
  flag: { zero: false, read: asBoolean },
  number: { zero: 0, read: (value) => Number(asInteger(value)) },
}

const isScalar = (type: MemberType): type is Scalar => typeof type === 'string' && Object.hasOwn(scalars, type)

/** These find their members by the exact name only; the others as Go's JSON does, also in other cases. */
const exact = new Set<StructName>(['OperationDefinition', 'FragmentDefinition', 'Field'])

/**
 * What a policy hands over as an AST, as Go reads the JSON of it: members of other names are nothing to it, those of a
 * wrong type refused.
 */
export const readStruct = (name: StructName, value: Value): RegoObject => {
  const types: Record<string, MemberType> = structs[name]
  const given: Record<string, Value> = {}
  for (const [key, member] of asObject(value)) {
    const found = Object.entries(types).find(([one]) => one === key || (!exact.has(name) && isSameName(one, key)))
    if (found && member !== null) given[found[0]] = readMember(found[1], member)
  }
  return struct(name, given)
}

const isSameName = (name: string, key: Value): boolean =>
  typeof key === 'string' && name.toLowerCase() === key.toLowerCase()

const readMember = (type: MemberType, value: Value): Value => {
  if (typeof type !== 'string') return asArray(value).map((item) => readMember(type[0], item))
  if (isScalar(type)) return scalars[type].read(value)
  return readStruct(type as StructName, value)
}
