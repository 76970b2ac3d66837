import { refuse } from './canonical-target.ts'
import { valuesOf } from './field-list.ts'
import { type MatchRouteParts, matchTarget } from './match-route.ts'
import { answered, type ReadRequest, type Stage } from './request-context.ts'

/** What pages of other origins ask for (Fetch standard, CORS protocol); which of them may is in `config/cors-rules.ts`. */

/** The value of a field that a request has at most once. Throws `AppError` `invalid_request`. */
const onlyField = ({ headers }: ReadRequest, name: string): string | undefined => {
  const [value, ...others] = valuesOf(headers.forwardable, name)
  if (others.length > 0) throw refuse(`The request has more than one ${name} field.`)
  return value
}

export const originOf = (context: ReadRequest): string | undefined => onlyField(context, 'origin')

/**
 * Answers CORS preflights, which carry no token: the route is that of the method they ask about. Where it has no
 * `cors`, a preflight is an OPTIONS request like any other.
 */
export const createAnswerPreflight =
  ({ router }: MatchRouteParts): Stage<ReadRequest> =>
  (context) => {
    const { request, response, id } = context
    if (request.method !== 'OPTIONS') return
    const origin = originOf(context)
    if (origin === undefined) return
    const method = onlyField(context, 'access-control-request-method')
    if (method === undefined) return
    const route = matchTarget(router, request.host, method, request)
    if (!route?.cors) return
    context.route = route
    response.writeHead(204, { ...route.cors.preflightFields(origin), 'x-request-id': id }).end()
    return answered
  }
