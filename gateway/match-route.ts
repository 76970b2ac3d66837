import { AppError } from '../platform/problem.ts'
import { refuse } from './canonical-target.ts'
import type { Stage } from './exchange.ts'
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
    if (encodedSlash && route.encodedSlash !== 'keep') throw refuse('The path holds an encoded slash.')
    exchange.params = noParams
    const { parameters } = route.pattern
    if (parameters.length === 0) return
    const params = nameRecord<string>()
    for (const { name, index } of parameters) params[name] = segments[index]!
    exchange.params = params
  }
