import { z } from 'zod'
import { responseHeaders, rewrite, routeTargets } from './forwarding.ts'
import {
  acr,
  bytes,
  duration,
  fieldName,
  host,
  identifier,
  method,
  originPattern,
  policyHeader,
  scope,
  wholeSeconds,
} from './values.ts'

/**
 * An entry of `routes:`. One row is one setting: what may stand there, its default, and what it means. The group that
 * a row stands in says where the setting exists. Made from the rows: the type `Route`, the options of `protect`, the
 * JSON Schema for editors, "did you mean", and the tables in docs/operators.md.
 */

/** Which requests the route is for. Only in the file: a guard of `protect` is one route for all that it is asked. */
export const matching = {
  id: identifier.describe('In logs, metrics and policies.'),
  hosts: z
    .array(host)
    .default([])
    .describe('Default: any. `api.example.test` serves every port, `api.example.test:8443` that one.'),
  path: z
    .string()
    .describe('`{x}` is one segment; `**`, only last, any number of them, none too. A trailing slash counts.'),
  methods: z
    .array(method)
    .default([])
    .describe('Default: any. `HEAD` must be named. `CONNECT` and `TRACE` are never served.'),
  auth: z.enum(['required', 'none']).default('required').describe('`none` for public routes.'),
}

const rateLimit = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9-]{1,32}$/, 'must be small letters, digits, dashes, at most 32')
      .optional()
      .describe('In headers and metrics. Default: that of `by`; needed when two limits of a route have the same.'),
    by: z
      .enum(['subject', 'client', 'actor', 'address'])
      .describe(
        'Whose requests are counted together. `actor`: whoever acts for a user; requests without one are not counted. `address`: of the client as trusted proxies tell it; IPv6 by /64.',
      ),
    requests: z.number().int().min(1).max(1_000_000).describe('So many in the time of `per`, evenly.'),
    per: duration(1_000, 86_400_000).describe('From `1s` to `24h`.'),
    burst: z.number().int().min(1).max(1_000_000).optional().describe('So many at once. Default: `requests`.'),
  })
  .transform(({ name, burst, ...limit }) => ({ ...limit, name: name ?? limit.by, burst: burst ?? limit.requests }))

export type RateLimitSettings = z.output<typeof rateLimit>

/** Who may ask, and how that is decided. Also options of `protect`. */
export const access = {
  issuers: z
    .array(z.string())
    .min(1, 'must name an issuer at least')
    .optional()
    .describe('Whose tokens are taken. Default: those of the only issuer; mandatory when there is more than one.'),
  audience: z
    .array(z.string().min(1))
    .default([])
    .describe("Any of them must be the token's `aud`; mandatory with `auth: required`."),
  scopes: z.array(scope).default([]).describe('All of them are needed; the policy checks.'),
  acr: z
    .union([acr, z.array(acr).min(1, 'must name a value at least').max(16)])
    .transform((values) => [values].flat())
    .default([])
    .describe(
      'How the user must have signed in: one value of the claim `acr` or several, any of which will do, the preferred one first. Else 401 (RFC 9470).',
    ),
  maxAuthAge: wholeSeconds(1_000, 31_536_000_000)
    .optional()
    .describe('How long ago the user may have signed in (`auth_time`), from `1s`. Else 401 (RFC 9470).'),
  dpop: z
    .enum(['required', 'accepted'])
    .optional()
    .describe(
      'Tokens bound to a key of their client (RFC 9449). `required`: no others; `accepted`: bearer tokens too. Default: the scheme `DPoP` is not taken.',
    ),
  impersonation: z
    .enum(['allow', 'read-only', 'deny'])
    .default('allow')
    .describe(
      'What somebody who acts for a user may do. `read-only`: GET, HEAD and OPTIONS. `deny`: nothing. The policy checks.',
    ),
  policyHeaders: z
    .array(policyHeader)
    .default([])
    .describe('Request headers that the policy sees. Credentials can never be listed.'),
  context: z.record(z.string(), z.unknown()).default({}).describe('Free data for the policy.'),
  entrypoint: z.string().min(1).optional().describe('The rule that decides. Default: `policies.entrypoint`.'),
  isolation: z
    .enum(['main', 'worker'])
    .default('main')
    .describe('`worker`: the rule is evaluated in a thread of its own, and ended at `policies.isolation.deadline`.'),
  insufficientScopeStatus: z
    .union([z.literal(401), z.literal(403)])
    .default(401)
    .describe("For a missing scope. `403` is RFC 6750's."),
  acceptPersonalAccessTokens: z
    .boolean()
    .default(false)
    .describe('Takes personal access tokens of users (`pat_…`) beside access tokens.'),
  rateLimit: z
    .union([rateLimit, z.array(rateLimit).max(8)])
    .transform((limits) => [limits].flat())
    .prefault([])
    .describe('One limit or several, all of which hold. Each instance counts for itself.'),
  encodedSlash: z
    .enum(['refuse', 'keep'])
    .default('refuse')
    .describe('`keep`: `%2F` is part of its segment and sent as `%2F`. Else it is 400.'),
  matrixParameters: z
    .enum(['refuse', 'keep'])
    .default('refuse')
    .describe(
      '`keep`: segments may have parameters (`/a;v=1`), which the upstream gets; the route is found without them. Else `;` in a path is 400.',
    ),
  forwardAuthorization: z
    .boolean()
    .default(true)
    .describe('Whether the upstream gets the token: APIs can verify it themselves.'),
}

/** Which pages of other origins may call a route (Fetch standard, CORS protocol). */
const cors = z.strictObject({
  origins: z
    .array(originPattern)
    .min(1)
    .describe(
      'Scheme, host and port as browsers write them; `https://*.example.test` is every name below; `*` any page.',
    ),
  methods: z.array(method).default([]).describe('What preflights are told. Default: those of the route.'),
  headers: z
    .array(fieldName)
    .prefault(['authorization', 'content-type'])
    .describe('Request headers that scripts may set.'),
  exposeHeaders: z.array(fieldName).default([]).describe('Answer headers that scripts may read.'),
  maxAge: duration(0, 86_400_000).prefault('10m').describe('How long browsers remember a preflight.'),
  credentials: z
    .boolean()
    .default(false)
    .describe(
      'Cookies and client certificates; never with `*`. A bearer token that a script sets needs `authorization` in `headers`, not this.',
    ),
})

export type CorsSettings = z.output<typeof cors>

/** Bodies for rules: JSON whose size and shape an evaluation has the time and the memory for. */
const policyBody = z.strictObject({
  type: z.literal('json', 'must be json').describe('`application/json` and types that end in `+json`; else 415.'),
  maxBytes: bytes(1, 262_144).prefault('64kB').describe('Up to `256kB`; more is 413, as with `bodySize`.'),
})

/** What the gateway does as a proxy. Only in the file. */
export const forwarding = {
  upstream: z
    .string()
    .default('')
    .describe('One of `upstreams`. Without one the route is for forward-auth and ext_authz only.'),
  stripPrefix: z
    .string()
    .nullable()
    .default(null)
    .describe('The literal beginning of `path` that is left out upstream.'),
  rewrite: rewrite.optional().describe('Another beginning of the path upstream; more than `stripPrefix` can say.'),
  timeout: duration(1, 86_400_000)
    .optional()
    .describe(
      'Longest time from the admission of a request to the last byte of its answer: 504, or a broken connection when the answer has begun. Of a WebSocket: until it is open. Default: none.',
    ),
  retries: z
    .literal(false, 'must be false, or left out: how requests are repeated is a setting of the upstream')
    .optional()
    .describe('`false`: requests of this route are never repeated, whatever the upstream says.'),
  targets: routeTargets.optional().describe('Sends some requests to some targets of the upstream only.'),
  responseHeaders: responseHeaders.optional().describe('Header fields that are removed from answers, and set on them.'),
  bodySize: bytes(0, Number.MAX_SAFE_INTEGER)
    .optional()
    .describe('Of a body; more is 413. Default: `limits.bodySize`.'),
  policyBody: policyBody
    .optional()
    .describe('The policy sees the body, as `input.request.body`: it is read whole before the decision.'),
  websocket: z
    .boolean()
    .default(false)
    .describe('Whether requests may open a WebSocket; the same decision lets them in.'),
  cors: cors.optional().describe('For pages of other origins; preflights are answered by the gateway.'),
}

export const route = z.strictObject({ ...matching, ...access, ...forwarding })

export type RouteEntry = z.output<typeof route>
