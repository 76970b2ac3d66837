import { nothingIsEqual, type PathEquality } from '../../policies/path-equality.ts'
import { type PathPattern, parsePattern } from '../routing/path-pattern.ts'
import { type CorsRules, corsWithDpop, createCorsRules } from './cors-rules.ts'
import { resourceMetadataUrl } from './resource-metadata.ts'
import type { GatewayFile } from './settings/file.ts'
import type { RateLimitSettings, RouteEntry } from './settings/route.ts'

/** Settings that depend on other members of the file, or that are prepared before the first request. */
type Resolved =
  | 'path'
  | 'issuers'
  | 'entrypoint'
  | 'bodySize'
  | 'stripPrefix'
  | 'rewrite'
  | 'responseHeaders'
  | 'cors'
  | 'rateLimit'

/** Fields of answers that the file changes. */
export interface ResponseHeaders {
  /** Of the upstream's answers: those that are removed, and those that are set anew. */
  readonly removed: ReadonlySet<string>
  readonly set: Readonly<Record<string, string>>
}

/** Where a request goes and what is asked of it: an entry of `routes:` as `settings/route.ts` describes it. */
export interface Route extends Omit<RouteEntry, Resolved> {
  readonly pattern: PathPattern
  /** Whose tokens are taken; empty = nobody's. */
  readonly issuers: readonly string[]
  readonly entrypoint: string
  /** Bytes. */
  readonly bodySize: number
  /** How many leading segments are left out upstream. */
  readonly stripSegments: number
  /** What stands in their place; without a final slash, empty = nothing. */
  readonly addPrefix: string
  readonly responseHeaders: ResponseHeaders | undefined
  readonly cors: CorsRules | undefined
  readonly rateLimits: readonly RateLimitSettings[]
  /** Which spellings of a path the upstream takes for the same. */
  readonly pathEquality: PathEquality
  /** Whether the upstream is the issuer: no other upstream gets or sets its cookies. */
  readonly toIssuer: boolean
  /** Where challenges send a client that lacks a good token (RFC 9728 §5.1). */
  readonly resourceMetadata: string | undefined
}

/** An entry that `contradictions` found nothing wrong with, as the gateway uses it. */
export const routeOf = (entry: RouteEntry, file: GatewayFile): Route => {
  const { policies, limits, resourceMetadata } = file
  const { path, stripPrefix, entrypoint = policies.entrypoint, bodySize = limits.bodySize, ...others } = entry
  const { cors, rateLimit: rateLimits, rewrite, responseHeaders, ...rest } = others
  const pattern = parsePattern(path)
  const stripSegments =
    typeof pattern === 'string' ? undefined : strippedSegments(rewrite?.prefix.from ?? stripPrefix, pattern)
  if (typeof pattern === 'string' || stripSegments === undefined)
    throw new Error(`the route ${entry.id} is not checked`)
  return {
    ...rest,
    pattern,
    issuers: issuersOf(entry, file.issuers),
    entrypoint,
    bodySize,
    stripSegments,
    addPrefix: rewrite?.prefix.to.replace(/\/$/, '') ?? '',
    responseHeaders: responseHeaders && {
      removed: new Set([...responseHeaders.remove, ...Object.keys(responseHeaders.set)]),
      set: responseHeaders.set,
    },
    cors: cors && createCorsRules(entry.dpop === undefined ? cors : corsWithDpop(cors), entry.methods),
    rateLimits,
    pathEquality: pathEqualityOf(entry, file),
    toIssuer: file.upstreams[entry.upstream]?.issuer ?? false,
    resourceMetadata: resourceMetadata ? resourceMetadataUrl(entry) : undefined,
  }
}

/** What the upstream takes for the same, or what is behind the proxy that asks. */
export const pathEqualityOf = (entry: RouteEntry, { upstreams, forwardAuth, extAuthz }: GatewayFile): PathEquality =>
  (entry.upstream === '' ? (forwardAuth ?? extAuthz) : upstreams[entry.upstream])?.pathEquality ?? nothingIsEqual

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
