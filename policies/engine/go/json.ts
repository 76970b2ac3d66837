import type { Meter } from '../base/meter.ts'
import { compareStrings, sorted, sortedEntries } from '../values/order.ts'
import { enclosed } from '../values/text.ts'
import { isNumber, numberText, type RegoObject, type Value } from '../values/value.ts'

/** JSON as Go's `encoding/json` writes it: compact, object keys and sets in order. */
export const goJson = (value: Value): string => layOut(value, undefined, '')

/** The same in lines that begin with `prefix` and are indented by `indent` for each level. */
export const indentedJson = (
  value: Value,
  { prefix, indent }: { prefix: string; indent: string },
  { spend }: Meter,
): string => prefix + layOut(value, indent, prefix, spend)

/** `lead` begins every line after the first, and is paid for; without `indent` all is one line. */
const layOut = (value: Value, indent: string | undefined, lead: string, spend?: Meter['spend']): string => {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return jsonString(value)
  if (isNumber(value)) return numberText(value)
  const inner = indent === undefined ? '' : lead + indent
  const colon = indent === undefined ? ':' : ': '
  const isObject = value instanceof Map
  if (indent !== undefined) spend?.((Array.isArray(value) ? value.length : value.size) * inner.length)
  const items = isObject
    ? jsonMembers(value).map(([key, member]) => `${jsonString(key)}${colon}${layOut(member, indent, inner, spend)}`)
    : (value instanceof Set ? sorted(value) : value).map((item) => layOut(item, indent, inner, spend))
  const [open, close] = isObject ? ['{', '}'] : ['[', ']']
  if (items.length === 0) return open + close
  if (indent === undefined) return enclosed(open, items, close, asIs)
  return enclosed(`${open}\n${inner}`, items, `\n${lead}${close}`, asIs, `,\n${inner}`)
}

const asIs = (text: string): string => text

/** Go's encoder escapes what could end a script in HTML. */
const jsonString = (text: string): string =>
  JSON.stringify(text).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The key of a JSON object for a key of a Rego object: the JSON of what is no text. */
export const jsonKey = (key: Value): string => (typeof key === 'string' ? key : goJson(key))

/** In the order of their JSON keys. Of two members with the same one the last one counts. */
const jsonMembers = (object: RegoObject): [string, Value][] => {
  const members = new Map(sortedEntries(object).map(([key, member]) => [jsonKey(key), member]))
  return [...members].sort(([a], [b]) => compareStrings(a, b))
}
