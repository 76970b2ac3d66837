import { refuse, textOf } from '../values/operands.ts'

/** Go's `net/url`. What it refuses, these refuse: they throw `BuiltinError`. */

/** The parts of a URL. */
export interface Url {
  scheme: string
  hostname: string
  port: string
  path: string
  rawPath: string
  rawQuery: string
  fragment: string
}

/** `url.Parse`. */
export const parseUrl = (whole: string): Url => {
  if (/[\x00-\x1f\x7f]/.test(whole)) refuse('invalid control character')
  const [beforeFragment, fragment = ''] = cut(whole, '#')
  const empty = { scheme: '', hostname: '', port: '', path: '', rawPath: '', rawQuery: '' }
  const url: Url = { ...empty, fragment: percentDecode(fragment) }
  if (beforeFragment === '*') return { ...url, path: '*', rawPath: '*' }

  const [, scheme = '', afterScheme] = /^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/s.exec(beforeFragment) ?? []
  if (beforeFragment.startsWith(':')) refuse('missing protocol scheme')
  const [hierarchy, query = ''] = cut(afterScheme ?? beforeFragment, '?')
  url.scheme = scheme.toLowerCase()
  url.rawQuery = query
  if (!hierarchy.startsWith('/')) {
    // `mailto:someone` is opaque: neither host nor path.
    if (scheme !== '') return url
    if (/^[^/]*:/.test(hierarchy)) refuse('the first segment of a path cannot contain a colon')
  }
  let path = hierarchy
  if (hierarchy.startsWith('//') && !(scheme === '' && hierarchy.startsWith('///'))) {
    const slash = hierarchy.indexOf('/', 2)
    const end = slash < 0 ? hierarchy.length : slash
    Object.assign(url, parseAuthority(hierarchy.slice(2, end)))
    path = hierarchy.slice(end)
  }
  url.path = percentDecode(path)
  url.rawPath = rawPathOf(path, url.path)
  return url
}

/** What stands before a mark and behind it; nothing behind when it is not there. */
export const cut = (text: string, mark: string): [string, string?] => {
  const at = text.indexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** The path as it was sent where its escapes cannot be derived from the decoded one (`%2F`); else the decoded one. */
const rawPathOf = (sent: string, decoded: string): string => (sent === escapePath(decoded) ? decoded : sent)

const escapePath = (path: string): string => encodeURI(path.toWellFormed()).replace(/[#?!'()*]/g, percentEncode)

const percentEncode = (character: string): string => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

const parseAuthority = (authority: string): { hostname: string; port: string } => {
  const at = authority.lastIndexOf('@')
  const user = at < 0 ? '' : authority.slice(0, at)
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) refuse('invalid userinfo')
  percentDecode(user)
  const host = authority.slice(at + 1)
  if (host.startsWith('[')) {
    const [, inside = '', port = ''] =
      /^\[([^\]]*)\](?::(\d*))?$/.exec(host) ?? refuse("missing ']' in host or a bad port")
    return { hostname: percentDecode(inside), port }
  }
  const [, name = '', port = ''] = /^([^:]*)(?::(\d*))?$/.exec(host) ?? refuse('invalid port')
  // Go's validEncoded: RFC 3986 §3.2.2, plus quotes and angle brackets; percent escapes only for what is not ASCII.
  if (/[ \\^`{|}]/.test(name)) refuse('invalid character in host name')
  if (/%[0-7]/.test(name)) refuse('invalid URL escape')
  return { hostname: percentDecode(name), port }
}

/** `url.QueryEscape`. */
export const queryEscape = (text: string): string =>
  encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, percentEncode)
    .replaceAll('%20', '+')

/** `url.QueryUnescape`. */
export const queryUnescape = (text: string): string => percentDecode(text.replaceAll('+', ' '))

/** Percent escapes decoded; what is then not UTF-8 becomes U+FFFD. */
const percentDecode = (text: string): string => {
  if (!text.includes('%')) return text
  const bytes = Buffer.from(text)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === percent) {
      bytes[length++] = digitAt(bytes, at + 1) * 16 + digitAt(bytes, at + 2)
      at += 2
    } else bytes[length++] = bytes[at] as number
  }
  return textOf(bytes.subarray(0, length))
}

const percent = 0x25

const digitAt = (bytes: Buffer, at: number): number => {
  const code = bytes[at] ?? 0
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : refuse('invalid URL escape')
}
