import { asString, objectOf, refuse } from '../values/operands.ts'
import { percentDecode } from './encoding.ts'
import type { HostBuiltin } from './index.ts'

/** The parts of a URL as Go's `net/url` tells them. */
interface Uri {
  scheme: string
  hostname: string
  port: string
  path: string
  rawPath: string
  rawQuery: string
  fragment: string
}

/** Throws `BuiltinError` for what Go refuses. */
export const parseUri = (whole: string): Uri => {
  if (/[\x00-\x1f\x7f]/.test(whole)) refuse('invalid control character')
  const [beforeFragment, fragment = ''] = cut(whole, '#')
  const uri: Uri = {
    scheme: '',
    hostname: '',
    port: '',
    path: '',
    rawPath: '',
    rawQuery: '',
    fragment: percentDecode(fragment),
  }
  if (beforeFragment === '*') return { ...uri, path: '*', rawPath: '*' }

  const [, scheme = '', afterScheme] = /^([A-Za-z][A-Za-z0-9+.-]*):(.*)$/s.exec(beforeFragment) ?? []
  if (beforeFragment.startsWith(':')) refuse('missing protocol scheme')
  const [hierarchy, query = ''] = cut(afterScheme ?? beforeFragment, '?')
  uri.scheme = scheme.toLowerCase()
  uri.rawQuery = query
  if (!hierarchy.startsWith('/')) {
    // `mailto:someone` is opaque: neither host nor path.
    if (scheme !== '') return uri
    if (hierarchy.split('/', 1)[0]!.includes(':')) refuse('the first segment of a path cannot contain a colon')
  }
  let path = hierarchy
  if (hierarchy.startsWith('//') && !(scheme === '' && hierarchy.startsWith('///'))) {
    const [, authority = '', rest = ''] = /^\/\/([^/]*)(.*)$/s.exec(hierarchy)!
    Object.assign(uri, parseAuthority(authority))
    path = rest
  }
  uri.path = percentDecode(path)
  uri.rawPath = rawPathOf(path, uri.path)
  return uri
}

const cut = (text: string, mark: string): [string, string?] => {
  const at = text.indexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

/** The path as it was sent where its escapes cannot be derived from the decoded one (`%2F`); else the decoded one. */
const rawPathOf = (sent: string, decoded: string): string => (sent === escapePath(decoded) ? decoded : sent)

const escapePath = (path: string): string =>
  encodeURI(path.toWellFormed()).replace(
    /[#?!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

const parseAuthority = (authority: string): { hostname: string; port: string } => {
  const at = authority.lastIndexOf('@')
  const user = at < 0 ? '' : authority.slice(0, at)
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) refuse('invalid userinfo')
  percentDecode(user)
  const host = authority.slice(at + 1)
  if (host.startsWith('[')) {
    const [, inside, port = ''] = /^\[([^\]]*)\](?::(\d*))?$/.exec(host) ?? refuse("missing ']' in host or a bad port")
    return { hostname: percentDecode(inside!), port }
  }
  const [, name = '', port = ''] = /^([^:]*)(?::(\d*))?$/.exec(host) ?? refuse('invalid port')
  // Go's validEncoded: RFC 3986 §3.2.2, plus quotes and angle brackets; percent escapes only for what is not ASCII.
  if (/[ \\^`{|}]/.test(name)) refuse('invalid character in host name')
  if (/%[0-7]/.test(name)) refuse('invalid URL escape')
  return { hostname: percentDecode(name), port }
}

const describe = ({ scheme, hostname, port, path, rawPath, rawQuery, fragment }: Uri) =>
  objectOf({
    scheme: scheme || undefined,
    hostname: hostname || undefined,
    port: port || undefined,
    path: path || undefined,
    raw_path: rawPath || undefined,
    raw_query: rawQuery || undefined,
    fragment: fragment || undefined,
  })

const isValid = (text: string): boolean => {
  if (text === '') return false
  try {
    parseUri(text)
    return true
  } catch {
    return false
  }
}

export const uriBuiltins: Record<string, HostBuiltin> = {
  'uri.is_valid': ([text]) => isValid(asString(text)),
  'uri.parse': ([text]) => describe(parseUri(asString(text))),
}
