import { isIP } from 'node:net'
import { isAddress, isOpenAddress } from '../../policies/origin.ts'
import { parsePattern } from '../routing/path-pattern.ts'
import { findConflicts } from '../routing/router.ts'
import { extAuthzContradictions } from './ext-authz-contradictions.ts'
import { insecureSettings } from './insecure-settings.ts'
import { inspectionContradictions } from './inspection-contradictions.ts'
import { listenerContradictions } from './listener-contradictions.ts'
import { pathEqualityOf } from './route.ts'
import { routeContradictions } from './route-contradictions.ts'
import type { GatewayFile } from './settings/file.ts'
import { addressesOf } from './settings/targets.ts'
import { workersOf } from './worker-count.ts'

export interface Contradiction {
  path: PropertyKey[]
  message: string
}

/** Mistakes between members: members that need or exclude each other, routes that tie, insecure settings. */
export const contradictions = (file: GatewayFile): Contradiction[] => {
  const found: Contradiction[] = []
  const report = (path: PropertyKey[], message: string) => void found.push({ path, message })
  const { policies, routes, issuers } = file
  if (policies.path !== undefined && policies.bundle !== undefined) {
    report(['policies', 'bundle'], 'name a path or a bundle, not both')
  }
  for (const { path, message } of policyContradictions(policies)) report(['policies', ...path], message)
  found.push(...insecureSettings(file))
  found.push(...listenerContradictions(file))
  if (file.forwardAuth && file.trustedProxies.length === 0) {
    report(['forwardAuth'], 'needs trustedProxies: only they get decisions')
  }
  if (file.forwardAuth && file.forwardedBy === 'forwarded') {
    report(['forwardedBy'], 'forward-auth reads X-Forwarded-*: all of its dialects write these')
  }
  found.push(...extAuthzContradictions(file))
  for (const [name, settings] of Object.entries(file.upstreams)) {
    if (settings.identityAudience !== undefined && !file.identity) {
      report(['upstreams', name, 'identityAudience'], 'needs identity, with the key to sign with')
    }
    for (const { path, message } of targetContradictions(settings)) report(['upstreams', name, ...path], message)
    for (const { path, message } of tlsContradictions(settings)) report(['upstreams', name, 'tls', ...path], message)
  }
  for (const [index, { issuer, client, revocations, introspection }] of issuers.entries()) {
    if (issuers.findIndex((other) => other.issuer === issuer) < index) {
      report(['issuers', index, 'issuer'], 'this issuer is listed twice')
    }
    if (revocations?.mode === 'feed' && !client) {
      report(['issuers', index, 'revocations'], 'the revocation feed needs a client to read it with')
    }
    if (introspection && !introspection.client && !client) {
      report(['issuers', index, 'introspection'], 'introspection needs a client to ask with')
    }
  }
  for (const [index, entry] of routes.entries()) {
    for (const { path, message } of routeContradictions(entry, file, index)) report(['routes', index, ...path], message)
  }
  found.push(...inspectionContradictions(file))
  return [...found, ...undivided(file), ...ties(file)]
}

/** Limits of what is here now are divided among the workers: each needs one at least. */
const undivided = (file: GatewayFile): Contradiction[] => {
  const count = workersOf(file)
  const limits = [
    { path: ['limits', 'refusedTokens'], limit: file.limits.refusedTokens },
    ...Object.entries(file.upstreams).flatMap(([name, { maxRequests, maxWebSockets }]) => [
      { path: ['upstreams', name, 'maxRequests'], limit: maxRequests },
      { path: ['upstreams', name, 'maxWebSockets'], limit: maxWebSockets },
    ]),
  ]
  const longest = Math.max(0, ...file.routes.map(({ policyBody }) => policyBody?.maxBytes ?? 0))
  // A body that grows is copied.
  if (file.limits.policyBodies < 2 * longest * count) {
    const message = `must be at least ${2 * longest * count}: two of the longest bodies for each of the workers (${count})`
    return [{ path: ['limits', 'policyBodies'], message }]
  }
  return limits.flatMap(({ path, limit }) =>
    limit < count
      ? [{ path, message: `${path.at(-1)} is divided among the ${count} workers: must be at least ${count}` }]
      : [],
  )
}

const targetContradictions = ({ url, targets, dns, health }: GatewayFile['upstreams'][string]): Contradiction[] => {
  if (url !== undefined && targets) return [{ path: ['targets'], message: 'name url or targets, not both' }]
  const written = targets?.map((target) => target.url) ?? (url === undefined ? [] : [url])
  if (written.length === 0) return [{ path: [], message: 'url or targets is needed' }]
  const found: Contradiction[] = []
  const seen = new Set<string>()
  for (const [index, text] of (targets ? written : []).entries()) {
    const { href } = new URL(text)
    if (seen.has(href)) found.push({ path: ['targets', index, 'url'], message: 'this target is listed twice' })
    seen.add(href)
  }
  if (dns && written.every((text) => isIP(new URL(text).hostname.replace(/^\[|\]$/g, '')) > 0)) {
    found.push({ path: ['dns'], message: 'needs a target with a name: these are addresses' })
  }
  if (health && health.timeout > health.interval) {
    found.push({
      path: ['health', 'timeout'],
      message: 'timeout must not be longer than interval',
    })
  }
  return found
}

const tlsContradictions = (settings: GatewayFile['upstreams'][string]): Contradiction[] => {
  const { tls } = settings
  if (!tls) return []
  if (tls.cert !== undefined && tls.key === undefined)
    return [{ path: ['cert'], message: 'needs key, its private key' }]
  if (tls.key !== undefined && tls.cert === undefined)
    return [{ path: ['key'], message: 'needs cert, its certificate' }]
  return addressesOf(settings).some(({ url }) => /^https:/i.test(url))
    ? []
    : [{ path: [], message: 'needs a target with https' }]
}

/** Of the routes whose path can be read. */
const ties = (file: GatewayFile): Contradiction[] => {
  const routes = file.routes.flatMap((entry, index) => {
    const pattern = parsePattern(entry.path)
    return typeof pattern === 'string' ? [] : [{ ...entry, index, pattern, pathEquality: pathEqualityOf(entry, file) }]
  })
  return findConflicts(routes).map(({ first, second, method }) => {
    const what = method === '*' ? 'every method' : method
    return {
      path: ['routes', second.index, 'path'],
      message: `the routes ${first.id} and ${second.id} tie: both match ${what} ${second.pattern.text}`,
    }
  })
}

const policyContradictions = ({
  path,
  bundle,
  token,
  cache,
  verify,
  shadow,
}: GatewayFile['policies']): Contradiction[] => {
  const found: Contradiction[] = []
  const addresses = { bundle, shadow }
  if (path !== undefined && isAddress(path)) found.push({ path: ['path'], message: 'an address is named with bundle' })
  for (const [name, address] of Object.entries(addresses)) {
    if (address === undefined || verify || !isOpenAddress(address)) continue
    found.push({ path: [name], message: 'needs https, or verify: whoever is on the way could replace the rules' })
  }
  for (const [name, value] of Object.entries({ token, cache })) {
    if (value === undefined || Object.values(addresses).some((place) => place !== undefined && isAddress(place)))
      continue
    found.push({ path: [name], message: 'needs a bundle that is an address' })
  }
  if (verify && bundle === undefined)
    found.push({ path: ['verify'], message: 'needs a bundle; a folder of rules is not signed' })
  return found
}
