import { refuse } from '../request/canonical-target.ts'
import type { HttpAttributes } from '../request/checked-request.ts'
import { joinedCookies } from '../request/issuer-cookies.ts'

/** The header fields of a request that Envoy asks about. */
export interface CheckedFields {
  /** As Node has them, with lower-case names, without pseudo-header fields, `host`, and what Envoy adds. */
  readonly list: string[]
  readonly pseudo: ReadonlyMap<string, string>
  readonly hosts: readonly string[]
  readonly userAgent: string | undefined
  /** Whether Envoy says that the body is cut off. Undefined: it sends none. */
  readonly partialBody: boolean | undefined
}

const pseudoFields: ReadonlySet<string> = new Set([':method', ':path', ':authority', ':scheme', ':protocol'])

/** What Envoy adds when it sends a body; it removes the client's own. */
const partialBodyField = 'x-envoy-auth-partial-body'

/** Throws `AppError` `invalid_request` (400) for fields that HTTP does not have, or that can be read in two ways. */
export const checkedFields = ({ headers, headerMap }: HttpAttributes): CheckedFields => {
  const list: string[] = []
  const pseudo = new Map<string, string>()
  const hosts: string[] = []
  let userAgent: string | undefined
  let partialBody: boolean | undefined
  const add = (name: string, value: string) => {
    if (name.charCodeAt(0) === colon) {
      if (!pseudoFields.has(name)) throw refuse('The request has a pseudo-header field that is not served.')
      if (pseudo.has(name)) throw refuse(`The request has more than one ${name} field.`)
      pseudo.set(name, value)
      return
    }
    if (!fieldName.test(name)) throw refuse('The request has a field with a name that HTTP does not have.')
    if (notInValues.test(value)) throw refuse('The request has a field with a control character.')
    const lower = name.toLowerCase()
    if (lower === 'host') return void hosts.push(value)
    if (lower === 'user-agent') userAgent = value
    if (lower === partialBodyField) {
      if (partialBody !== undefined || !/^(?:true|false)$/.test(value)) throw refuse('The body is told of in two ways.')
      partialBody = value === 'true'
      return
    }
    list.push(lower, value)
  }

  const raw = headerMap?.headers
  if (headers && raw) throw refuse('The check has the header fields twice.')
  for (const { key = '', value, rawValue } of raw ?? []) {
    if (value && rawValue?.length) throw refuse('A header field has two values.')
    add(key, rawValue?.length ? rawValue.toString('latin1') : bytesOf(value ?? ''))
  }
  for (const name in headers) {
    const value = headers[name]!
    if (isJoined(name, value)) throw refuse(`The request has more than one ${name} field.`)
    if (name.toLowerCase() === 'cookie') for (const one of joinedCookies(value)) add(name, bytesOf(one))
    else add(name, bytesOf(value))
  }
  return { list, pseudo, hosts, userAgent, partialBody }
}

const colon = 0x3a

/** RFC 9110 §5.6.2. */
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** RFC 9110 §5.5. */
const notInValues = /[\0-\x08\x0a-\x1f\x7f]/

/**
 * A character for each byte, as of the proxy's own requests. The text of a message is UTF-8; where it was not, decoding
 * has left U+FFFD.
 */
const bytesOf = (value: string): string => {
  if (!/[^\0-\x7f]/.test(value)) return value
  if (value.includes('\ufffd')) throw refuse('The request has a field that is not UTF-8.')
  return Buffer.from(value, 'utf8').toString('latin1')
}

/**
 * Whether Envoy has joined several fields to this one, of a kind that must come once. Credentials of these schemes have
 * no comma (RFC 9110 §11.2), and a media type has one within quotes only.
 */
const isJoined = (name: string, value: string): boolean => {
  if (!value.includes(',')) return false
  const lower = name.toLowerCase()
  if (lower === 'authorization')
    return /^\s*(?:bearer|dpop|basic)\b/i.test(value) || /,\s*(?:bearer|dpop|basic) /i.test(value)
  return lower === 'content-type' && value.replace(/"(?:[^"\\]|\\.)*"/g, '').includes(',')
}
