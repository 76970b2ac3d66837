import {
  type ASTVisitor,
  type DirectiveDefinitionNode,
  type DocumentNode,
  type InterfaceTypeExtensionNode,
  isExecutableDefinitionNode,
  Kind,
  Lexer,
  Location,
  parse,
  Source,
  type Token,
  TokenKind,
  visit,
} from 'graphql/language'
import type { Meter } from '../base/meter.ts'
import { refuse } from '../values/operands.ts'

/**
 * Documents as OPA's parser takes them: the language of October 2021, and variables of fragments. What graphql-js takes
 * of later editions is refused, and a document may be empty. Refuses what is none.
 */
export const parseQuery = (text: string, meter: Meter): DocumentNode => parsed(text, { executable: true }, meter)

export const parseSchema = (text: string, meter: Meter): DocumentNode => parsed(text, { executable: false }, meter)

const unitsForCharacter = 4
const unitsForToken = 70

const parsed = (text: string, { executable }: { executable: boolean }, { spend }: Meter): DocumentNode => {
  spend(unitsForCharacter * text.length)
  // In texts and comments too.
  if (/[\x00-\x08\x0b\x0c\x0e-\x1f]/.test(text)) refuse('a control character')
  if (depthOf(text) > deepest) refuse('nested too deeply')
  const document = readable(text)
  if (document.definitions.some((one) => isExecutableDefinitionNode(one) !== executable))
    refuse('two kinds of documents')
  for (let token = document.loc?.startToken; token; token = token.next ?? undefined) {
    spend(unitsForToken)
    checkString(token, text)
  }
  return visit(document, executable ? laterInQueries : laterInSchemas)
}

/** Levels. The parser calls itself for each, and how many fit the stack is another number in each moment. */
const deepest = 1_000

/** Brackets in texts and comments count too: there they come in pairs, or are few. */
const depthOf = (text: string): number => {
  let depth = 0
  let most = 0
  for (const [bracket] of text.matchAll(/[{}[\]()]/g)) {
    if ('{[('.includes(bracket)) most = Math.max(most, ++depth)
    else depth--
  }
  return most
}

const readable = (text: string): DocumentNode => {
  try {
    const source = new Source(text)
    return (
      emptyDocument(source) ?? parse(source, { experimentalFragmentArguments: true, allowEmptySelectionSets: false })
    )
  } catch {
    return refuse('not a GraphQL document')
  }
}

/** At most comments. */
const emptyDocument = (source: Source): DocumentNode | undefined => {
  const lexer = new Lexer(source)
  const start = lexer.token
  const end = lexer.advance()
  if (end.kind !== TokenKind.EOF) return undefined
  return { kind: Kind.DOCUMENT, definitions: [], loc: new Location(start, end, source) }
}

const checkString = ({ kind, start, end }: Token, text: string): void => {
  if (kind !== TokenKind.STRING) return
  for (const [, variable] of text.slice(start, end).matchAll(/\\(?:(u\{)|.)/g)) {
    if (variable !== undefined) refuse('an escape of variable width')
  }
}

const later = (): never => refuse('a part of a later edition')

const laterInQueries: ASTVisitor = {
  enter(node) {
    if ('description' in node && node.description) later()
    if (node.kind === Kind.FRAGMENT_SPREAD && node.arguments) later()
  },
}

const laterInSchemas: ASTVisitor = {
  [Kind.DIRECTIVE_EXTENSION]: later,
  [Kind.INTERFACE_TYPE_EXTENSION]: ({ interfaces }: InterfaceTypeExtensionNode) => {
    if (interfaces) later()
  },
  [Kind.DIRECTIVE_DEFINITION]: ({ directives, locations }: DirectiveDefinitionNode) => {
    if (directives || locations.some(({ value }) => !directiveLocations.has(value))) later()
  },
}

const directiveLocations = new Set([
  ...['QUERY', 'MUTATION', 'SUBSCRIPTION', 'FIELD', 'FRAGMENT_DEFINITION', 'FRAGMENT_SPREAD', 'INLINE_FRAGMENT'],
  ...['VARIABLE_DEFINITION', 'SCHEMA', 'SCALAR', 'OBJECT', 'FIELD_DEFINITION', 'ARGUMENT_DEFINITION', 'INTERFACE'],
  ...['UNION', 'ENUM', 'ENUM_VALUE', 'INPUT_OBJECT', 'INPUT_FIELD_DEFINITION'],
])
