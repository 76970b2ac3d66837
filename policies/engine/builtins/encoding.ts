import type { Meter } from '../base/meter.ts'
import { goJson, indentedJson } from '../go/json.ts'
import { cut, parseUrl, queryEscape, queryUnescape, type Url } from '../go/url.ts'
import {
  asBoolean,
  asItems,
  asObject,
  asString,
  asValue,
  objectOf,
  refuse,
  textOf,
  unlessRefused,
} from '../values/operands.ts'
import { sorted, sortedEntries } from '../values/order.ts'
import type { RegoObject, Value } from '../values/value.ts'
import { weigh } from '../values/weight.ts'
import { type BuiltinTable, builtin } from './builtin.ts'

interface MarshalOptions {
  pretty?: boolean
  indent?: string
  prefix?: string
}

const marshalOptions = (object: RegoObject): MarshalOptions => {
  const options: MarshalOptions = {}
  for (const [key, member] of object) {
    if (key === 'pretty') options.pretty = asBoolean(member)
    else if (key === 'indent' || key === 'prefix') options[key] = asString(member)
    else refuse('operand 2 has an unknown key')
  }
  return options
}

/** Naming an indent or a prefix asks for lines, unless `pretty` says otherwise. */
const marshal = (value: Value, { pretty, indent, prefix }: MarshalOptions, meter: Meter): string => {
  weigh(value, meter, timesToSort)
  return (pretty ?? (indent !== undefined || prefix !== undefined))
    ? indentedJson(value, { indent: indent ?? '\t', prefix: prefix ?? '' }, meter)
    : goJson(value)
}

const timesToSort = 5

const hexBytes = (text: string): Buffer => {
  if (text.length % 2 !== 0 || !/^[0-9A-Fa-f]*$/.test(text)) refuse('not hexadecimal')
  return Buffer.from(text, 'hex')
}

const unitsForCharacter = 3
const unitsForPair = 50

const decodeQuery = (text: string, { spend }: Meter): RegoObject => {
  const members = new Map<string, Value[]>()
  for (const pair of text.split('&')) {
    spend(unitsForPair)
    if (pair.includes(';')) refuse('semicolons separate nothing')
    if (pair === '') continue
    const [name, value] = cut(pair, '=')
    const key = queryUnescape(name)
    const values = members.get(key) ?? []
    values.push(queryUnescape(value ?? ''))
    members.set(key, values)
  }
  return new Map(members)
}

const encodeQuery = (members: RegoObject, { spend }: Meter): string =>
  sortedEntries(members)
    .flatMap(([name, value]) => {
      const key = queryEscape(asString(name))
      const values = typeof value === 'string' ? [value] : value instanceof Set ? sorted(value) : asItems(value)
      return values.map((item) => {
        spend(unitsForPair + key.length)
        return `${key}=${queryEscape(asString(item))}`
      })
    })
    .join('&')

const urlMembers = ({ scheme, hostname, port, path, rawPath, rawQuery, fragment }: Url): RegoObject =>
  objectOf({
    scheme: scheme || undefined,
    hostname: hostname || undefined,
    port: port || undefined,
    path: path || undefined,
    raw_path: rawPath || undefined,
    raw_query: rawQuery || undefined,
    fragment: fragment || undefined,
  })

export const encodingBuiltins: BuiltinTable = {
  'base64url.encode_no_pad': builtin([asString], (text) => Buffer.from(text).toString('base64url')),
  'hex.decode': builtin([asString], (text) => textOf(hexBytes(text))),
  'hex.encode': builtin([asString], (text) => Buffer.from(text).toString('hex')),
  'json.marshal_with_options': builtin([asValue, asObject], (value, options, meter) =>
    marshal(value, marshalOptions(options), meter),
  ),
  'uri.is_valid': builtin([asString], (text) => text !== '' && unlessRefused(() => parseUrl(text)) !== undefined),
  'uri.parse': builtin([asString], (text) => urlMembers(parseUrl(text))),
  'urlquery.decode': builtin([asString], queryUnescape),
  'urlquery.decode_object': builtin([asString], decodeQuery),
  'urlquery.encode': builtin([asString], (text, { spend }) => {
    spend(unitsForCharacter * text.length)
    return queryEscape(text)
  }),
  'urlquery.encode_object': builtin([asObject], encodeQuery),
}
