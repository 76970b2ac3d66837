import type { AppError } from '../../platform/problem.ts'
import { problem } from '../refusals/problems.ts'
import { withoutAccessToken } from './access-token-parameter.ts'
import { nameRecord } from './name-record.ts'

/** The request target in the one form that route, policy and upstream all use. */
export interface CanonicalTarget {
  /** Starts with `/`; escapes of unreserved characters are decoded, all others upper-case (RFC 3986 §6.2.2). */
  path: string
  /** The decoded segments of `path`. A trailing slash is a last, empty segment; `/` has none. */
  segments: string[]
  /** As received, with its `?`, but for an access token; empty when there is none. */
  query: string
  /** Whether there was an access token in it. */
  accessToken: boolean
  /** Whether a segment holds `%2F`, which only some routes allow. */
  encodedSlash: boolean
  /** The same of `;`, where parameters of a segment begin to some upstreams; `%3B` counts too. */
  semicolon: boolean
}

export const refuse = (detail: string): AppError => problem('invalid_request', { detail })

const slash = 0x2f
const percent = 0x25
const questionMark = 0x3f
const semicolon = 0x3b

/**
 * Octets by RFC 3986 §3.3 and §3.4: 0 not allowed, 1 pchar, 2 allowed in a query only. `%` and `;` are handled apart.
 */
const octets = new Uint8Array(128)
for (const char of "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,=:@") {
  octets[char.charCodeAt(0)] = 1
}
octets[semicolon] = 2
octets[slash] = 2
octets[questionMark] = 2

const isHex = (code: number): boolean =>
  (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66)

const checkEscape = (target: string, index: number): void => {
  if (!isHex(target.charCodeAt(index + 1)) || !isHex(target.charCodeAt(index + 2))) {
    throw refuse('The request target holds a % that is not followed by two hexadecimal digits.')
  }
}

/**
 * Reads an origin-form target (RFC 9112 §3.2.1) and refuses everything that two readers could take for two things:
 * other forms, characters outside RFC 3986, invalid UTF-8, dot segments in any encoding, backslashes, control
 * characters, empty segments. Throws `AppError` `invalid_request` (400).
 */
export const canonicalTarget = (target: string): CanonicalTarget => {
  if (target.charCodeAt(0) !== slash) throw refuse('The request target must start with a slash.')
  const result: CanonicalTarget = {
    path: '',
    segments: [],
    query: '',
    accessToken: false,
    encodedSlash: false,
    semicolon: false,
  }
  const { length } = target
  let canonical: string[] | undefined
  let start = 1
  let escaped = false
  let index = 1
  for (; ; index++) {
    const code = index < length ? target.charCodeAt(index) : questionMark
    if (code === percent) {
      checkEscape(target, index)
      escaped = true
      index += 2
    } else if (code === slash || code === questionMark) {
      const last = code === questionMark
      if (index === start && !last) throw refuse('The path holds an empty segment.')
      const raw = target.slice(start, index)
      if (escaped) {
        canonical ??= result.segments.slice()
        canonical.push(canonicalSegment(raw, result))
        escaped = false
      } else if (index > 1) {
        if (raw.charCodeAt(0) === 0x2e) refuseDots(raw)
        result.segments.push(raw)
        canonical?.push(raw)
      }
      if (last) break
      start = index + 1
    } else if (octets[code] !== 1) {
      if (code !== semicolon) throw refuse('The path holds a character that must be percent-encoded.')
      result.semicolon = true
    }
  }
  if (result.semicolon) refuseNameless(result.segments)
  result.path = canonical ? `/${canonical.join('/')}` : target.slice(0, index)
  if (index < length) {
    const query = checkedQuery(target, index)
    result.query = withoutAccessToken(query, formDecode)
    result.accessToken = result.query !== query
  }
  return result
}

const unreserved = /[A-Za-z0-9._~-]/

/** Appends the decoded segment to `result` and returns its canonical spelling. */
const canonicalSegment = (raw: string, result: CanonicalTarget): string => {
  const canonical = raw.replace(/%../g, (octet) => {
    const char = String.fromCharCode(Number.parseInt(octet.slice(1), 16))
    return unreserved.test(char) ? char : octet.toUpperCase()
  })
  const decoded = decode(canonical, 'path')
  if (/[\u0000-\u001f\u007f\\]/.test(decoded)) throw refuse('The path holds a control character or a backslash.')
  if (decoded.includes('/')) result.encodedSlash = true
  if (decoded.includes(';')) result.semicolon = true
  refuseDots(decoded)
  result.segments.push(decoded)
  return canonical
}

const decode = (text: string, part: 'path' | 'query'): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refuse(`The ${part} is not UTF-8.`)
  }
}

/** How often a segment may be encoded. */
const mostEncodings = 8

/** Also with a parameter (`..;x`), and for an upstream that decodes more than once (`%252e`, `..%252f`). */
const refuseDots = (segment: string): void => {
  let text = segment
  for (let round = 0; ; round++) {
    for (const part of text.split(/[/\\]/)) {
      const name = part.split(';', 1)[0]
      if (name === '.' || name === '..') throw refuse('The path holds a dot segment.')
    }
    const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, octet) => String.fromCharCode(Number.parseInt(octet, 16)))
    if (decoded === text) return
    if (round === mostEncodings) throw refuse('The path is encoded too often.')
    text = decoded
  }
}

/** If an upstream removes the parameters, an empty segment is left, and it may remove that too. */
const refuseNameless = (segments: readonly string[]): void => {
  if (segments.some((segment) => segment.startsWith(';'))) throw refuse('The path holds an empty segment.')
}

const checkedQuery = (target: string, start: number): string => {
  let escaped = false
  for (let index = start; index < target.length; index++) {
    const code = target.charCodeAt(index)
    if (code === percent) {
      checkEscape(target, index)
      escaped = true
    } else if (!octets[code]) {
      throw refuse('The query holds a character that must be percent-encoded.')
    }
  }
  const query = target.slice(start)
  if (escaped) decode(query, 'query')
  return query
}

const noQuery: Record<string, string[]> = Object.freeze(nameRecord<string[]>())

/** The query as policies see it: split on `&`, `+` is a space, every name with all its values in order. */
export const queryParameters = (query: string): Record<string, string[]> => {
  if (query.length < 2) return noQuery
  const parameters = nameRecord<string[]>()
  for (const pair of query.slice(1).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = formDecode(equals < 0 ? pair : pair.slice(0, equals))
    const value = equals < 0 ? '' : formDecode(pair.slice(equals + 1))
    const values = parameters[name]
    if (values) values.push(value)
    else parameters[name] = [value]
  }
  return parameters
}

const formDecode = (text: string): string => {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  return spaced.includes('%') ? decode(spaced, 'query') : spaced
}
