import type { Route } from '../config/route.ts'
import { problem } from '../refusals/problems.ts'
import type { AnswerOf, QueryOf } from './api.ts'

type ShownRoute = AnswerOf<'routes'>['routes'][number]

/**
 * As the router prefers them: a named host before any, then from left to right a literal before a parameter before
 * `**`. Routes that no request could fit both of stand in an order all the same, by their names.
 */
export const routesInOrder = (routes: readonly Route[]): ShownRoute[] =>
  routes
    .toSorted((one, other) => comparePreference(one, other) || (one.id < other.id ? -1 : 1))
    .map(({ id, hosts, pattern, methods, upstream, auth, issuers, audience, scopes, entrypoint, impersonation }) => ({
      id,
      hosts: [...hosts],
      path: pattern.text,
      methods: [...methods],
      ...(upstream !== '' && { upstream }),
      auth,
      issuers: [...issuers],
      audience: [...audience],
      scopes: [...scopes],
      entrypoint,
      impersonation,
    }))

/** A page of those that fit. The cursor is the id of the last route of the page before. Throws `AppError` 400. */
export const pageOfRoutes = (
  routes: readonly Route[],
  { limit, cursor, route, search = '' }: QueryOf<'routes'>,
): AnswerOf<'routes'> => {
  const text = search.toLowerCase()
  const fitting = routesInOrder(routes).filter(
    ({ id, methods, path, hosts }) =>
      (route === undefined || id === route) && `${id} ${methods} ${path} ${hosts}`.toLowerCase().includes(text),
  )
  const last = cursor === undefined ? -1 : fitting.findIndex(({ id }) => id === cursor)
  // The configuration may have changed, and the order with it.
  if (cursor !== undefined && last < 0)
    throw problem('invalid_request', { detail: 'There is no such cursor any more: begin with the first page.' })
  const page = fitting.slice(last + 1, last + 1 + limit)
  const isLast = last + 1 + limit >= fitting.length
  return { routes: page, total: fitting.length, ...(!isLast && { cursor: page.at(-1)!.id }) }
}

const comparePreference = (one: Route, other: Route): number =>
  Number(one.hosts.length === 0) - Number(other.hosts.length === 0) || comparePaths(one, other)

const comparePaths = ({ pattern: one }: Route, { pattern: other }: Route): number => {
  for (let index = 0; index < Math.max(one.segments.length, other.segments.length); index++) {
    const difference = rank(one, index) - rank(other, index)
    if (difference !== 0) return difference
    const [literal, otherLiteral] = [one.segments[index] ?? '', other.segments[index] ?? '']
    if (literal !== otherLiteral) return literal < otherLiteral ? -1 : 1
  }
  return Number(one.rest) - Number(other.rest)
}

/** Of a segment: literal, end of the path, parameter, any rest. */
const rank = ({ segments, rest }: Route['pattern'], index: number): number => {
  if (index >= segments.length) return rest ? 3 : 1
  return segments[index] === null ? 2 : 0
}
