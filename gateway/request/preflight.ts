import { onlyField, originOf } from './headers.ts'
import { type MatchRouteParts, matchTarget } from './match-route.ts'
import { answered, type ReadRequest, type Stage } from './request-context.ts'

/**
 * Answers CORS preflights, which carry no token: the route is that of the method they ask about. Where it has no
 * `cors`, a preflight is an OPTIONS request like any other. Which pages may ask is in `config/cors-rules.ts`.
 */
export const createAnswerPreflight =
  ({ router }: MatchRouteParts): Stage<ReadRequest> =>
  (context) => {
    const { request, headers, response, id } = context
    if (request.method !== 'OPTIONS') return
    const origin = originOf(headers)
    const method = origin === undefined ? undefined : onlyField(headers, 'access-control-request-method')
    if (origin === undefined || method === undefined) return
    const route = matchTarget(router, request.host, method, request)
    if (!route?.cors) return
    context.route = route
    response.writeHead(204, { ...route.cors.preflightFields(origin), 'x-request-id': id }).end()
    return answered
  }
