import { canonicalTarget } from '../../request/canonical-target.ts'
import type { CanonicalRequest } from '../../request/request-context.ts'
import { parseHost } from '../../routing/host.ts'

/** The address of a request as its client knows it, without the query: what `htu` must name (RFC 9449 §4.2). */
export const targetUriOf = ({ scheme, host, path }: Pick<CanonicalRequest, 'scheme' | 'host' | 'path'>): string =>
  `${scheme}://${host}${path}`

/**
 * Whether `htu` names that address: compared after the normalisation of RFC 3986 §6.2.2 and §6.2.3, query and fragment
 * ignored (RFC 9449 §4.3). What the gateway takes in no request (dot segments, user names, escapes in the host) names
 * nothing.
 */
export const namesTarget = (htu: string, target: string): boolean => {
  if (htu === target) return true
  const [, scheme = '', authority = '', path = ''] = /^(https?):\/\/([^/?#]+)([^?#]*)/i.exec(htu) ?? []
  const protocol = scheme.toLowerCase() as 'http' | 'https'
  const host = parseHost(authority, protocol)
  if (host === undefined) return false
  try {
    return targetUriOf({ scheme: protocol, host, path: canonicalTarget(path || '/').path }) === target
  } catch {
    return false
  }
}
