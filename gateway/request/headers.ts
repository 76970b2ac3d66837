import { refuse } from './canonical-target.ts'
import { eachField, type FieldList, filterFields, valuesOf } from './field-list.ts'
import { withoutIssuerCookies } from './issuer-cookies.ts'

/**
 * Header fields, read once from the raw list. What is left in `forwardable` may go upstream: everything that frames the
 * message, belongs to one connection, or could pass for what only this gateway says (who the caller is, where it comes
 * from, what it asks for) is gone.
 */
export interface RequestHeaders {
  /** Lower-case name, value, name, value, … */
  forwardable: string[]
  host: string | undefined
  authorization: string | undefined
  dpop: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  expect: string | undefined
  upgrade: string | undefined
  forwarded: string | undefined
  forwardedFor: string | undefined
  forwardedProto: string | undefined
  forwardedHost: string | undefined
  requestId: string | undefined
  via: string | undefined
  /** Also among `forwardable`; several fields are one, which of `traceparent` is not valid. */
  traceparent: string | undefined
  tracestate: string | undefined
  /** Whether there may be cookies of the issuer among `forwardable`. */
  issuerCookies: boolean
  /** Fields received, the dropped ones too. */
  count: number
  /** Bytes of their names and values. */
  size: number
}

type Kept = Exclude<keyof RequestHeaders, 'forwardable' | 'issuerCookies' | 'count' | 'size'>
/**
 * `field`: kept apart under that name. `trace`: the same, and forwarded. `once`: forwarded; two of it are refused,
 * since they could be read in two ways.
 */
type Treatment =
  | { do: 'forward' | 'drop' | 'once' | 'connection' | 'cookie' }
  | { do: 'field'; field: Kept; repeatable: boolean }
  | { do: 'trace'; field: 'traceparent' | 'tracestate' }

const field = (name: Kept, repeatable = false): Treatment => ({ do: 'field', field: name, repeatable })
const drop: Treatment = { do: 'drop' }
const forward: Treatment = { do: 'forward' }

const dropped = [
  // RFC 9110 §7.6.1 and its ancestors: of this connection only.
  ...['keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer', 'http2-settings'],
  // What only a gateway may say.
  ...[
    'x-real-ip',
    'x-client-ip',
    'x-cluster-client-ip',
    'true-client-ip',
    'cf-connecting-ip',
    'client-ip',
    'remote-user',
    // RFC 9440: what a proxy says of a client certificate.
    'client-cert',
    'client-cert-chain',
  ],
  // Another method or target than the one that was routed and decided on.
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
  // CGI programs would use it as their own proxy (httpoxy).
  'proxy',
]
const droppedPrefixes = [
  'x-auth-',
  'x-forwarded-',
  'x-original-',
  'x-rewrite-',
  'x-remote-',
  'x-surrogate-',
  'x-envoy-',
]

const treatments = new Map<string, Treatment>([
  ...dropped.map((name) => [name, drop] as const),
  ['host', field('host')],
  ['authorization', field('authorization')],
  ['dpop', field('dpop')],
  ['content-length', field('contentLength')],
  ['transfer-encoding', field('transferEncoding')],
  ['expect', field('expect')],
  ['upgrade', field('upgrade', true)],
  ['forwarded', field('forwarded', true)],
  ['x-forwarded-for', field('forwardedFor', true)],
  ['x-forwarded-proto', field('forwardedProto', true)],
  ['x-forwarded-host', field('forwardedHost', true)],
  ['x-request-id', field('requestId', true)],
  ['via', field('via', true)],
  ['traceparent', { do: 'trace', field: 'traceparent' }],
  ['tracestate', { do: 'trace', field: 'tracestate' }],
  ['connection', { do: 'connection' }],
  ['content-type', { do: 'once' }],
  // Its other spellings are dropped: an upstream could take one for a coding that nobody here has seen.
  ['content-encoding', forward],
  ['cookie', { do: 'cookie' }],
])

interface HeaderName {
  lower: string
  treatment: Treatment
}

const isProtected = (name: string) =>
  treatments.has(name) || droppedPrefixes.some((prefix) => name.startsWith(prefix) || `${name}-` === prefix)

const headerName = (name: string): HeaderName => {
  const lower = name.toLowerCase()
  const known = treatments.get(lower)
  if (known) return { lower, treatment: known }
  return { lower, treatment: isProtected(foldedName(lower)) ? drop : forward }
}

/**
 * Many upstreams read every odd character of a name as `-` or `_`: X_Auth_Sub and x.auth.sub are x-auth-sub to them.
 */
export const foldedName = (lower: string): string => lower.replace(/[^a-z0-9]/g, '-')

/** Names repeat from request to request; the bound keeps invented ones from filling the memory. */
const names = new Map<string, HeaderName>()
const maxNames = 2_000

const namedAs = (name: string): HeaderName => {
  const known = names.get(name)
  if (known) return known
  const made = headerName(name)
  if (names.size < maxNames) names.set(name, made)
  return made
}

/** Throws `AppError` `invalid_request` (400) when a field that must be unique is not. */
export const readHeaders = (raw: FieldList): RequestHeaders => {
  const headers: RequestHeaders = {
    forwardable: [],
    host: undefined,
    authorization: undefined,
    dpop: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    expect: undefined,
    upgrade: undefined,
    forwarded: undefined,
    forwardedFor: undefined,
    forwardedProto: undefined,
    forwardedHost: undefined,
    requestId: undefined,
    via: undefined,
    traceparent: undefined,
    tracestate: undefined,
    issuerCookies: false,
    count: raw.length / 2,
    size: 0,
  }
  let connection: string | undefined
  let seenOnce: Set<string> | undefined
  eachField(raw, (name, value) => {
    const { lower, treatment } = namedAs(name)
    headers.size += lower.length + value.length
    switch (treatment.do) {
      case 'forward':
        headers.forwardable.push(lower, value)
        break
      case 'field': {
        const earlier = headers[treatment.field]
        if (earlier !== undefined && !treatment.repeatable)
          throw refuse(`The request has more than one ${lower} field.`)
        headers[treatment.field] = earlier === undefined ? value : `${earlier}, ${value}`
        break
      }
      case 'trace': {
        const earlier = headers[treatment.field]
        headers[treatment.field] = earlier === undefined ? value : `${earlier},${value}`
        headers.forwardable.push(lower, value)
        break
      }
      case 'once':
        seenOnce ??= new Set()
        if (seenOnce.has(lower)) throw refuse(`The request has more than one ${lower} field.`)
        seenOnce.add(lower)
        headers.forwardable.push(lower, value)
        break
      case 'cookie':
        if (/surrogate/i.test(value)) headers.issuerCookies = true
        headers.forwardable.push(lower, value)
        break
      case 'connection':
        connection = connection === undefined ? value : `${connection}, ${value}`
    }
  })
  const options = connectionOptions(connection)
  if (options) headers.forwardable = filterFields(headers.forwardable, (name) => !options.has(name))
  return headers
}

/** The value of a field that a request has at most once. Throws `AppError` `invalid_request`. */
export const onlyField = ({ forwardable }: RequestHeaders, name: string): string | undefined => {
  const [value, ...others] = valuesOf(forwardable, name)
  if (others.length > 0) throw refuse(`The request has more than one ${name} field.`)
  return value
}

/** Of the page that a browser asks for. */
export const originOf = (headers: RequestHeaders): string | undefined => onlyField(headers, 'origin')

/**
 * The names that a `Connection` field lists, lower-case (RFC 9110 §7.6.1: not to be forwarded). Undefined for the usual
 * fields, which list none.
 */
export const connectionOptions = (connection: string | undefined): Set<string> | undefined => {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** Replaces fields of a flat list in place, in whatever spelling they stand there, or adds them. */
export const setFields = (flat: string[], fields: Readonly<Record<string, string>>): void => {
  // Object.entries takes three times as long (measured), and this runs for every request.
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined) continue
    for (let index = flat.length - 2; index >= 0; index -= 2) {
      const lower = flat[index]
      if (lower !== undefined && isSpelling(lower, name)) flat.splice(index, 2)
    }
    flat.push(name, value)
  }
}

const isSpelling = (lower: string, name: string): boolean =>
  lower === name || (lower.length === name.length && foldedName(lower) === name)

/** Without other spellings of these names: what the policy sees of a field is all that an upstream gets of it. */
export const withoutOtherSpellings = (flat: FieldList, names: readonly string[]): string[] =>
  filterFields(flat, (lower) => names.includes(lower) || !names.some((name) => isSpelling(lower, name)))

/** For upstreams that are not the issuer. */
export const withoutIssuerCookieFields = (flat: FieldList): string[] => {
  const kept: string[] = []
  eachField(flat, (name, value) => {
    const left = name === 'cookie' ? withoutIssuerCookies(value) : value
    if (left !== undefined) kept.push(name, left)
  })
  return kept
}
