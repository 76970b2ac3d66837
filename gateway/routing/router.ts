import { lowerCased, type PathEquality } from '../../policies/path-equality.ts'
import type { PathPattern, Route } from './path-pattern.ts'

/** A list by method; `*` = any, and the only one then. */
interface Taken {
  readonly method: string
  readonly route: Route
  readonly next: Taken | undefined
}

/** What is empty is absent: with 10 000 routes most of a look-up is waiting for memory. */
interface Node {
  literals: Map<string, Node> | undefined
  parameter: Node | undefined
  /** For paths that end here. */
  end: Taken | undefined
  /** For paths that go on, by `**`. */
  rest: Taken | undefined
}

const newNode = (): Node => ({ literals: undefined, parameter: undefined, end: undefined, rest: undefined })

export interface Router {
  match(host: string, method: string, segments: readonly string[]): Route | undefined
}

/** Two routes that would both match a request with equal right. */
export interface RouteConflict {
  first: Route
  second: Route
  method: string
}

const anyHost = '*'
const anyMethod = '*'

const collision = (taken: Taken | undefined, method: string, route: Route): Taken | undefined => {
  for (let other = taken; other; other = other.next) {
    if (other.method !== method && method !== anyMethod && other.method !== anyMethod) continue
    if (tie(other.route, route)) return other
  }
  return undefined
}

/**
 * In the same place of a trie. A route that wants its own spelling is the more exact one beside those that take others
 * too.
 */
const tie = (one: Route, other: Route): boolean =>
  (folds(one) && folds(other)) || sameSegments(one.pattern.segments, other.pattern.segments)

const folds = ({ pathEquality }: Route): boolean => foldsCase(pathEquality) || ignoresSlash(pathEquality)
const foldsCase = (equality: PathEquality): boolean => equality.case === 'insensitive'
const ignoresSlash = (equality: PathEquality): boolean => equality.trailingSlash === 'ignore'

type Segments = PathPattern['segments']

const sameSegments = (one: Segments, other: Segments): boolean =>
  one.length === other.length && one.every((segment, index) => segment === other[index])

/** Those that want their own spelling before the others. */
const withRoute = (taken: Taken | undefined, method: string, route: Route): Taken =>
  taken && (folds(route) || !folds(taken.route))
    ? { ...taken, next: withRoute(taken.next, method, route) }
    : { method, route, next: taken }

const childOf = (node: Node, segment: string | null): Node => {
  if (segment === null) {
    node.parameter ??= newNode()
    return node.parameter
  }
  node.literals ??= new Map()
  const known = node.literals.get(segment)
  if (known) return known
  const made = newNode()
  // A copy: cut out of a longer text, a string refers to that text, one more wait for memory at every comparison
  // (measured: a third).
  node.literals.set(Buffer.from(segment).toString(), made)
  return made
}

/**
 * A trie by segments, one for each host and one for all others; finding a route takes as long with 10 000 routes as
 * with 10. When an upstream folds case all literals stand there in small letters, and routes to others are compared
 * with the request once more.
 */
const buildTries = (routes: readonly Route[], onConflict: (conflict: RouteConflict) => void): Map<string, Node> => {
  const inSmallLetters = routes.some(({ pathEquality }) => foldsCase(pathEquality))
  const roots = new Map<string, Node>()
  for (const route of routes) {
    for (const host of route.hosts.length > 0 ? route.hosts : [anyHost]) {
      let node = roots.get(host) ?? newNode()
      roots.set(host, node)
      for (const segment of placeOf(route)) {
        node = childOf(node, segment !== null && inSmallLetters ? lowerCased(segment) : segment)
      }
      const place = route.pattern.rest ? 'rest' : 'end'
      for (const method of route.methods.length > 0 ? route.methods : [anyMethod]) {
        const other = collision(node[place], method, route)
        if (other) onConflict({ first: other.route, second: route, method: other.method })
        else node[place] = withRoute(node[place], method, route)
      }
    }
  }
  return roots
}

/** Without a trailing slash where none counts. */
const placeOf = ({ pattern: { segments }, pathEquality }: Route): Segments =>
  ignoresSlash(pathEquality) && segments.at(-1) === '' ? segments.slice(0, -1) : segments

/** Each pair once. */
export const findConflicts = (routes: readonly Route[]): RouteConflict[] => {
  const conflicts = new Map<string, RouteConflict>()
  buildTries(routes, (conflict) => conflicts.set(JSON.stringify([conflict.first.id, conflict.second.id]), conflict))
  return [...conflicts.values()]
}

/** What is looked for. */
interface Wanted {
  readonly method: string
  /** As they stand in the tries. */
  readonly keys: readonly string[]
  /** As received, where tries hold routes to upstreams that fold them; else undefined. */
  readonly spelling: readonly string[] | undefined
}

/** `slash`: the request has a trailing slash that is no part of the place. */
const takenFor = (taken: Taken | undefined, { method, spelling }: Wanted, slash = false): Route | undefined => {
  for (let other = taken; other; other = other.next) {
    if (other.method !== method && other.method !== anyMethod) continue
    if (!spelling || takesSpelling(other.route, spelling, slash)) return other.route
  }
  return undefined
}

const takesSpelling = (route: Route, spelling: readonly string[], slash: boolean): boolean => {
  const { pathEquality } = route
  if (slash && !ignoresSlash(pathEquality)) return false
  return (
    foldsCase(pathEquality) || placeOf(route).every((literal, index) => literal === null || literal === spelling[index])
  )
}

const find = (node: Node, wanted: Wanted, depth: number): Route | undefined => {
  const { keys } = wanted
  if (depth === keys.length) {
    const route = takenFor(node.end, wanted)
    if (route) return route
  } else {
    const key = keys[depth]!
    const literal = node.literals?.get(key)
    const found =
      (literal && find(literal, wanted, depth + 1)) ??
      (key === ''
        ? wanted.spelling && takenFor(node.end, wanted, true)
        : node.parameter && find(node.parameter, wanted, depth + 1))
    if (found) return found
  }
  return takenFor(node.rest, wanted)
}

/** A route for `api.test` also serves `api.test:8080`, after routes that name the port. */
const namedWithoutPort = (roots: ReadonlyMap<string, Node>, host: string): Node | undefined => {
  const port = host.lastIndexOf(':')
  return port > 0 && !host.endsWith(']') ? roots.get(host.slice(0, port)) : undefined
}

/**
 * A named host before none; then, from left to right, a literal segment before a parameter before `**`. A route for
 * other methods does not stand in the way of a less exact one. Literals are compared as the upstream of the route
 * compares them. Throws when two routes tie.
 */
export const createRouter = (routes: readonly Route[]): Router => {
  const roots = buildTries(routes, ({ first, second }) => {
    throw new Error(`the routes ${first.id} and ${second.id} match the same requests`)
  })
  const others = roots.get(anyHost)
  const folding = routes.some(folds)
  const inSmallLetters = routes.some(({ pathEquality }) => foldsCase(pathEquality))
  return {
    match(host, method, segments) {
      const keys = inSmallLetters ? segments.map(lowerCased) : segments
      const wanted: Wanted = { method, keys, spelling: folding ? segments : undefined }
      for (const root of [roots.get(host), namedWithoutPort(roots, host), others]) {
        const route = root && find(root, wanted, 0)
        if (route) return route
      }
      return undefined
    },
  }
}
