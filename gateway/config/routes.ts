import { nothingIsEqual, type PathEquality } from '../../policies/path-equality.ts'
import { type PathPattern, parsePattern, type Route } from '../routing/path-pattern.ts'
import { createCors } from './cors.ts'
import { resourceMetadataUrl } from './protected-resource.ts'
import type { GatewayFile, RouteEntry } from './schema.ts'

/** An entry of `routes:` as the gateway uses it. Its path and prefix must have been found right. */
export const routeOf = (entry: RouteEntry, file: GatewayFile): Route => {
  const { issuers, policies, limits, resourceMetadata } = file
  const { path, stripPrefix, entrypoint = policies.entrypoint, bodySize = limits.bodySize, ...others } = entry
  const { cors, rateLimit: rateLimits, ...rest } = others
  const pattern = parsePattern(path) as PathPattern
  return {
    ...rest,
    issuers: issuersOf(entry, issuers),
    pathEquality: pathEqualityOf(entry, file),
    toIssuer: file.upstreams[entry.upstream]?.issuer ?? false,
    pattern,
    entrypoint,
    bodySize,
    cors: cors && createCors(cors, entry.methods),
    rateLimits,
    stripSegments: strippedSegments(stripPrefix, pattern)!,
    resourceMetadata: resourceMetadata ? resourceMetadataUrl(entry) : undefined,
  }
}

/** What the upstream takes for the same, or what is behind the proxy that asks. */
export const pathEqualityOf = ({ upstream }: RouteEntry, { upstreams, forwardAuth }: GatewayFile): PathEquality =>
  (upstream === '' ? forwardAuth : upstreams[upstream])?.pathEquality ?? nothingIsEqual

/** Where there is one issuer a route need not name it. */
export const issuersOf = ({ auth, issuers }: RouteEntry, all: GatewayFile['issuers']): string[] =>
  auth === 'none' ? [] : (issuers ?? all.map(({ issuer }) => issuer))

/** How many segments `stripPrefix` is; undefined when it is no literal beginning of the pattern. */
export const strippedSegments = (prefix: string | null, { segments }: PathPattern): number | undefined => {
  if (prefix === null || prefix === '' || prefix === '/') return 0
  if (!prefix.startsWith('/')) return undefined
  const parts = prefix.replace(/\/$/, '').slice(1).split('/')
  return parts.every((part, index) => part !== '' && segments[index] === part) ? parts.length : undefined
}
