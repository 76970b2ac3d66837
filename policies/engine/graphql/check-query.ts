import { GraphQLError } from 'graphql/error'
import { type DocumentNode, type FloatValueNode, type IntValueNode, Kind } from 'graphql/language'
import { type GraphQLSchema, getNamedType, isSpecifiedScalarType } from 'graphql/type'
import {
  FieldsOnCorrectTypeRule,
  FragmentsOnCompositeTypesRule,
  KnownArgumentNamesRule,
  KnownDirectivesRule,
  KnownFragmentNamesRule,
  KnownOperationTypesRule,
  KnownTypeNamesRule,
  LoneAnonymousOperationRule,
  MaxIntrospectionDepthRule,
  NoFragmentCyclesRule,
  NoUndefinedVariablesRule,
  NoUnusedFragmentsRule,
  NoUnusedVariablesRule,
  OverlappingFieldsCanBeMergedRule,
  PossibleFragmentSpreadsRule,
  ProvidedRequiredArgumentsRule,
  ScalarLeafsRule,
  SingleFieldSubscriptionsRule,
  UniqueArgumentNamesRule,
  UniqueDirectivesPerLocationRule,
  UniqueFragmentNamesRule,
  UniqueInputFieldNamesRule,
  UniqueOperationNamesRule,
  UniqueVariableNamesRule,
  type ValidationRule,
  ValuesOfCorrectTypeRule,
  VariablesAreInputTypesRule,
  VariablesInAllowedPositionRule,
  validate,
} from 'graphql/validation'

/** OPA reads integers as 64 bits and floats as doubles, also where graphql-js takes any: in an ID or a Float. */
const NumbersInRangeRule: ValidationRule = (context) => {
  const check = (node: IntValueNode | FloatValueNode): void => {
    const type = context.getInputType()
    if (!type || !isSpecifiedScalarType(getNamedType(type))) return
    const isInRange =
      node.kind === Kind.INT
        ? BigInt.asIntN(64, BigInt(node.value)) === BigInt(node.value)
        : Number.isFinite(+node.value)
    if (!isInRange) context.reportError(new GraphQLError('A number is out of range.'))
  }
  return { IntValue: check, FloatValue: check }
}

/** Those that OPA applies too; graphql-js has more for parts of later editions. */
const rules = [
  FieldsOnCorrectTypeRule,
  FragmentsOnCompositeTypesRule,
  KnownArgumentNamesRule,
  KnownDirectivesRule,
  KnownFragmentNamesRule,
  KnownOperationTypesRule,
  KnownTypeNamesRule,
  LoneAnonymousOperationRule,
  MaxIntrospectionDepthRule,
  NoFragmentCyclesRule,
  NoUndefinedVariablesRule,
  NoUnusedFragmentsRule,
  NoUnusedVariablesRule,
  NumbersInRangeRule,
  OverlappingFieldsCanBeMergedRule,
  PossibleFragmentSpreadsRule,
  ProvidedRequiredArgumentsRule,
  ScalarLeafsRule,
  SingleFieldSubscriptionsRule,
  UniqueArgumentNamesRule,
  UniqueDirectivesPerLocationRule,
  UniqueFragmentNamesRule,
  UniqueInputFieldNamesRule,
  UniqueOperationNamesRule,
  UniqueVariableNamesRule,
  ValuesOfCorrectTypeRule,
  VariablesAreInputTypesRule,
  VariablesInAllowedPositionRule,
]

/** Whether the query is valid for the schema (GraphQL, October 2021, §5). */
export const isValidQuery = (schema: GraphQLSchema, query: DocumentNode): boolean =>
  validate(schema, query, rules, { maxErrors: 1, hideSuggestions: true }).length === 0
