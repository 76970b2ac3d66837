import type { Cors } from './cors.ts'
import type { RateLimitSettings } from './rate-limit.ts'

/** Where a request goes and what is asked of it; made from one entry of `routes:` (see `config-schema.ts` for what each member means). */
export interface Route {
  readonly id: string
  /** Canonical host names; empty = any. */
  readonly hosts: readonly string[]
  readonly pattern: PathPattern
  /** Empty = any. */
  readonly methods: readonly string[]
  readonly auth: 'required' | 'none'
  /** Whose tokens are taken; empty = nobody's. */
  readonly issuers: readonly string[]
  readonly audience: string[]
  readonly scopes: string[]
  readonly impersonation: 'allow' | 'read-only' | 'deny'
  /** Lower-case. */
  readonly policyHeaders: readonly string[]
  readonly context: Record<string, unknown>
  readonly entrypoint: string
  /** Whether the policy runs on the thread of the requests, or with a deadline in one of its own. */
  readonly isolation: 'main' | 'worker'
  readonly upstream: string
  /** How many leading segments are left out upstream. */
  readonly stripSegments: number
  readonly forwardAuthorization: boolean
  readonly insufficientScopeStatus: 401 | 403
  readonly encodedSlash: 'refuse' | 'keep'
  /** Bytes. */
  readonly bodySize: number
  readonly acceptPersonalAccessTokens: boolean
  /** Whether requests may open a WebSocket. */
  readonly websocket: boolean
  readonly cors: Cors | undefined
  readonly rateLimits: readonly RateLimitSettings[]
  /** Where challenges send a client that lacks a good token (RFC 9728 §5.1). */
  readonly resourceMetadata: string | undefined
}

/** `/orders/{id}/**`, taken apart. */
export interface PathPattern {
  readonly text: string
  /** Decoded literals, `null` for a parameter. */
  readonly segments: readonly (string | null)[]
  readonly parameters: readonly { readonly name: string; readonly index: number }[]
  /** Ends in `**`: matches any further segments, none too. */
  readonly rest: boolean
}

/** Returns what is wrong, in words, instead of throwing: the reader of a configuration file wants all problems at once. */
export const parsePattern = (text: string): PathPattern | string => {
  if (!text.startsWith('/')) return 'must start with a slash'
  const parts = text === '/' ? [] : text.slice(1).split('/')
  const segments: (string | null)[] = []
  const parameters: { name: string; index: number }[] = []
  const rest = parts.at(-1) === '**'
  if (rest) parts.pop()
  for (const [index, part] of parts.entries()) {
    const parameter = /^\{([A-Za-z][A-Za-z0-9_]{0,63})\}$/.exec(part)
    if (parameter) {
      const name = parameter[1]!
      if (parameters.some((other) => other.name === name)) return `names the parameter {${name}} twice`
      parameters.push({ name, index })
      segments.push(null)
      continue
    }
    if (part === '' && (index < parts.length - 1 || rest)) return 'holds an empty segment'
    if (part === '.' || part === '..') return 'holds a dot segment'
    if (/[{}*?#\\%]/.test(part)) {
      return `holds "${part}": write a literal segment (unescaped), a whole {parameter}, or ** as the last segment`
    }
    segments.push(part)
  }
  return { text, segments, parameters, rest }
}

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

const collision = (taken: Taken | undefined, method: string): Taken | undefined => {
  for (let other = taken; other; other = other.next) {
    if (method === anyMethod || other.method === method || other.method === anyMethod) return other
  }
  return undefined
}

const withRoute = (taken: Taken | undefined, method: string, route: Route): Taken =>
  taken ? { ...taken, next: withRoute(taken.next, method, route) } : { method, route, next: undefined }

const childOf = (node: Node, segment: string | null): Node => {
  if (segment === null) {
    node.parameter ??= newNode()
    return node.parameter
  }
  node.literals ??= new Map()
  const known = node.literals.get(segment)
  if (known) return known
  const made = newNode()
  // A copy: cut out of a longer text, a string refers to that text, one more wait for memory at every comparison (measured: a third).
  node.literals.set(Buffer.from(segment).toString(), made)
  return made
}

/** A trie by segments, one for each host and one for all others; finding a route takes as long with 10 000 routes as with 10. */
const buildTries = (routes: readonly Route[], onConflict: (conflict: RouteConflict) => void): Map<string, Node> => {
  const roots = new Map<string, Node>()
  for (const route of routes) {
    for (const host of route.hosts.length > 0 ? route.hosts : [anyHost]) {
      let node = roots.get(host) ?? newNode()
      roots.set(host, node)
      for (const segment of route.pattern.segments) node = childOf(node, segment)
      const place = route.pattern.rest ? 'rest' : 'end'
      for (const method of route.methods.length > 0 ? route.methods : [anyMethod]) {
        const other = collision(node[place], method)
        if (other) onConflict({ first: other.route, second: route, method: other.method })
        else node[place] = withRoute(node[place], method, route)
      }
    }
  }
  return roots
}

/** Each pair once. */
export const findConflicts = (routes: readonly Route[]): RouteConflict[] => {
  const conflicts = new Map<string, RouteConflict>()
  buildTries(routes, (conflict) => conflicts.set(JSON.stringify([conflict.first.id, conflict.second.id]), conflict))
  return [...conflicts.values()]
}

const takenFor = (taken: Taken | undefined, method: string): Route | undefined => {
  for (let other = taken; other; other = other.next) {
    if (other.method === method || other.method === anyMethod) return other.route
  }
  return undefined
}

const find = (node: Node, segments: readonly string[], depth: number, method: string): Route | undefined => {
  if (depth === segments.length) {
    const route = takenFor(node.end, method)
    if (route) return route
  } else {
    const segment = segments[depth]!
    const literal = node.literals?.get(segment)
    const found =
      (literal && find(literal, segments, depth + 1, method)) ??
      (node.parameter && segment !== '' ? find(node.parameter, segments, depth + 1, method) : undefined)
    if (found) return found
  }
  return takenFor(node.rest, method)
}

/** A route for `api.test` also serves `api.test:8080`, after routes that name the port. */
const namedWithoutPort = (roots: ReadonlyMap<string, Node>, host: string): Node | undefined => {
  const port = host.lastIndexOf(':')
  return port > 0 && !host.endsWith(']') ? roots.get(host.slice(0, port)) : undefined
}

/**
 * A named host before none; then, from left to right, a literal segment before a parameter before `**`. A route for other methods does
 * not stand in the way of a less exact one. Throws when two routes tie.
 */
export const createRouter = (routes: readonly Route[]): Router => {
  const roots = buildTries(routes, ({ first, second }) => {
    throw new Error(`the routes ${first.id} and ${second.id} match the same requests`)
  })
  const others = roots.get(anyHost)
  return {
    match(host, method, segments) {
      for (const root of [roots.get(host), namedWithoutPort(roots, host), others]) {
        const route = root && find(root, segments, 0, method)
        if (route) return route
      }
      return undefined
    },
  }
}
