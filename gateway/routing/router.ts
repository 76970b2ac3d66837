import { lowerCased, type PathEquality } from '../../policies/path-equality.ts'
import type { PathPattern } from './path-pattern.ts'

/** What the router must know of a route. */
export interface Routable {
  readonly id: string
  /** Canonical host names; empty = any. */
  readonly hosts: readonly string[]
  /** Empty = any. */
  readonly methods: readonly string[]
  readonly pattern: PathPattern
  /** Which spellings of a path its upstream takes for the same. */
  readonly pathEquality: PathEquality
}

export interface Router<Route extends Routable> {
  match(host: string, method: string, segments: readonly string[]): Route | undefined
}

/** Two routes that would both match a request with equal right. */
export interface RouteConflict<Route extends Routable> {
  first: Route
  second: Route
  method: string
}

/** The routes that end at one node, as a linked list. The method `*` is any, and then the only entry. */
interface Entry<Route> {
  readonly method: string
  readonly route: Route
  readonly next: Entry<Route> | undefined
}

/** Empty members are undefined: with 10 000 routes a look-up mostly waits for memory. */
interface Node<Route> {
  literals: Map<string, Node<Route>> | undefined
  parameter: Node<Route> | undefined
  /** For paths that end here. */
  end: Entry<Route> | undefined
  /** For paths that go on, by `**`. */
  rest: Entry<Route> | undefined
}

const newNode = <Route>(): Node<Route> => ({
  literals: undefined,
  parameter: undefined,
  end: undefined,
  rest: undefined,
})

const anyHost = '*'
const anyMethod = '*'

const collision = <Route extends Routable>(
  entries: Entry<Route> | undefined,
  method: string,
  route: Route,
): Entry<Route> | undefined => {
  for (let entry = entries; entry; entry = entry.next) {
    if (entry.method !== method && method !== anyMethod && entry.method !== anyMethod) continue
    if (tie(entry.route, route)) return entry
  }
  return undefined
}

/**
 * Whether two routes in the same place tie. A route that takes one spelling is more exact than one that takes several.
 */
const tie = (one: Routable, other: Routable): boolean =>
  (folds(one) && folds(other)) || sameSegments(one.pattern.segments, other.pattern.segments)

const folds = ({ pathEquality }: Routable): boolean => foldsCase(pathEquality) || ignoresSlash(pathEquality)
const foldsCase = (equality: PathEquality): boolean => equality.case === 'insensitive'
const ignoresSlash = (equality: PathEquality): boolean => equality.trailingSlash === 'ignore'

type Segments = PathPattern['segments']

const sameSegments = (one: Segments, other: Segments): boolean =>
  one.length === other.length && one.every((segment, index) => segment === other[index])

/** Routes that take one spelling come before the others. */
const withRoute = <Route extends Routable>(
  entries: Entry<Route> | undefined,
  method: string,
  route: Route,
): Entry<Route> =>
  entries && (folds(route) || !folds(entries.route))
    ? { ...entries, next: withRoute(entries.next, method, route) }
    : { method, route, next: entries }

const childOf = <Route>(node: Node<Route>, segment: string | null): Node<Route> => {
  if (segment === null) {
    node.parameter ??= newNode()
    return node.parameter
  }
  node.literals ??= new Map()
  const known = node.literals.get(segment)
  if (known) return known
  const made = newNode<Route>()
  // A copy: a string that was cut out of a longer text refers to that text, and every comparison would read memory once
  // more (measured: a third of a look-up).
  node.literals.set(Buffer.from(segment).toString(), made)
  return made
}

/**
 * A trie by segments, one for each host and one for all others; finding a route takes as long with 10 000 routes as
 * with 10. When an upstream folds case, all literals stand there in lower case, and the routes to other upstreams are
 * compared with the request once more.
 */
const buildTries = <Route extends Routable>(
  routes: readonly Route[],
  onConflict: (conflict: RouteConflict<Route>) => void,
): Map<string, Node<Route>> => {
  const inLowerCase = routes.some(({ pathEquality }) => foldsCase(pathEquality))
  const roots = new Map<string, Node<Route>>()
  for (const route of routes) {
    for (const host of route.hosts.length > 0 ? route.hosts : [anyHost]) {
      let node = roots.get(host) ?? newNode<Route>()
      roots.set(host, node)
      for (const segment of placeOf(route)) {
        node = childOf(node, segment !== null && inLowerCase ? lowerCased(segment) : segment)
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
const placeOf = ({ pattern: { segments }, pathEquality }: Routable): Segments =>
  ignoresSlash(pathEquality) && segments.at(-1) === '' ? segments.slice(0, -1) : segments

/** Each pair once. */
export const findConflicts = <Route extends Routable>(routes: readonly Route[]): RouteConflict<Route>[] => {
  const conflicts = new Map<string, RouteConflict<Route>>()
  buildTries(routes, (conflict) => conflicts.set(JSON.stringify([conflict.first.id, conflict.second.id]), conflict))
  return [...conflicts.values()]
}

/** What is looked for. */
interface Wanted {
  readonly method: string
  /** As they stand in the tries. */
  readonly keys: readonly string[]
  /** As received; undefined where no upstream of the tries folds spellings. */
  readonly spelling: readonly string[] | undefined
}

/** @param slash whether the request has a trailing slash that is no part of the place. */
const firstTaking = <Route extends Routable>(
  entries: Entry<Route> | undefined,
  { method, spelling }: Wanted,
  slash = false,
): Route | undefined => {
  for (let entry = entries; entry; entry = entry.next) {
    if (entry.method !== method && entry.method !== anyMethod) continue
    if (!spelling || takesSpelling(entry.route, spelling, slash)) return entry.route
  }
  return undefined
}

const takesSpelling = (route: Routable, spelling: readonly string[], slash: boolean): boolean => {
  const { pathEquality } = route
  if (slash && !ignoresSlash(pathEquality)) return false
  return (
    foldsCase(pathEquality) || placeOf(route).every((literal, index) => literal === null || literal === spelling[index])
  )
}

const find = <Route extends Routable>(node: Node<Route>, wanted: Wanted, depth: number): Route | undefined => {
  const key = wanted.keys[depth]
  if (key === undefined) {
    const route = firstTaking(node.end, wanted)
    if (route) return route
  } else {
    const literal = node.literals?.get(key)
    const found =
      (literal && find(literal, wanted, depth + 1)) ??
      (key === ''
        ? wanted.spelling && firstTaking(node.end, wanted, true)
        : node.parameter && find(node.parameter, wanted, depth + 1))
    if (found) return found
  }
  return firstTaking(node.rest, wanted)
}

/** A route for `api.test` also serves `api.test:8080`, after routes that name the port. */
const namedWithoutPort = <Route>(roots: ReadonlyMap<string, Node<Route>>, host: string): Node<Route> | undefined => {
  const port = host.lastIndexOf(':')
  return port > 0 && !host.endsWith(']') ? roots.get(host.slice(0, port)) : undefined
}

/**
 * A named host before none; then, from left to right, a literal segment before a parameter before `**`. A route for
 * other methods does not stand in the way of a less exact one. Literals are compared as the upstream of the route
 * compares them. Throws when two routes tie.
 */
export const createRouter = <Route extends Routable>(routes: readonly Route[]): Router<Route> => {
  const roots = buildTries(routes, ({ first, second }) => {
    throw new Error(`the routes ${first.id} and ${second.id} match the same requests`)
  })
  const others = roots.get(anyHost)
  const folding = routes.some(folds)
  const inLowerCase = routes.some(({ pathEquality }) => foldsCase(pathEquality))
  return {
    match(host, method, segments) {
      const keys = inLowerCase ? segments.map(lowerCased) : segments
      const wanted: Wanted = { method, keys, spelling: folding ? segments : undefined }
      for (const root of [roots.get(host), namedWithoutPort(roots, host), others]) {
        const route = root && find(root, wanted, 0)
        if (route) return route
      }
      return undefined
    },
  }
}
