import type { Route } from '../config/route.ts'
import { setFields } from '../request/headers.ts'
import type { DecidedRequest } from '../request/request-context.ts'
import type { Target } from './targets/target.ts'

/** What the request upstream says: the canonical path, and the fields that were let through plus our own. */

export const upstreamPath = ({ request: { path, query }, route }: DecidedRequest, { basePath }: Target): string =>
  basePath + withPrefix(path, route) + query

const withPrefix = (path: string, { stripSegments, addPrefix }: Route): string => {
  if (stripSegments === 0 && addPrefix === '') return path
  let end = 0
  for (let left = stripSegments; left > 0 && end >= 0; left--) end = path.indexOf('/', end + 1)
  return addPrefix + (end < 0 ? '' : path.slice(end)) || '/'
}

/**
 * As a flat list; `via` names the version that the client spoke (RFC 9110 §7.6.3). Made in the place of `forwardable`,
 * so it is called once for a request.
 */
export const upstreamHeaders = (context: DecidedRequest): string[] => {
  const { id, incoming, headers, request, route, decision, principal, assertion, body } = context
  const { forwardable: flat, authorization, dpop, via } = headers
  const { scheme, host, bodyLength, forwardedFor } = request
  setFields(flat, decision.headers)
  if (principal) for (const text of principal.identityHeaders) flat.push(text)
  if (assertion !== undefined) flat.push('x-auth-assertion', assertion)
  if (route.forwardAuthorization) {
    if (authorization !== undefined) flat.push('authorization', authorization)
    if (dpop !== undefined) flat.push('dpop', dpop)
  }
  const length = body?.length ?? bodyLength
  if (length) flat.push('content-length', String(length))
  flat.push('x-forwarded-for', forwardedFor, 'x-forwarded-proto', scheme, 'x-forwarded-host', host)
  const hop = `${incoming.httpVersion} surrogate`
  flat.push('via', via === undefined ? hop : `${via}, ${hop}`, 'x-request-id', id)
  return flat
}
