import { z } from 'zod'
import {
  decisionFilter,
  decisionRecord,
  decisions,
  evaluation,
  evaluationRequest,
  limitOf,
  session,
  shadow,
  why,
} from './decision-answers.ts'
import { nearMiss } from './explanation.ts'
import {
  accessAnswer,
  accessRequest,
  largestCandidates,
  largestClaims,
  policyFiles,
  ruleTests,
  saveAnswer,
  saveRequest,
  tryAnswer,
  tryRequest,
} from './policy-answers.ts'
import { issuersInspection } from './trusted-issuers.ts'
import { gatewayInspection } from './upstreams.ts'

/**
 * The inspection API as data: each endpoint with its query, body and answer. The listener serves these rows and the
 * command line reads them.
 */

const configuration = z.object({
  file: z.string().optional(),
  revision: z.string(),
  /** The members of gateway.yaml with all defaults. Secrets are `[redacted]`, values from the environment `${NAME}`. */
  configuration: z.record(z.string(), z.unknown()),
})

const routes = z.object({
  /** In the order of precedence, as far as there is one. */
  routes: z.array(
    z.object({
      id: z.string(),
      /** Empty: every host. */
      hosts: z.array(z.string()),
      path: z.string(),
      /** Empty: every method. */
      methods: z.array(z.string()),
      /** Absent: for forward-auth only. */
      upstream: z.string().optional(),
      auth: z.enum(['required', 'none']),
      issuers: z.array(z.string()),
      audience: z.array(z.string()),
      scopes: z.array(z.string()),
      entrypoint: z.string(),
      impersonation: z.enum(['allow', 'read-only', 'deny']),
    }),
  ),
  /** That fit, on all pages. */
  total: z.number(),
  /** Of the next page, where there is one. */
  cursor: z.string().optional(),
})

const routesQuery = z.strictObject({
  limit: limitOf(1_000),
  cursor: z.string().max(64).optional(),
  /** The id. */
  route: z.string().max(64).optional(),
  /** A part of id, methods, path or hosts, in any case. */
  search: z.string().max(256).optional(),
})

const match = z.object({
  /** The id; absent: no route takes it. */
  route: z.string().optional(),
  params: z.record(z.string(), z.string()).optional(),
  /** Why it is refused all the same: it can be read in several ways, or the route does not allow its spelling. */
  refused: z.string().optional(),
  nearMisses: z.array(nearMiss),
})

const none = z.strictObject({})

/**
 * `:name` in a path is one segment. Scope `inspect` for what reads, `evaluate` for what works, `edit` for what changes
 * something.
 */
export const inspectionEndpoints = {
  configuration: { method: 'GET', path: '/configuration', scope: 'inspect', query: none, answer: configuration },
  routes: { method: 'GET', path: '/routes', scope: 'inspect', query: routesQuery, answer: routes },
  upstreams: { method: 'GET', path: '/upstreams', scope: 'inspect', query: none, answer: gatewayInspection },
  match: {
    method: 'GET',
    path: '/match',
    scope: 'inspect',
    query: z.strictObject({
      method: z
        .string()
        .regex(/^[A-Z][A-Z-]{0,31}$/)
        .prefault('GET'),
      url: z.url({ protocol: /^https?$/ }).max(8_192),
    }),
    answer: match,
  },
  decisions: {
    method: 'GET',
    path: '/decisions',
    scope: 'inspect',
    query: decisionFilter.extend({ limit: limitOf(100) }),
    answer: decisions,
  },
  /** Server-sent events: `streamEvents`. */
  stream: {
    method: 'GET',
    path: '/decisions/stream',
    scope: 'inspect',
    /** RFC 3339: what is kept since then comes first. */
    query: decisionFilter.extend({ since: z.iso.datetime({ offset: true }).optional() }),
    answer: z.never(),
  },
  decision: { method: 'GET', path: '/decisions/:request', scope: 'inspect', query: none, answer: decisionRecord },
  why: { method: 'GET', path: '/decisions/:request/why', scope: 'inspect', query: none, answer: why },
  session: { method: 'GET', path: '/sessions/:sid', scope: 'inspect', query: none, answer: session },
  issuers: { method: 'GET', path: '/issuers', scope: 'inspect', query: none, answer: issuersInspection },
  shadow: { method: 'GET', path: '/shadow', scope: 'inspect', query: none, answer: shadow },
  evaluate: {
    method: 'POST',
    path: '/evaluate',
    scope: 'evaluate',
    query: none,
    body: evaluationRequest,
    answer: evaluation,
  },
  tests: { method: 'POST', path: '/tests', scope: 'evaluate', query: none, answer: ruleTests },
  policies: { method: 'GET', path: '/policies', scope: 'inspect', query: none, answer: policyFiles },
  try: {
    method: 'POST',
    path: '/try',
    scope: 'evaluate',
    query: none,
    body: tryRequest,
    largestBody: largestCandidates,
    answer: tryAnswer,
  },
  save: {
    method: 'PUT',
    path: '/policies/files',
    scope: 'edit',
    query: none,
    body: saveRequest,
    largestBody: largestCandidates,
    answer: saveAnswer,
  },
  access: {
    method: 'POST',
    path: '/access',
    scope: 'evaluate',
    query: none,
    body: accessRequest,
    largestBody: largestClaims,
    answer: accessAnswer,
  },
} as const satisfies Record<string, InspectionEndpoint>

export interface InspectionEndpoint {
  method: 'GET' | 'POST' | 'PUT'
  path: string
  scope: 'inspect' | 'evaluate' | 'edit'
  query: z.ZodType
  body?: z.ZodType
  /** In bytes. Default 128 kB: an input of a policy has at most 64 kB. */
  largestBody?: number
  answer: z.ZodType
}

export type EndpointName = keyof typeof inspectionEndpoints
export type AnswerOf<Name extends EndpointName> = z.output<(typeof inspectionEndpoints)[Name]['answer']>
export type QueryOf<Name extends EndpointName> = z.output<(typeof inspectionEndpoints)[Name]['query']>
