import { foldedPath, type SpeltPath, withoutMatrixParameters } from '../../policies/path-equality.ts'
import type { Route } from '../config/route.ts'
import { problem } from '../refusals/problems.ts'
import type { Router } from '../routing/router.ts'
import { type CanonicalTarget, refuse } from './canonical-target.ts'
import { originOf, withoutIssuerCookieFields, withoutOtherSpellings } from './headers.ts'
import { nameRecord } from './name-record.ts'
import type { ReadRequest, Stage } from './request-context.ts'

const noParams: Record<string, string> = Object.freeze(nameRecord<string>())

export interface MatchRouteParts {
  router: Router<Route>
}

type Target = Pick<CanonicalTarget, 'path' | 'segments' | 'encodedSlash' | 'semicolon'>

/** By the names of its segments, without their parameters: with parameters a path must not find a less exact route. */
export const matchTarget = (router: Router<Route>, host: string, method: string, target: Target): Route | undefined =>
  router.match(host, method, target.semicolon ? withoutMatrixParameters(target).segments : target.segments)

/**
 * How the target looks to an upstream that tells apart only what `pathEquality` of the route does, and knows parameters
 * of segments.
 */
export const foldedTarget = ({ pathEquality }: Route, target: Target): SpeltPath =>
  foldedPath(target.semicolon ? withoutMatrixParameters(target) : target, pathEquality)

/** Throws `AppError` `invalid_request` for what only some routes allow in a path. */
export const refuseSpelling = (route: Route, { encodedSlash, semicolon }: Target): void => {
  if (encodedSlash && route.encodedSlash !== 'keep') throw refuse('The path holds an encoded slash.')
  if (semicolon && route.matrixParameters !== 'keep') throw refuse('The path holds a semicolon.')
}

/** Finds the route (404 before any token is looked at) and applies what it says about path and header fields. */
export const createMatchRoute =
  ({ router }: MatchRouteParts): Stage<ReadRequest> =>
  (context) => {
    const { request, headers } = context
    const route = matchTarget(router, request.host, request.method, request)
    if (!route) throw problem('not_found')
    context.route = route
    if (route.cors) context.answerFields = route.cors.answerFields(originOf(headers))
    refuseSpelling(route, request)
    if (route.policyHeaders.length > 0) {
      headers.forwardable = withoutOtherSpellings(headers.forwardable, route.policyHeaders)
    }
    if (headers.issuerCookies && !route.toIssuer) headers.forwardable = withoutIssuerCookieFields(headers.forwardable)
    context.params = parametersOf(route, request.segments)
  }

export const parametersOf = (
  { pattern: { parameters } }: Route,
  segments: readonly string[],
): Record<string, string> => {
  if (parameters.length === 0) return noParams
  const params = nameRecord<string>()
  for (const { name, index } of parameters) params[name] = segments[index]!
  return params
}
