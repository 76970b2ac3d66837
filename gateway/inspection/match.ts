import { AppError } from '../../platform/problem.ts'
import type { Route } from '../config/route.ts'
import { type CanonicalTarget, canonicalTarget, refuse } from '../request/canonical-target.ts'
import { matchTarget, parametersOf, refuseSpelling } from '../request/match-route.ts'
import { parseHost } from '../routing/host.ts'
import { type Asked, missText, type NearMiss, nearMisses } from '../routing/near-misses.ts'
import type { Router } from '../routing/router.ts'
import type { AnswerOf } from './api.ts'

export interface Routes {
  routes: readonly Route[]
  router: Router<Route>
}

/** What `GET /match` answers. */
export const explainMatch = (routes: Routes, method: string, url: string): AnswerOf<'match'> => {
  const found = findRoute(routes, () => targetOf(url, method))
  return {
    ...(found.route && { route: found.route.id }),
    ...(found.params && { params: found.params }),
    ...(found.refused !== undefined && { refused: found.refused }),
    nearMisses: found.misses.map(toldMiss),
  }
}

export const toldMiss = ({ route, differences }: NearMiss<Route>) => ({
  route: route.id,
  because: missText(differences),
  differences: [...differences],
})

export interface FoundRoute {
  route?: Route
  params?: Record<string, string>
  /** Why the gateway takes no such request, whatever its routes; or why this route does not. */
  refused?: string
  misses: NearMiss<Route>[]
}

export interface CanonicalQuestion {
  method: string
  host: string
  target: CanonicalTarget
}

/** The same steps as of a request: one reading of its target, one look-up. @param read throws `AppError`. */
export const findRoute = ({ routes, router }: Routes, read: () => CanonicalQuestion): FoundRoute => {
  let question: CanonicalQuestion
  try {
    question = read()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { refused: error.message, misses: [] }
  }
  const { method, host, target } = question
  const route = matchTarget(router, host, method, target)
  const misses = nearMisses(routes, askedOf(question))
  if (!route) return { misses }
  try {
    refuseSpelling(route, target)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { route, refused: error.message, misses }
  }
  return { route, params: parametersOf(route, target.segments), misses }
}

/** Without parameters of segments, as routes are found. */
const askedOf = ({ method, host, target: { segments } }: CanonicalQuestion): Asked => ({
  method,
  host,
  segments: segments.map((segment) => segment.replace(/;.*/s, '')),
})

/** Read as text: `URL` resolves dot segments and changes characters, which a gateway refuses. */
const targetOf = (url: string, method: string): CanonicalQuestion => {
  const [, scheme = '', authority = '', target = ''] = /^(https?):\/\/([^/?#]*)([^#]*)/i.exec(url) ?? []
  const host = parseHost(authority, scheme.toLowerCase() === 'https' ? 'https' : 'http')
  if (host === undefined) throw refuse('The host cannot be read.')
  return { method, host, target: canonicalTarget(target.startsWith('/') ? target : `/${target}`) }
}
