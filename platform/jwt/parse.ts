import { parseJsonObject } from './json-object.ts'
import { JwtError } from './jwt-error.ts'

export interface JwtHeader {
  readonly alg: string
  readonly kid?: string
  readonly typ?: string
  readonly [member: string]: unknown
}

/** A token taken apart and **not** verified: nothing in it may be believed. */
export interface ParsedJwt {
  readonly header: JwtHeader
  readonly claims: Readonly<Record<string, unknown>>
  /** The bytes that the signature covers (RFC 7515 §5.2). */
  readonly signingInput: string
  readonly signature: Buffer
}

/** In characters. Longer tokens are refused unread. */
const maxTokenLength = 16_384

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const malformed = (message: string) => new JwtError('malformed', message)

/**
 * RFC 7515 §2: no padding, no white space; and exactly one spelling per value (unused bits zero), so that equal bytes
 * are equal tokens.
 */
const bytesOf = (part: string): Buffer => {
  const bytes = Buffer.from(part, 'base64url')
  if (bytes.toString('base64url') !== part) throw malformed('A part of the token is not base64url.')
  return bytes
}

const objectOf = (part: string): Record<string, unknown> => {
  let text: string
  try {
    text = utf8.decode(bytesOf(part))
  } catch {
    throw malformed('A part of the token is not base64url or not UTF-8.')
  }
  const object = parseJsonObject(text)
  if (!object) throw malformed('A part of the token is not an unambiguous JSON object.')
  return object
}

const optionalText = (header: Record<string, unknown>, name: string) => {
  const value = header[name]
  if (value !== undefined && typeof value !== 'string') throw malformed(`The header member ${name} is not a string.`)
}

/**
 * Takes a compact JWS apart, strictly (RFC 7515 §3.1, RFC 7519 §7.2): at most 16 kB, three parts, no `crit` (RFC 7515
 * §4.1.11: none is understood), no unencoded payload. Throws `JwtError` `malformed`.
 */
export const parseJwt = (token: string): ParsedJwt => {
  if (token.length > maxTokenLength) throw malformed(`The token is longer than ${maxTokenLength} characters.`)
  const first = token.indexOf('.')
  const last = token.lastIndexOf('.')
  if (first <= 0 || last === first || token.indexOf('.', first + 1) !== last) {
    throw malformed('The token does not have the three parts of a JWT.')
  }
  const header = objectOf(token.slice(0, first))
  if (typeof header['alg'] !== 'string') throw malformed('The token names no algorithm.')
  optionalText(header, 'kid')
  optionalText(header, 'typ')
  if ('crit' in header || 'b64' in header) throw malformed('The token needs an extension that is not supported.')
  return {
    header: header as JwtHeader,
    claims: objectOf(token.slice(first + 1, last)),
    signingInput: token.slice(0, last),
    signature: bytesOf(token.slice(last + 1)),
  }
}
