import {
  type DirectiveDefinitionNode,
  type DirectiveNode,
  type FieldDefinitionNode,
  type InputValueDefinitionNode,
  Kind,
  type NamedTypeNode,
  type NameNode,
  type TypeNode,
} from 'graphql/language'
import type { Meter } from '../base/meter.ts'
import type { SchemaParts, SchemaType } from './schema.ts'

/** Whether the schema is valid by the rules that OPA applies, which are fewer than those of graphql-js. */
export const isValidSchema = (schema: SchemaParts, { spend }: Meter): boolean => isValid({ ...schema, spend })

type Metered = SchemaParts & Pick<Meter, 'spend'>

const unitsForPart = 50

const isValid = (parts: Metered): boolean =>
  [...parts.types.values()].every((type) => isValidType(type, parts)) &&
  areValidDirectives(parts.ownDirectives, 'SCHEMA', parts) &&
  [...parts.directives.values()].every(
    (one) => isName(one.name.value) && areValidArguments(one.arguments, parts, one.name.value),
  )

type Field = FieldDefinitionNode | InputValueDefinitionNode

const isName = (name: string): boolean => !name.startsWith('__')

const isValidType = (type: SchemaType, parts: Metered): boolean =>
  (type.isBuiltIn || (isName(type.name) && hasContents(type))) &&
  type.fields.every((field) => isValidField(field, type, parts)) &&
  [type.fields, type.types, type.values].every(areDistinct) &&
  type.values.every(({ directives }) => areValidDirectives(directives, 'ENUM_VALUE', parts)) &&
  type.types.every(({ name }) => parts.types.get(name.value)?.kind === 'ObjectType') &&
  type.interfaces.every(({ name }) => implementsInterface(type, name.value, parts)) &&
  areValidDirectives(type.directives, locations[type.kind]!, parts)

const areDistinct = (list: readonly { name: NameNode }[]): boolean =>
  new Set(list.map(({ name }) => name.value)).size === list.length

const locations: Readonly<Record<string, string>> = {
  ScalarType: 'SCALAR',
  ObjectType: 'OBJECT',
  InterfaceType: 'INTERFACE',
  UnionType: 'UNION',
  EnumType: 'ENUM',
  InputObjectType: 'INPUT_OBJECT',
}

const noValues = new Set(['true', 'false', 'null'])

const hasContents = ({ kind, fields, values }: SchemaType): boolean => {
  if (kind === 'EnumType') return values.length > 0 && values.every(({ name }) => !noValues.has(name.value))
  return !['ObjectType', 'InterfaceType', 'InputObjectType'].includes(kind) || fields.length > 0
}

const outputKinds = new Set(['ScalarType', 'ObjectType', 'InterfaceType', 'UnionType', 'EnumType'])
const inputKinds = new Set(['ScalarType', 'EnumType', 'InputObjectType'])

const isValidField = (field: Field, { kind }: SchemaType, parts: Metered): boolean => {
  parts.spend(unitsForPart)
  const isInput = kind === 'InputObjectType'
  const type = parts.types.get(namedType(field.type))
  return (
    isName(field.name.value) &&
    type !== undefined &&
    (isInput ? inputKinds : outputKinds).has(type.kind) &&
    areValidArguments(argumentsOf(field), parts) &&
    areValidDirectives(field.directives, isInput ? 'INPUT_FIELD_DEFINITION' : 'FIELD_DEFINITION', parts)
  )
}

const argumentsOf = (field: Field): readonly InputValueDefinitionNode[] =>
  field.kind === Kind.FIELD_DEFINITION ? (field.arguments ?? []) : []

/** `ofDirective`: whose arguments they are, which may not use it. */
const areValidArguments = (
  list: readonly InputValueDefinitionNode[] | undefined,
  parts: Metered,
  ofDirective?: string,
): boolean =>
  (list ?? []).every(
    ({ name, type, directives }) =>
      isName(name.value) &&
      inputKinds.has(parts.types.get(namedType(type))?.kind ?? '') &&
      areValidDirectives(directives, 'ARGUMENT_DEFINITION', parts) &&
      !directives?.some((one) => one.name.value === ofDirective),
  )

const areValidDirectives = (
  list: readonly DirectiveNode[] | undefined,
  location: string,
  { directives, spend }: Metered,
): boolean =>
  (list ?? []).every((used) => {
    spend(unitsForPart)
    const { value } = used.name
    const found = isName(value) ? directives.get(value) : undefined
    return found?.locations.some((one) => one.value === location) === true && fitsArguments(used, found, spend)
  })

/** Their types are not looked at. */
const fitsArguments = (
  used: DirectiveNode,
  { arguments: wanted = [] }: DirectiveDefinitionNode,
  spend: Meter['spend'],
): boolean => {
  const given = used.arguments ?? []
  spend(2 * given.length * wanted.length)
  const isGiven = (name: string) => given.some((one) => one.name.value === name && one.value.kind !== Kind.NULL)
  return (
    given.every(({ name }) => wanted.some((one) => one.name.value === name.value)) &&
    wanted.every(
      ({ name, type, defaultValue }) => type.kind !== Kind.NON_NULL_TYPE || defaultValue || isGiven(name.value),
    )
  )
}

// --- interfaces

const implementsInterface = (type: SchemaType, name: string, parts: Metered): boolean => {
  const wanted = parts.types.get(name)
  parts.spend(unitsForPart * (1 + type.interfaces.length))
  if (wanted?.kind !== 'InterfaceType') return false
  const own = new Set(type.interfaces.map((one) => one.name.value))
  return (
    wanted.fields.every((field) => hasField(type, field, parts)) &&
    wanted.interfaces.every((one) => own.has(one.name.value))
  )
}

const hasField = ({ fields }: SchemaType, wanted: Field, parts: Metered): boolean => {
  parts.spend(unitsForPart + fields.length)
  const found = fields.find(({ name }) => name.value === wanted.name.value)
  if (!found || !isCovariant(wanted.type, found.type, parts)) return false
  const [own, required] = [argumentsOf(found), argumentsOf(wanted)]
  parts.spend(2 * own.length * required.length)
  const named = (list: readonly InputValueDefinitionNode[], name: string) => list.find((one) => one.name.value === name)
  return (
    required.every(({ name, type }) => isCompatible(type, named(own, name.value)?.type)) &&
    own.every(
      ({ name, type, defaultValue }) =>
        named(required, name.value) || type.kind !== Kind.NON_NULL_TYPE || defaultValue !== undefined,
    )
  )
}

const namedType = (type: TypeNode): string => (type.kind === Kind.NAMED_TYPE ? type.name.value : namedType(type.type))

const nullable = (type: TypeNode) => (type.kind === Kind.NON_NULL_TYPE ? type.type : type)

/** Whether a field of the one type may stand for a field of the other. */
const isCovariant = (wanted: TypeNode, found: TypeNode, parts: Metered): boolean => {
  if (wanted.kind === Kind.NON_NULL_TYPE && found.kind !== Kind.NON_NULL_TYPE) return false
  const [outer, inner] = [nullable(wanted), nullable(found)]
  if (outer.kind === Kind.LIST_TYPE) return inner.kind === Kind.LIST_TYPE && isCovariant(outer.type, inner.type, parts)
  return inner.kind === Kind.NAMED_TYPE && isKindOf(inner.name.value, outer.name.value, parts)
}

const isKindOf = (name: string, wanted: string, { types, spend }: Metered): boolean => {
  spend((types.get(name)?.interfaces.length ?? 0) + (types.get(wanted)?.types.length ?? 0))
  const isListed = (list: readonly NamedTypeNode[] | undefined, one: string) =>
    list?.some((type) => type.name.value === one) === true
  return name === wanted || isListed(types.get(name)?.interfaces, wanted) || isListed(types.get(wanted)?.types, name)
}

/** Whether an argument of the one type takes whatever one of the other does. */
const isCompatible = (wanted: TypeNode, found: TypeNode | undefined): boolean => {
  if (!found || (found.kind === Kind.NON_NULL_TYPE && wanted.kind !== Kind.NON_NULL_TYPE)) return false
  const [outer, inner] = [nullable(wanted), nullable(found)]
  if (outer.kind === Kind.LIST_TYPE) return inner.kind === Kind.LIST_TYPE && isCompatible(outer.type, inner.type)
  return inner.kind === Kind.NAMED_TYPE && inner.name.value === outer.name.value
}
