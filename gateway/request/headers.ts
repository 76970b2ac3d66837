import { problem } from '../refusals/problems.ts'
import { refuse } from './canonical-target.ts'
import { setsIssuerCookie, withoutIssuerCookies } from './issuer-cookies.ts'

/**
 * Header fields, read once from the raw list. What is left in `forwardable` may go upstream: everything that frames the message, belongs
 * to one connection, or could pass for what only this gateway says (who the caller is, where it comes from, what it asks for) is gone.
 */
export interface RequestHeaders {
  /** Lower-case name, value, name, value, … */
  forwardable: string[]
  host: string | undefined
  authorization: string | undefined
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
  /** Whether there may be cookies of the issuer among `forwardable`. */
  issuerCookies: boolean
  /** Fields received, the dropped ones too. */
  count: number
  /** Bytes of their names and values. */
  size: number
}

type Kept = Exclude<keyof RequestHeaders, 'forwardable' | 'issuerCookies' | 'count' | 'size'>
/** `field`: kept apart under that name; `once`: forwarded, but two of it could be read in two ways. */
type Treatment =
  | { do: 'forward' | 'drop' | 'once' | 'connection' | 'cookie' }
  | { do: 'field'; field: Kept; repeatable: boolean }

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
  ],
  // Another method or target than the one that was routed and decided on.
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
  // CGI programs take it for the proxy that they are to use (httpoxy).
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
  ['connection', { do: 'connection' }],
  ['content-type', { do: 'once' }],
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
export const readHeaders = (raw: readonly string[]): RequestHeaders => {
  const headers: RequestHeaders = {
    forwardable: [],
    host: undefined,
    authorization: undefined,
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
    issuerCookies: false,
    count: raw.length / 2,
    size: 0,
  }
  let connection: string | undefined
  let seenOnce: Set<string> | undefined
  for (let index = 0; index < raw.length; index += 2) {
    const { lower, treatment } = namedAs(raw[index]!)
    const value = raw[index + 1]!
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
  }
  if (connection !== undefined && connection !== 'keep-alive' && connection !== 'close') {
    headers.forwardable = without(headers.forwardable, listedIn(connection))
  }
  return headers
}

/** The names that a `Connection` field lists, lower-case (RFC 9110 §7.6.1: not to be forwarded). */
const listedIn = (connection: string): Set<string> =>
  new Set(connection.split(',').map((name) => name.trim().toLowerCase()))

const without = (flat: readonly string[], removed: ReadonlySet<string>): string[] =>
  flat.filter((_, index) => !removed.has(flat[index - (index % 2)]!))

/** Replaces fields of a flat list in place, in whatever spelling they stand there, or adds them. */
export const setFields = (flat: string[], fields: Readonly<Record<string, string>>): void => {
  for (const name in fields) {
    for (let index = flat.length - 2; index >= 0; index -= 2) if (isSpelling(flat[index]!, name)) flat.splice(index, 2)
    flat.push(name, fields[name]!)
  }
}

const isSpelling = (lower: string, name: string): boolean =>
  lower === name || (lower.length === name.length && foldedName(lower) === name)

/** Without other spellings of these names: what the policy sees of a field is all that an upstream gets of it. */
export const withoutOtherSpellings = (flat: readonly string[], names: readonly string[]): string[] =>
  flat.filter((_, index) => {
    const lower = flat[index - (index % 2)]!
    return names.includes(lower) || !names.some((name) => isSpelling(lower, name))
  })

/** For upstreams that are not the issuer. */
export const withoutIssuerCookieFields = (flat: readonly string[]): string[] => {
  const kept: string[] = []
  for (let index = 0; index < flat.length; index += 2) {
    const name = flat[index]!
    const value = name === 'cookie' ? withoutIssuerCookies(flat[index + 1]!) : flat[index + 1]!
    if (value !== undefined) kept.push(name, value)
  }
  return kept
}

/** Of an upstream's answer: of that connection only. `content-length` stays, `transfer-encoding` is made anew. */
const droppedFromAnswers = new Set([
  ...[
    'connection',
    'keep-alive',
    'proxy-connection',
    'proxy-authenticate',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
  ],
  // This gateway's own.
  'x-request-id',
])

/**
 * The fields of an upstream's answer that go to the client, as a flat list. Only the issuer sets its cookies. Throws
 * `AppError` `upstream_protocol_error` for a transfer coding that nobody asked for and nobody takes away (RFC 9112 §7).
 */
export const answerHeaders = (
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  { toIssuer }: { toIssuer: boolean },
): string[] => {
  const { connection, 'transfer-encoding': coding } = headers
  if (coding !== undefined && String(coding).toLowerCase() !== 'chunked') throw problem('upstream_protocol_error')
  const listed = connection === undefined || connection === 'keep-alive' ? undefined : listedIn(String(connection))
  const flat: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || droppedFromAnswers.has(name) || listed?.has(name)) continue
    // RFC 9110 §8.6: such an answer has no content, and so no length of it.
    if (name === 'content-length' && (status === 204 || status < 200)) continue
    if (name === 'set-cookie' && !toIssuer) {
      for (const one of [value].flat()) if (!setsIssuerCookie(one)) flat.push(name, one)
    } else if (typeof value === 'string') flat.push(name, value)
    else for (const one of value) flat.push(name, one)
  }
  return flat
}
