import { asBoolean, asItems, asObject, asString, refuse, textOf } from '../values/operands.ts'
import { isNumber, numberText, type RegoObject, sorted, sortedEntries, type Value } from '../values/values.ts'
import type { HostBuiltin } from './index.ts'

// --- JSON as Go writes it

/** Go's encoder escapes what could end a script in HTML. */
const jsonString = (text: string): string =>
  JSON.stringify(text).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** In the order of their keys as texts: those that are no texts are the JSON of them, and of two that are the same the last one counts. */
const jsonMembers = (object: RegoObject): [string, Value][] => {
  const members = sortedEntries(object).map(([key, member]) => [typeof key === 'string' ? key : goJson(key), member])
  return sortedEntries(new Map(members as [string, Value][])) as [string, Value][]
}

/** Compact, object keys and sets in order. */
export const goJson = (value: Value): string => layOut(value, undefined, '')

/** `lead` begins every line after the first; without `indent` all is one line. */
const layOut = (value: Value, indent: string | undefined, lead: string): string => {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return jsonString(value)
  if (isNumber(value)) return numberText(value)
  const inner = indent === undefined ? '' : lead + indent
  const colon = indent === undefined ? ':' : ': '
  const isObject = value instanceof Map
  const items = isObject
    ? jsonMembers(value).map(([key, member]) => `${jsonString(key)}${colon}${layOut(member, indent, inner)}`)
    : (value instanceof Set ? sorted(value) : value).map((item) => layOut(item, indent, inner))
  const [open, close] = isObject ? ['{', '}'] : ['[', ']']
  if (items.length === 0) return open + close
  if (indent === undefined) return `${open}${items.join(',')}${close}`
  return `${open}\n${inner}${items.join(`,\n${inner}`)}\n${lead}${close}`
}

const marshalOptions: Record<string, (value: Value) => unknown> = {
  pretty: asBoolean,
  indent: asString,
  prefix: asString,
}

/** Naming an indent or a prefix asks for lines, unless `pretty` says otherwise. */
const marshal = (value: Value, options: RegoObject): string => {
  for (const [key, member] of options) {
    const check = typeof key === 'string' && Object.hasOwn(marshalOptions, key) ? marshalOptions[key] : undefined
    if (!check) refuse('operand 2 has an unknown key')
    else check(member)
  }
  const {
    pretty,
    indent = '\t',
    prefix = '',
  } = Object.fromEntries(options) as {
    pretty?: boolean
    indent?: string
    prefix?: string
  }
  const lines = pretty ?? (options.has('indent') || options.has('prefix'))
  return lines ? prefix + layOut(value, indent, prefix) : goJson(value)
}

// --- hex

const hexBytes = (text: string): Buffer => {
  if (text.length % 2 !== 0 || !/^[0-9A-Fa-f]*$/.test(text)) refuse('not hexadecimal')
  return Buffer.from(text, 'hex')
}

// --- queries of URLs

/** Go's `url.QueryEscape`. */
export const queryEscape = (text: string): string =>
  encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')

/** Percent escapes decoded; what is then not UTF-8 becomes U+FFFD. */
export const percentDecode = (text: string): string => {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) refuse('invalid URL escape')
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (escapes) => textOf(Buffer.from(escapes.replaceAll('%', ''), 'hex')))
}

const queryUnescape = (text: string): string => percentDecode(text.replaceAll('+', ' '))

const decodeQuery = (text: string): RegoObject => {
  const members: RegoObject = new Map()
  for (const pair of text.split('&')) {
    if (pair.includes(';')) refuse('semicolons separate nothing')
    if (pair === '') continue
    const [, name = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(pair)!
    const key = queryUnescape(name)
    members.set(key, [...((members.get(key) as string[] | undefined) ?? []), queryUnescape(value)])
  }
  return members
}

const encodeQuery = (members: RegoObject): string =>
  sortedEntries(members)
    .flatMap(([name, value]) => {
      const key = queryEscape(asString(name))
      const values = typeof value === 'string' ? [value] : value instanceof Set ? sorted(value) : asItems(value)
      return values.map((item) => `${key}=${queryEscape(asString(item))}`)
    })
    .join('&')

export const encodingBuiltins: Record<string, HostBuiltin> = {
  'base64url.encode_no_pad': ([text]) => Buffer.from(asString(text)).toString('base64url'),
  'hex.decode': ([text]) => textOf(hexBytes(asString(text))),
  'hex.encode': ([text]) => Buffer.from(asString(text)).toString('hex'),
  'json.marshal_with_options': ([value, options]) => marshal(value!, asObject(options)),
  'urlquery.decode': ([text]) => queryUnescape(asString(text)),
  'urlquery.decode_object': ([text]) => decodeQuery(asString(text)),
  'urlquery.encode': ([text]) => queryEscape(asString(text)),
  'urlquery.encode_object': ([members]) => encodeQuery(asObject(members)),
}
