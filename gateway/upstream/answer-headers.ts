import type { Route } from '../config/route.ts'
import { problem } from '../refusals/problems.ts'
import { type FieldList, filterFields, pushFields } from '../request/field-list.ts'
import { connectionOptions } from '../request/headers.ts'
import { setsIssuerCookie, withoutClearedCookies } from '../request/issuer-cookies.ts'
import type { RoutedRequest } from '../request/request-context.ts'

/** Of an upstream's answer: of that connection only. `content-length` stays, `transfer-encoding` is made anew. */
const dropped = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade'],
  // This gateway's own.
  'x-request-id',
])

/**
 * The fields of an upstream's answer that go to the client, as a flat list. Only the issuer sets or deletes its
 * cookies. Throws `AppError` `upstream_protocol_error` for a transfer coding that nobody asked for and nobody takes
 * away (RFC 9112 §7).
 */
export const answerHeaders = (
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  { toIssuer, responseHeaders, dpop }: Pick<Route, 'toIssuer' | 'responseHeaders' | 'dpop'>,
): string[] => {
  const { connection, 'transfer-encoding': coding } = headers
  if (coding !== undefined && String(coding).toLowerCase() !== 'chunked') throw problem('upstream_protocol_error')
  const options = connectionOptions(connection === undefined ? undefined : String(connection))
  const removed = responseHeaders?.removed
  const flat: string[] = []
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined || dropped.has(name) || options?.has(name) || removed?.has(name)) continue
    // A client has one nonce for an origin (RFC 9449 §9), and proofs need this gateway's.
    if (dpop !== undefined && name === 'dpop-nonce') continue
    // RFC 9110 §8.6: such an answer has no content, and so no length of it.
    if (name === 'content-length' && (status === 204 || status < 200)) continue
    if (name === 'set-cookie' && !toIssuer) {
      for (const one of [value].flat()) if (!setsIssuerCookie(one)) flat.push(name, one)
    } else if (name === 'clear-site-data' && !toIssuer) {
      const left = withoutClearedCookies(String(value))
      if (left !== undefined) flat.push(name, left)
    } else if (typeof value === 'string') flat.push(name, value)
    else for (const one of value) flat.push(name, one)
  }
  return flat
}

/**
 * Adds the fields that the route and earlier stages set. If the route has CORS rules, the upstream's CORS fields are
 * removed.
 */
export const addAnswerFields = (flat: string[], { answerFields, route }: RoutedRequest): string[] => {
  if (route.responseHeaders) pushFields(flat, route.responseHeaders.set)
  if (!answerFields) return flat
  const kept = route.cors ? withoutCors(flat) : flat
  pushFields(kept, answerFields)
  return kept
}

const withoutCors = (flat: FieldList): string[] => filterFields(flat, (name) => !name.startsWith('access-control-'))
