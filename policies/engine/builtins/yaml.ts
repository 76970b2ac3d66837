import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseAllDocuments,
} from 'yaml'
import { jsonKey } from '../go/json.ts'
import { resolvePlain } from '../go/yaml/resolve.ts'
import { writeYaml } from '../go/yaml/write.ts'
import { asString, asValue, refuse, textOf } from '../values/operands.ts'
import { integerOf, numberOf, type RegoObject, type Value } from '../values/value.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

/** Aliases can name the same list over and over; what they stand for is counted. Values. */
const mostValues = 100_000

/** The first document of a text, as go-yaml reads it. Throws `BuiltinError`. */
const read = (text: string): Value => {
  // Every scalar as a text: what go-yaml takes them for differs from any schema that the library knows.
  const documents = parseAllDocuments(text, {
    schema: 'failsafe',
    uniqueKeys: false,
    logLevel: 'silent',
    // Go resolves `<<` itself.
    merge: false,
  })
  const document = Array.isArray(documents) ? documents[0] : undefined
  if (!document) return null
  if (document.errors.length > 0) refuse('not YAML')
  if (document.directives?.yaml.explicit && document.directives.yaml.version !== '1.1') refuse('not YAML 1.1')
  return readNode(document as Document<Node>)
}

const readNode = (document: Document<Node>): Value => {
  let values = 0
  const open = new Set<Node>()

  const nodeValue = (node: unknown): Value => {
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

  const aliasValue = (alias: Alias): Value => nodeValue(alias.resolve(document) ?? refuse('unknown anchor'))

  const mapValue = (pairs: readonly Pair[]): RegoObject => {
    const own: RegoObject = new Map()
    const merged: RegoObject = new Map()
    for (const { key, value } of pairs) {
      if (isScalar(key) && key.value === '<<' && (key.type === 'PLAIN' || key.tag === mergeTag)) {
        for (const [name, member] of mergedMembers(nodeValue(value))) if (!merged.has(name)) merged.set(name, member)
      } else own.set(keyText(nodeValue(key)), nodeValue(value))
    }
    return new Map([...merged, ...own])
  }

  return nodeValue(document.contents)
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

const isValid = (text: string): boolean => {
  try {
    read(text)
    return true
  } catch {
    return false
  }
}

export const yamlBuiltins: BuiltinTable = {
  'yaml.is_valid': builtin([asValue], (text) => typeof text === 'string' && isValid(text)),
  'yaml.marshal': builtin([asValue], (value) => writeYaml(withTextKeys(value))),
  'yaml.unmarshal': builtin([asString], read),
}
