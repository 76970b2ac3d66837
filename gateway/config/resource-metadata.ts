import { supportedAlgorithms } from '../../platform/jwt/algorithms.ts'
import type { Route } from './route.ts'
import type { RouteEntry } from './settings/route.ts'

/**
 * Protected-resource metadata (RFC 9728): where a client that got a 401 learns which issuers to ask for a token, and
 * for which scopes. A resource is an audience of a route that is an http(s) URL.
 */

const wellKnown = '/.well-known/oauth-protected-resource'

/** RFC 9728 §1.2: no fragment. URLs with a query are left out: it would belong to the address of the document. */
const resourceUrl = (audience: string): URL | undefined => {
  const url = URL.canParse(audience) ? new URL(audience) : undefined
  const usable = url && /^https?:$/.test(url.protocol) && url.username === '' && !/[?#]/.test(audience)
  return usable ? url : undefined
}

/** RFC 9728 §3.1: the well-known part goes between host and path; a final slash of a bare host goes. */
const documentPath = ({ pathname }: URL): string => wellKnown + (pathname === '/' ? '' : pathname)

/** For the `resource_metadata` of challenges; undefined when no audience of the route is a URL. */
export const resourceMetadataUrl = ({ auth, audience }: Pick<RouteEntry, 'auth' | 'audience'>): string | undefined => {
  if (auth === 'none') return undefined
  const url = audience.map(resourceUrl).find((one) => one !== undefined)
  return url && url.origin + documentPath(url)
}

/** One document for every resource; `resource` is spelt exactly as tokens must name it. */
export const protectedResourceDocuments = (
  routes: readonly Pick<Route, 'auth' | 'issuers' | 'audience' | 'scopes' | 'dpop'>[],
): { host: string; path: string; body: string }[] => {
  const resources = new Map<string, { issuers: Set<string>; scopes: Set<string>; dpop: Set<Route['dpop']> }>()
  for (const route of routes) {
    if (route.auth === 'none') continue
    for (const audience of route.audience) {
      const known = resources.get(audience) ?? { issuers: new Set(), scopes: new Set(), dpop: new Set() }
      for (const issuer of route.issuers) known.issuers.add(issuer)
      for (const scope of route.scopes) known.scopes.add(scope)
      known.dpop.add(route.dpop)
      resources.set(audience, known)
    }
  }
  return [...resources].flatMap(([resource, { issuers, scopes, dpop }]) => {
    const url = resourceUrl(resource)
    if (!url) return []
    const body = {
      resource,
      authorization_servers: [...issuers],
      ...(scopes.size > 0 && { scopes_supported: [...scopes].sort() }),
      bearer_methods_supported: ['header'],
      ...((dpop.has('required') || dpop.has('accepted')) && {
        dpop_signing_alg_values_supported: supportedAlgorithms,
      }),
      // Of all its routes: a client that can do without would otherwise be sent away.
      ...(dpop.size === 1 && dpop.has('required') && { dpop_bound_access_tokens_required: true }),
    }
    return [{ host: url.host, path: documentPath(url), body: JSON.stringify(body) }]
  })
}
