import { decisionOf } from '../../policies/decide.ts'
import { signInLacks } from '../authorize/step-up.ts'
import type { Route } from '../config/route.ts'
import { canonicalTarget } from '../request/canonical-target.ts'
import { foldedTarget } from '../request/match-route.ts'
import type { NearMiss } from '../routing/near-misses.ts'
import type { Remedy } from './explanation.ts'
import { findRoute, type Routes } from './match.ts'
import { boundTo, type RecordedInput, touches } from './recorded-input.ts'

/** An input, and what its evaluation took. */
export type Evaluate = (question: {
  entrypoint: string
  input: unknown
}) => Promise<{ units: number } & ({ result: unknown } | { error: string })>

export interface RemedyParts {
  entrypoint: string
  input: RecordedInput
  /** That the token lacks. */
  missing: readonly string[]
  misses: readonly NearMiss<Route>[]
  routes: Routes
  /** JSON pointers to what the record does not have. */
  hidden: readonly string[]
  evaluate: Evaluate
  /** Of one evaluation. */
  units: number
}

/** A change of the request, with what the policy would be asked. `reads`: what the record must have for that. */
interface Candidate {
  remedy: Remedy
  name: string
  reads: readonly string[]
  /** What a policy of another route would see, and the record never had: JSON pointers. */
  lacks?: readonly string[]
  /** Undefined: the request would not come as far as the policy. */
  ask: () => { entrypoint: string; input: unknown } | undefined
}

/** Second evaluations for one explanation. */
const mostEvaluations = 16
/** How often the units of one evaluation all of them together may take. */
const mostUnits = 4

/**
 * What would have allowed a request, of: one missing scope (or all), nobody acting, a similar request that another
 * route takes. Each is named only when the policies in force allow it. `notes`: what was not tried, and why.
 */
export const findRemedies = async (parts: RemedyParts): Promise<{ remedies: Remedy[]; notes: string[] }> => {
  const { hidden, evaluate } = parts
  const remedies: Remedy[] = []
  const notes: string[] = []
  let evaluations = 0
  let units = 0
  for (const { remedy, name, reads, lacks = [], ask } of candidates(parts)) {
    const missing = [...hidden.filter((pointer) => reads.some((read) => touches(pointer, read))), ...lacks]
    if (missing.length > 0) {
      notes.push(`${name} was not tried, since the record lacks ${missing.join(', ')}.`)
      continue
    }
    // All of the missing scopes, when one is enough.
    if (remedy.change === 'scope' && remedies.some(({ change }) => change === 'scope')) continue
    const question = ask()
    if (!question) continue
    if (evaluations === mostEvaluations || units >= mostUnits * parts.units) {
      notes.push('Not everything was tried: the rules took too many units of work.')
      break
    }
    const reply = await evaluate(question)
    evaluations++
    units += reply.units
    if ('result' in reply && decisionOf(reply.result).allow) remedies.push(remedy)
  }
  return { remedies, notes }
}

const mostScopes = 8

const candidates = (parts: RemedyParts): Candidate[] => {
  const { entrypoint, input, missing, misses } = parts
  const scopes = [
    ...missing.slice(0, mostScopes).map((scope) => [scope]),
    ...(missing.length > 1 ? [[...missing]] : []),
  ]
  return [
    ...scopes.map(
      (added): Candidate => ({
        remedy: { change: 'scope', scopes: added },
        name: `The scope ${added.join(' ')}`,
        reads: ['/input/token/scopes', '/input/token/claims/scope'],
        ask: () => ({ entrypoint, input: withScopes(input, added) }),
      }),
    ),
    ...(input.actor
      ? [
          {
            remedy: { change: 'no-actor' } as const,
            name: 'Nobody acting for the subject',
            reads: ['/input/actor', '/input/token/claims/act', '/input/token/sid'],
            ask: () => ({ entrypoint, input: withoutActor(input) }),
          },
        ]
      : []),
    ...misses.flatMap(({ route, takes }): Candidate[] => {
      if (!takes) return []
      const path = pathOf(takes.segments)
      return [
        {
          remedy: { change: 'route', route: route.id, method: takes.method, host: takes.host, path },
          name: `The route ${route.id}`,
          reads: [
            '/input/request',
            '/input/route',
            ...(route.auth === 'none' ? [] : ['/input/token/iss', '/input/token/aud', '/input/token/claims/cnf']),
          ],
          lacks: lackedBy(parts, route),
          ask: () => ofRoute(parts, route, { method: takes.method, host: takes.host, path }),
        },
      ]
    }),
  ]
}

const withScopes = (input: RecordedInput, added: readonly string[]): object => {
  const { token } = input
  const scopes = [...(token?.scopes ?? []), ...added]
  return { ...input, token: { ...token, scopes, claims: { ...token?.claims, scope: scopes.join(' ') } } }
}

/** A token of the subject's own: neither `act` nor the session of an impersonation. */
const withoutActor = ({ actor: _, ...input }: RecordedInput): object => {
  const { act: __, sid: claimed, ...claims } = input.token?.claims ?? {}
  const { sid, ...token } = input.token ?? {}
  const impersonated = token['impersonation'] === true
  return {
    ...input,
    token: {
      ...token,
      ...(!impersonated && sid !== undefined && { sid }),
      impersonation: false,
      claims: { ...claims, ...(!impersonated && claimed !== undefined && { sid: claimed }) },
    },
  }
}

/** Of the request: what the route shows to its policy, and the one that took it does not. */
const lackedBy = ({ input: { request, route }, routes }: RemedyParts, other: Route): string[] => {
  const own = routes.routes.find(({ id }) => id === route?.['id'])
  const mayHaveBody = !['GET', 'HEAD'].includes(request?.method ?? '')
  return [
    ...(other.policyBody && !own?.policyBody && mayHaveBody ? ['/input/request/body'] : []),
    ...(other.policyHeaders.every((name) => own?.policyHeaders.includes(name)) ? [] : ['/input/request/headers']),
  ]
}

/** What its policy would be asked, when the request finds this route and the token is good there. */
const ofRoute = (
  { input, routes }: RemedyParts,
  route: Route,
  { method, host, path }: { method: string; host: string; path: string },
) => {
  const target = canonicalTarget(path)
  const found = findRoute(routes, () => ({ method, host, target }))
  if (found.route !== route || found.refused !== undefined) return undefined
  const { token, subject, actor, client, organization, ...rest } = input
  const isOpen = route.auth === 'none'
  if (!isOpen && !isGoodFor(route, input)) return undefined
  const { id, scopes, audience, impersonation, context, entrypoint } = route
  const { segments } = target
  const { body, ...bodiless } = input.request ?? {}
  const shown = route.policyBody && body !== undefined ? { ...bodiless, body } : bodiless
  const request = { ...shown, method, host, path: target.path, segments, folded: foldedTarget(route, target) }
  return {
    entrypoint,
    input: {
      ...rest,
      request,
      route: { id, params: found.params, scopes, audience, impersonation, context },
      ...(!isOpen && { token, subject, actor, client, organization }),
    },
  }
}

const isGoodFor = (route: Route, { token, now = 0 }: RecordedInput): boolean => {
  if (token?.iss === undefined || !route.issuers.includes(token.iss)) return false
  if (!token.aud?.some((one) => route.audience.includes(one))) return false
  const bound = boundTo(token.claims)
  if (route.dpop === undefined ? bound === 'key' : route.dpop === 'required' && bound !== 'key') return false
  return signInLacks(route, token as never, now) === undefined
}

/** Everything but unreserved characters and what may stand in a segment is percent-encoded (RFC 3986 §3.3). */
const pathOf = (segments: readonly string[]): string =>
  `/${segments.map((segment) => encodeURIComponent(segment).replace(mayStand, decodeURIComponent)).join('/')}`

const mayStand = /%(?:24|26|2B|2C|3A|3D|40)/g
