import { didYouMean } from '../../platform/nearest.ts'
import { parsePattern } from '../routing/path-pattern.ts'
import type { Contradiction } from './contradictions.ts'
import { forwardingContradictions } from './forwarding-contradictions.ts'
import { issuersOf, pathEqualityOf } from './route.ts'
import type { GatewayFile } from './settings/file.ts'
import type { RouteEntry } from './settings/route.ts'

/** Mistakes between members of one route, and between it and the rest of the file. Paths are within the route. */
export const routeContradictions = (entry: RouteEntry, file: GatewayFile, index: number): Contradiction[] => {
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

const hasCaseBeyondAscii = (text: string): boolean =>
  [...text].some((letter) => letter > '\u007f' && letter.toLowerCase() !== letter.toUpperCase())
