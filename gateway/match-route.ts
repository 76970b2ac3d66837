import { AppError } from '../platform/problem.ts'
import { refuse } from './canonical-target.ts'
import { originOf, preflightMethod } from './cors.ts'
import { answered, type Stage } from './exchange.ts'
import { nameRecord } from './name-record.ts'
import type { Router } from './routes.ts'

const noParams: Record<string, string> = Object.freeze(nameRecord<string>())

export interface MatchRouteParts {
  router: Router
}

/** Finds the route (404 before any token is looked at) and applies what it says about the path. */
export const createMatchRoute =
  ({ router }: MatchRouteParts): Stage =>
  (exchange) => {
    const { host, method, segments, encodedSlash } = exchange.request!
    const route = router.match(host, method, segments)
    if (!route) throw new AppError('not_found')
    exchange.route = route
    if (route.cors) exchange.answerFields = route.cors.answerFields(originOf(exchange))
    if (encodedSlash && route.encodedSlash !== 'keep') throw refuse('The path holds an encoded slash.')
    exchange.params = noParams
    const { parameters } = route.pattern
    if (parameters.length === 0) return
    const params = nameRecord<string>()
    for (const { name, index } of parameters) params[name] = segments[index]!
    exchange.params = params
  }

/**
 * Answers CORS preflights, which carry no token: the route is that of the method they ask about. Where it has no `cors`, a preflight is an
 * OPTIONS request like any other.
 */
export const createAnswerPreflight =
  ({ router }: MatchRouteParts): Stage =>
  (exchange) => {
    const method = preflightMethod(exchange)
    if (method === undefined) return
    const { host, segments } = exchange.request!
    const route = router.match(host, method, segments)
    if (!route?.cors) return
    exchange.route = route
    route.cors.preflight(exchange.response, originOf(exchange)!, exchange.id)
    return answered
  }
