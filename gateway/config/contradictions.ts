import { isIP } from 'node:net'
import { didYouMean } from '../../platform/nearest.ts'
import { isAddress, isOpenAddress } from '../../policies/origin.ts'
import { parsePattern } from '../routing/path-pattern.ts'
import { findConflicts } from '../routing/router.ts'
import { extAuthzContradictions } from './ext-authz-contradictions.ts'
import { forwardingContradictions } from './forwarding-contradictions.ts'
import { insecureSettings } from './insecure-settings.ts'
import { inspectionContradictions } from './inspection-contradictions.ts'
import { issuersOf, pathEqualityOf } from './route.ts'
import { isSameListener } from './same-listener.ts'
import type { GatewayFile } from './settings/file.ts'
import type { RouteEntry } from './settings/route.ts'
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
  if (isSameListener(file.listen, file.admin)) report(['listen', 'port'], 'listen and admin have the same port')
  if (file.listen.http2 && !file.listen.tls) report(['listen', 'http2'], 'needs tls: clients choose HTTP/2 there')
  if (file.listen.tls?.clientCertificate !== undefined && file.listen.tls.clientCa === undefined) {
    report(['listen', 'tls', 'clientCertificate'], 'needs clientCa, to verify certificates with')
  }
  if (file.forwardAuth && file.trustedProxies.length === 0) {
    report(['forwardAuth'], 'needs trustedProxies: only they get decisions')
  }
  if (file.forwardAuth && file.forwardedBy === 'forwarded') {
    report(['forwardedBy'], 'forward-auth reads X-Forwarded-*: all of its dialects write these')
  }
  for (const { path, message } of extAuthzContradictions(file)) report(path, message)
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

/** No issuer vouches for a route that does not name it, so with several of them every route must. */
const issuerContradictions = (entry: RouteEntry, issuers: GatewayFile['issuers']): Contradiction[] => {
  const { auth, issuers: named, acceptPersonalAccessTokens } = entry
  if (auth === 'none') return named ? [{ path: ['issuers'], message: 'a route with auth: none takes no token' }] : []
  if (!named && issuers.length > 1) {
    const message = 'issuers is needed: the file has more than one issuer, and each route says whose tokens it takes'
    return [{ path: ['id'], message }]
  }
  const found = (named ?? []).flatMap((name, index): Contradiction[] =>
    issuers.some(({ issuer }) => issuer === name)
      ? []
      : [{ path: ['issuers', index], message: `there is no issuer ${name}` }],
  )
  const taken = issuersOf(entry, issuers)
  const asked = issuers.filter(({ issuer, introspection }) => introspection && taken.includes(issuer))
  if (asked.length > 1) {
    const names = asked.map(({ issuer }) => issuer).join(' and ')
    const message = `${names} have introspection, and an opaque token does not say whose it is: take one of them`
    found.push({ path: [named ? 'issuers' : 'id'], message })
  }
  if (acceptPersonalAccessTokens && !issuers.some(({ issuer, client }) => client && taken.includes(issuer))) {
    const message = 'needs an issuer of the route with a client to exchange them with'
    found.push({ path: ['acceptPersonalAccessTokens'], message })
  }
  return found
}

/** Settings that no request could satisfy, or that would never be asked. */
const signInContradictions = ({ acr, maxAuthAge, auth, acceptPersonalAccessTokens }: RouteEntry): Contradiction[] => {
  const demands = [...(acr.length > 0 ? ['acr'] : []), ...(maxAuthAge === undefined ? [] : ['maxAuthAge'])]
  if (auth === 'none')
    return demands.map((name) => ({ path: [name], message: 'a route with auth: none takes no token' }))
  if (!acceptPersonalAccessTokens || demands.length === 0) return []
  const message = `${demands.join(' and ')} would refuse every one of them: they do not say how their user signed in`
  return [{ path: ['acceptPersonalAccessTokens'], message }]
}

/** Personal access tokens are bound to no key, and neither is what they are exchanged for. */
const dpopContradictions = ({ dpop, auth, acceptPersonalAccessTokens }: RouteEntry): Contradiction[] => {
  if (dpop === undefined) return []
  if (auth === 'none') return [{ path: ['dpop'], message: 'a route with auth: none takes no token' }]
  if (dpop !== 'required' || !acceptPersonalAccessTokens) return []
  return [{ path: ['acceptPersonalAccessTokens'], message: 'dpop: required would refuse every one of them' }]
}

const routeContradictions = (entry: RouteEntry, file: GatewayFile, index: number): Contradiction[] => {
  const found: Contradiction[] = []
  if (file.routes.findIndex((other) => other.id === entry.id) < index) {
    found.push({ path: ['id'], message: `the id ${entry.id} is used twice` })
  }
  if (entry.upstream === '') {
    if (!file.forwardAuth && !file.extAuthz) {
      found.push({ path: ['id'], message: 'upstream is needed, unless forwardAuth or extAuthz is set' })
    }
  } else if (!Object.hasOwn(file.upstreams, entry.upstream)) {
    const meant = didYouMean(entry.upstream, Object.keys(file.upstreams))
    found.push({ path: ['upstream'], message: `there is no upstream ${entry.upstream}${meant}` })
  }
  if (entry.auth === 'required' && entry.audience.length === 0) {
    found.push({ path: ['id'], message: 'audience is needed with auth: required' })
  }
  if (entry.auth === 'required' && file.issuers.length === 0) {
    found.push({ path: ['id'], message: 'auth: required needs an issuer' })
  }
  found.push(...issuerContradictions(entry, file.issuers))
  if (entry.auth === 'none' && entry.scopes.length > 0) {
    found.push({ path: ['scopes'], message: 'scopes cannot be required with auth: none' })
  }
  found.push(...signInContradictions(entry), ...dpopContradictions(entry))
  if (entry.acceptPersonalAccessTokens && entry.auth === 'none') {
    found.push({ path: ['acceptPersonalAccessTokens'], message: 'a route with auth: none takes no token' })
  }
  if (entry.cors?.credentials && entry.cors.origins.includes('*')) {
    found.push({ path: ['cors', 'credentials'], message: 'credentials for pages of any origin: name the origins' })
  }
  const limits = entry.rateLimit.map(({ name }) => name)
  if (new Set(limits).size < limits.length) {
    found.push({ path: ['rateLimit'], message: 'two limits have the same name: give each one of its own' })
  }
  if (entry.auth === 'none' && entry.rateLimit.some(({ by }) => by !== 'address')) {
    found.push({ path: ['rateLimit'], message: 'a route with auth: none can only be limited by address' })
  }
  if (entry.websocket && entry.methods.length > 0 && !entry.methods.includes('GET')) {
    found.push({ path: ['websocket'], message: 'a WebSocket is opened with GET, which is not among the methods' })
  }
  const pattern = parsePattern(entry.path)
  if (typeof pattern !== 'string' && pathEqualityOf(entry, file).case === 'insensitive') {
    const odd = pattern.segments.find((literal) => literal !== null && hasCaseBeyondAscii(literal))
    const message = `APIs differ in whether letters beyond ASCII are the same in capitals: write a {parameter} in the place of "${odd}"`
    if (odd !== undefined) found.push({ path: ['path'], message })
  }
  if (typeof pattern === 'string') found.push({ path: ['path'], message: `the path ${pattern}` })
  else found.push(...forwardingContradictions(entry, file, pattern))
  return found
}

const hasCaseBeyondAscii = (text: string): boolean =>
  [...text].some((letter) => letter > '\u007f' && letter.toLowerCase() !== letter.toUpperCase())
