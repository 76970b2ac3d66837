import { misspelling } from '../../platform/nearest.ts'
import { lowerCased } from '../../policies/path-equality.ts'
import type { Routable } from './router.ts'

/** A request as the router is asked about it. */
export interface Asked {
  readonly method: string
  readonly host: string
  /** Decoded; a trailing slash is a last, empty segment. */
  readonly segments: readonly string[]
}

/** One thing that keeps a route from taking a request. */
export type Difference =
  | { kind: 'method'; takes: readonly string[] }
  | { kind: 'host'; takes: readonly string[] }
  /** `route`: whether the route has one, and the request has not. */
  | { kind: 'trailing-slash'; route: boolean }
  | { kind: 'case'; segment: string; literal: string }
  /** `distance`: letters left out, added, changed or swapped. */
  | { kind: 'literal'; segment: string; literal: string; distance: number }
  /** A segment that the route does not have. */
  | { kind: 'more'; segment: string }
  /** A segment that the request does not have; null = any. */
  | { kind: 'less'; literal: string | null }
  /** `%2F` within a segment, where the route has two. */
  | { kind: 'encoded-slash' }

/** A route that does not take a request, though it takes a similar one. */
export interface NearMiss<Route extends Routable> {
  readonly route: Route
  readonly differences: readonly Difference[]
  /** The same request in the way that the route takes. */
  readonly takes: Asked | undefined
}

const costs = { method: 2, host: 3, 'trailing-slash': 1, case: 1, 'encoded-slash': 1, literal: 2, more: 3, less: 3 }

/** How far a difference is from a match. */
const costOf = (difference: Difference): number => {
  const cost = costs[difference.kind]
  return difference.kind === 'literal' ? cost + (2 * difference.distance) / difference.literal.length : cost
}

/** Of all differences together: the method and one segment, say. */
const farthest = 5

/**
 * Why none of `routes` took a request, or another one did than expected: the nearest `most`, by what is different. It
 * looks at every route: 10 000 take some 15 ms.
 */
export const nearMisses = <Route extends Routable>(
  routes: readonly Route[],
  asked: Asked,
  most = 5,
): NearMiss<Route>[] => {
  const found: (NearMiss<Route> & { cost: number })[] = []
  for (const route of routes) {
    const differences = differencesOf(route, asked)
    if (!differences || differences.length === 0) continue
    const cost = differences.reduce((sum, difference) => sum + costOf(difference), 0)
    if (cost > farthest || (found.length === most && cost >= found.at(-1)!.cost)) continue
    const place = found.findIndex((other) => other.cost > cost)
    found.splice(place < 0 ? found.length : place, 0, { route, differences, cost, takes: undefined })
    if (found.length > most) found.pop()
  }
  return found.map(({ route, differences }) => ({ route, differences, takes: takenBy(route, asked, differences) }))
}

const differencesOf = (route: Routable, { method, host, segments }: Asked): Difference[] | undefined => {
  const path = pathDifferences(route, segments)
  if (!path) return undefined
  const { methods, hosts } = route
  if (methods.length > 0 && !methods.includes(method)) path.push({ kind: 'method', takes: methods })
  if (hosts.length > 0 && !hosts.some((own) => own === host || own === withoutPort(host))) {
    path.push({ kind: 'host', takes: hosts })
  }
  return path
}

const withoutPort = (host: string): string => host.replace(/(?<=[^:]):\d+$/, '')

type Pattern = readonly (string | null)[]

/** Undefined: the path is nothing like the route's. */
const pathDifferences = (route: Routable, segments: readonly string[]): Difference[] | undefined => {
  const { pattern, pathEquality } = route
  const wanted = withoutSlash(pattern.segments)
  const given = withoutSlash(segments)
  const slashes: Difference[] =
    pattern.rest || pathEquality.trailingSlash === 'ignore' || isSlashed(pattern.segments) === isSlashed(segments)
      ? []
      : [{ kind: 'trailing-slash', route: isSlashed(pattern.segments) }]
  const aligned = align(route, wanted, given)
  if (aligned?.length !== 0 && takesSplit(route, wanted, given)) return [{ kind: 'encoded-slash' }, ...slashes]
  return aligned && [...aligned, ...slashes]
}

/** Whether the route takes the path with a slash in the place of each `%2F`. */
const takesSplit = (route: Routable, wanted: Pattern, given: readonly string[]): boolean => {
  if (!given.some((segment) => segment.includes('/'))) return false
  const split = given.flatMap((segment) => segment.split('/'))
  return !split.includes('') && align(route, wanted, split)?.length === 0
}

/** The root has no segments, and no slash beside its own. */
const isSlashed = (segments: Pattern): boolean => segments.at(-1) === ''
const withoutSlash = <Segment extends string | null>(segments: readonly Segment[]): readonly Segment[] =>
  isSlashed(segments) ? segments.slice(0, -1) : segments

/** At most one segment is different, too many or too few. */
const align = (route: Routable, wanted: Pattern, given: readonly string[]): Difference[] | undefined => {
  const { rest } = route.pattern
  const surplus = given.length - wanted.length
  if (surplus < -1 || (surplus > 1 && !rest)) return undefined
  const equal = equalityOf(route)
  let at = 0
  while (at < wanted.length && at < given.length && equal(wanted[at]!, given[at]!)) at++
  if (at === wanted.length && (rest || surplus === 0)) return []
  const continues = (ofWanted: number, ofGiven: number): boolean => {
    const left = wanted.length - ofWanted
    if (left > given.length - ofGiven || (!rest && left < given.length - ofGiven)) return false
    return wanted.slice(ofWanted).every((literal, index) => equal(literal, given[ofGiven + index]!))
  }
  const segment = given[at]
  const literal = wanted[at]
  if (segment !== undefined && typeof literal === 'string' && continues(at + 1, at + 1)) {
    if (lowerCased(segment) === lowerCased(literal)) return [{ kind: 'case', segment, literal }]
    const distance = misspelling(segment, literal)
    if (distance !== undefined) return [{ kind: 'literal', segment, literal, distance }]
  }
  if (segment !== undefined && continues(at, at + 1)) return [{ kind: 'more', segment }]
  if (literal !== undefined && continues(at + 1, at)) return [{ kind: 'less', literal }]
  return allInOtherCase(wanted, given, rest)
}

/** Also of several segments. */
const allInOtherCase = (wanted: Pattern, given: readonly string[], rest: boolean): Difference[] | undefined => {
  if (given.length < wanted.length || (!rest && given.length > wanted.length)) return undefined
  const differences: Difference[] = []
  for (const [index, literal] of wanted.entries()) {
    const segment = given[index]!
    if (literal === null || literal === segment) continue
    if (lowerCased(literal) !== lowerCased(segment)) return undefined
    differences.push({ kind: 'case', segment, literal })
  }
  return differences
}

const equalityOf = ({ pathEquality }: Routable) =>
  pathEquality.case === 'insensitive'
    ? (literal: string | null, segment: string) => literal === null || lowerCased(literal) === lowerCased(segment)
    : (literal: string | null, segment: string) => literal === null || literal === segment

/** Not with a segment more or less: that asks for something else, and a value would have to be made up. */
const takenBy = (route: Routable, asked: Asked, differences: readonly Difference[]): Asked | undefined => {
  let { method, host, segments } = asked
  for (const difference of differences) {
    const given = withoutSlash(segments)
    const slash = isSlashed(segments) ? [''] : []
    if (difference.kind === 'more' || difference.kind === 'less') return undefined
    if (difference.kind === 'method') method = difference.takes[0]!
    else if (difference.kind === 'host') host = difference.takes[0]!
    else if (difference.kind === 'trailing-slash') segments = difference.route ? [...given, ''] : given
    else if (difference.kind === 'encoded-slash') segments = [...given.flatMap((one) => one.split('/')), ...slash]
    else segments = [...spelt(route, given, difference), ...slash]
  }
  return { method, host, segments }
}

/** With the literal in the place of the first segment that it does not equal. */
const spelt = (
  route: Routable,
  given: readonly string[],
  { segment, literal }: { segment: string; literal: string },
) => {
  const at = given.findIndex((one, index) => one === segment && route.pattern.segments[index] === literal)
  return given.with(at, literal)
}

/** What a near miss differs in, as a sentence about the route. */
export const missText = (differences: readonly Difference[]): string => differences.map(differenceText).join(', and ')

const texts: { [Kind in Difference['kind']]: (difference: Extract<Difference, { kind: Kind }>) => string } = {
  method: ({ takes }) => `takes ${listed(takes)} only`,
  host: ({ takes }) => `is for ${listed(takes)} only`,
  'trailing-slash': ({ route }) => (route ? 'ends in a slash' : 'has no slash at its end'),
  case: ({ literal, segment }) => `says ${quoted(literal)} where the request says ${quoted(segment)}: case counts`,
  literal: ({ literal, segment }) => `says ${quoted(literal)} where the request says ${quoted(segment)}`,
  more: ({ segment }) => `has no segment for ${quoted(segment)}`,
  less: ({ literal }) => (literal === null ? 'has one segment more' : `has the segment ${quoted(literal)} as well`),
  'encoded-slash': () => 'has a slash where the request has %2F, which is part of a segment',
}

const differenceText = (difference: Difference): string => texts[difference.kind](difference as never)

const mostListed = 4

const listed = (names: readonly string[]): string =>
  names.length > mostListed
    ? `${names.slice(0, mostListed).join(', ')} and ${names.length - mostListed} more`
    : names.join(', ')

const quoted = (text: string): string => JSON.stringify(text.length > 64 ? `${text.slice(0, 63)}…` : text)
