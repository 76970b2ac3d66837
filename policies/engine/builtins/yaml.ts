import {
  type Alias,
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  type Node,
  type Pair,
  Parser,
  visit,
} from 'yaml'
import type { Meter } from '../base/meter.ts'
import { PolicyError } from '../base/policy-error.ts'
import { jsonKey } from '../go/json.ts'
import { resolvePlain } from '../go/yaml/resolve.ts'
import { writeYaml } from '../go/yaml/write.ts'
import { asString, asValue, refuse, textOf } from '../values/operands.ts'
import { integerOf, numberOf, type RegoObject, type Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** Aliases can name the same list over and over; what they stand for is counted. Values. */
const mostValues = 100_000

/** The first document of a text, as go-yaml reads it. Throws `BuiltinError`. */
const read = (text: string, meter: Meter): Value => {
  const document = firstDocument(text, meter)
  if (!document) return null
  if (document.errors.length > 0) refuse('not YAML')
  if (document.directives?.yaml.explicit && document.directives.yaml.version !== '1.1') refuse('not YAML 1.1')
  return readNode(document as Document<Node>, meter)
}

/**
 * Of a lexeme, of which a text has at most as many as characters, of one that begins or ends a flow collection, and of
 * a value that an alias may stand for.
 */
const unitsForLexeme = 400
const unitsForBracket = 1_000
const unitsForCharacter = 4
const unitsForValue = 30

const brackets: ReadonlySet<string> = new Set('[]{}')

const firstDocument = (text: string, { spend }: Meter): Document | undefined => {
  const parser = new Parser()
  function* tokens() {
    for (const lexeme of new Lexer().lex(text)) {
      spend((brackets.has(lexeme) ? unitsForBracket : unitsForLexeme) + unitsForCharacter * lexeme.length)
      yield* parser.next(lexeme)
    }
    yield* parser.end()
  }
  const composer = new Composer({
    // Every scalar as a text: what go-yaml takes them for differs from any schema that the library knows.
    schema: 'failsafe',
    uniqueKeys: false,
    logLevel: 'silent',
    // Go resolves `<<` itself.
    merge: false,
  })
  for (const document of composer.compose(tokens())) return document
  return undefined
}

const readNode = (document: Document<Node>, { spend }: Meter): Value => {
  const anchored = anchoredNodes(document)
  let values = 0
  const open = new Set<Node>()

  const nodeValue = (node: unknown): Value => {
    spend(unitsForValue)
    if (values++ > mostValues) refuse(`more than ${mostValues} values`)
    if (isAlias(node)) return aliasValue(node)
    if (isScalar(node)) return scalarValue(node.value, node.type, node.tag)
    if (!isMap(node) && !isSeq(node)) return null
    if (open.has(node)) refuse('an anchor contains itself')
    open.add(node)
    const value = isSeq(node) ? node.items.map(nodeValue) : mapValue(node.items)
    open.delete(node)
    return value
  }

  const aliasValue = (alias: Alias): Value => nodeValue(anchored.get(alias) ?? refuse('unknown anchor'))

  const mapValue = (pairs: readonly Pair[]): RegoObject => {
    const own: RegoObject = new Map()
    const merged: RegoObject = new Map()
    for (const { key, value } of pairs) {
      if (isScalar(key) && key.value === '<<' && (key.type === 'PLAIN' || key.tag === mergeTag)) {
        const members = mergedMembers(nodeValue(value))
        spend(unitsForValue * members.length)
        for (const [name, member] of members) if (!merged.has(name)) merged.set(name, member)
      } else own.set(keyText(nodeValue(key)), nodeValue(value))
    }
    return new Map([...merged, ...own])
  }

  return nodeValue(document.contents)
}

/** What each alias stands for: the last node before it with that anchor. */
const anchoredNodes = (document: Document<Node>): ReadonlyMap<Alias, Node> => {
  const latest = new Map<string, Node>()
  const found = new Map<Alias, Node>()
  visit(document, {
    Node(_key, node) {
      if (isAlias(node)) {
        const target = latest.get(node.source)
        if (target) found.set(node, target)
      } else if (node.anchor) latest.set(node.anchor, node)
    },
  })
  return found
}

const mergeTag = 'tag:yaml.org,2002:merge'

/** Of several maps the first one's members count. */
const mergedMembers = (value: Value): [Value, Value][] => {
  if (value instanceof Map) return [...value]
  if (!Array.isArray(value)) return refuse('only maps can be merged')
  return value.flatMap((item) => (item instanceof Map ? [...item] : refuse('only maps can be merged')))
}

/** Keys of JSON are texts. */
const keyText = (key: Value): string => {
  if (typeof key === 'string') return key
  return key === null || typeof key === 'object' ? refuse('such a key has no JSON') : String(key)
}

const scalarValue = (value: unknown, type: string | undefined, tag: string | undefined): Value => {
  if (value instanceof Uint8Array) return textOf(value)
  const text = value === null || value === undefined ? '' : String(value)
  const kind = tag?.startsWith('tag:yaml.org,2002:') ? tag.slice('tag:yaml.org,2002:'.length) : tag && '!'
  if (kind === 'str' || kind === '!') return text
  if (kind === undefined && type !== 'PLAIN' && type !== undefined) return text
  const resolved = resolvePlain(text)
  if (resolved === undefined)
    return kind === 'int' || kind === 'float' || kind === 'bool' ? refuse(`not a ${kind}`) : text
  if (typeof resolved === 'bigint') return integerOf(resolved)
  if (typeof resolved !== 'number') return resolved
  return Number.isFinite(resolved) ? numberOf(String(resolved)) : refuse('JSON has no such number')
}

/** Keys that are no texts become them, as in JSON. */
const withTextKeys = (value: Value): Value => {
  if (Array.isArray(value)) return value.map(withTextKeys)
  if (value instanceof Set) return new Set([...value].map(withTextKeys))
  if (!(value instanceof Map)) return value
  return new Map([...value].map(([key, member]) => [jsonKey(key), withTextKeys(member)]))
}

const isValid = (text: string, meter: Meter): boolean => {
  try {
    read(text, meter)
    return true
  } catch (error) {
    if (error instanceof PolicyError) throw error
    return false
  }
}

/** How much more than to read it: members are put in order, and each character looked at several times. */
const timesToWrite = 30

export const yamlBuiltins: BuiltinTable = {
  'yaml.is_valid': builtin([asValue], (text, meter) => typeof text === 'string' && isValid(text, meter)),
  'yaml.marshal': builtin([asValue], (value, meter) => {
    weigh(value, meter, timesToWrite)
    return writeYaml(withTextKeys(value), meter)
  }),
  'yaml.unmarshal': builtin([asString], read),
}
