import type { PathEquality } from '../../policies/path-equality.ts'
import type { RateLimitSettings } from '../authorize/rate-limit.ts'
import type { Cors } from '../config/cors.ts'

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
  /** Whether the upstream is the issuer, whose cookies others neither get nor set. */
  readonly toIssuer: boolean
  /** How many leading segments are left out upstream. */
  readonly stripSegments: number
  readonly forwardAuthorization: boolean
  readonly insufficientScopeStatus: 401 | 403
  readonly encodedSlash: 'refuse' | 'keep'
  readonly matrixParameters: 'refuse' | 'keep'
  /** Which spellings of a path the upstream takes for the same. */
  readonly pathEquality: PathEquality
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
    if (part.includes(';'))
      return 'holds a semicolon, which begins the parameters of a segment and is no part of its name'
    if (part === '.' || part === '..') return 'holds a dot segment'
    const foreign = /^:([A-Za-z]\w*)$/.exec(part)
    if (foreign) return `holds "${part}": a parameter is written {${foreign[1]}}`
    if (/[{}*?#\\%]/.test(part)) {
      return `holds "${part}": write a literal segment (unescaped), a whole {parameter}, or ** as the last segment`
    }
    segments.push(part)
  }
  return { text, segments, parameters, rest }
}
