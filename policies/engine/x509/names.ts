import { isIP } from 'node:net'
import { parseUrl } from '../go/url.ts'
import { objectOf } from '../values/operands.ts'
import type { Value } from '../values/value.ts'
import { childrenOf, context, type Element, malformed, oidOf, tags, textOf } from './der.ts'

/** Arrays of Go are `null` in JSON where nothing was put in. */
export const listOrNull = (values: Value[]): Value => (values.length === 0 ? null : values)

const lists: Record<string, string> = {
  '2.5.4.6': 'Country',
  '2.5.4.10': 'Organization',
  '2.5.4.11': 'OrganizationalUnit',
  '2.5.4.7': 'Locality',
  '2.5.4.8': 'Province',
  '2.5.4.9': 'StreetAddress',
  '2.5.4.17': 'PostalCode',
}
const singles: Record<string, string> = { '2.5.4.5': 'SerialNumber', '2.5.4.3': 'CommonName' }

/** Go's `pkix.Name`. */
export const nameOf = (element: Element | undefined): Value => {
  const members = new Map<Value, Value>([
    ...Object.values(lists).map((name): [string, Value] => [name, null]),
    ...Object.values(singles).map((name): [string, Value] => [name, '']),
  ])
  const names: Value[] = []
  for (const attribute of childrenOf(element).flatMap((set) => childrenOf(set, tags.set))) {
    const [type, value = malformed()] = childrenOf(attribute)
    const oid = oidOf(type)
    const text = textOf(value)
    names.push(objectOf({ Type: oid, Value: text }))
    const [list, single] = [lists[oid.join('.')], singles[oid.join('.')]]
    const listed = list && members.get(list)
    if (Array.isArray(listed)) listed.push(text)
    else if (list) members.set(list, [text])
    if (single) members.set(single, text)
  }
  return members.set('Names', listOrNull(names)).set('ExtraNames', null)
}

export interface AlternativeNames {
  dns: string[]
  emails: string[]
  addresses: string[]
  uris: string[]
}

export const addressOf = (bytes: Buffer): string => {
  if (bytes.length === 4) return [...bytes].join('.')
  const groups = bytes.toString('hex').match(/.{4}/g) ?? []
  const full = groups.join(':')
  // The shortest form, as everybody writes it.
  return isIP(full) === 6 ? new URL(`http://[${full}]/`).hostname.slice(1, -1) : full
}

/** RFC 5280 §4.2.1.6: the kinds of `GeneralNames` that Go reads. */
export const alternativeNames = (names: readonly Element[]): AlternativeNames => {
  const of = (number: number) => names.filter(({ tag }) => tag === context(number))
  const texts = (number: number) => of(number).map(({ content }) => content.toString('latin1'))
  return { emails: texts(1), dns: texts(2), uris: texts(6), addresses: of(7).map(({ content }) => addressOf(content)) }
}

/** Go's `url.URL`. */
export const uriValue = (text: string): Value => {
  const { scheme, hostname, port, path, rawPath, rawQuery, fragment } = parseUrl(text)
  const [beforeQuery = ''] = text.split(/[?#]/, 1)
  const opaque = path === '' && hostname === '' && scheme !== '' ? beforeQuery.slice(beforeQuery.indexOf(':') + 1) : ''
  const host = `${hostname.includes(':') ? `[${hostname}]` : hostname}${port && `:${port}`}`
  return objectOf({
    Scheme: scheme,
    Opaque: opaque.startsWith('/') ? '' : opaque,
    User: /^[^/]*\/\/[^/]*@/.test(text) ? new Map() : null,
    Host: host,
    Path: path,
    RawPath: rawPath === path ? '' : rawPath,
    OmitHost: false,
    ForceQuery: /\?(?:#|$)/.test(text),
    RawQuery: rawQuery,
    Fragment: fragment,
    RawFragment: '',
  })
}
