import { z } from 'zod'
import { isOriginPattern } from './cors.ts'
import { duration, fieldName, host, identifier, method, policyHeader, scope } from './values.ts'

/** An entry of `routes:`. */

const cors = z.strictObject({
  origins: z
    .array(
      z
        .string()
        .refine(isOriginPattern, 'must be an origin such as https://app.example.test, https://*.example.test, or *'),
    )
    .min(1),
  /** Default: those of the route. */
  methods: z.array(method).default([]),
  headers: z.array(fieldName).default(['authorization', 'content-type']),
  exposeHeaders: z.array(fieldName).default([]),
  maxAge: duration(0, 86_400_000).default(600_000),
  credentials: z.boolean().default(false),
})

const rateLimit = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9-]{1,32}$/, 'must be small letters, digits, dashes, at most 32')
      .optional(),
    by: z.enum(['subject', 'client', 'actor', 'address']),
    requests: z.number().int().min(1).max(1_000_000),
    per: duration(1_000, 86_400_000),
    /** Default: `requests`. */
    burst: z.number().int().min(1).max(1_000_000).optional(),
  })
  .transform(({ name, burst, ...limit }) => ({ ...limit, name: name ?? limit.by, burst: burst ?? limit.requests }))

export const route = z.strictObject({
  id: identifier,
  hosts: z.array(host).default([]),
  path: z.string(),
  methods: z.array(method).default([]),
  auth: z.enum(['required', 'none']).default('required'),
  /** Whose tokens are taken; may be left out where the file has one issuer. */
  issuers: z.array(z.string()).min(1, 'must name an issuer at least').optional(),
  audience: z.array(z.string().min(1)).default([]),
  scopes: z.array(scope).default([]),
  impersonation: z.enum(['allow', 'read-only', 'deny']).default('allow'),
  policyHeaders: z.array(policyHeader).default([]),
  context: z.record(z.string(), z.unknown()).default({}),
  entrypoint: z.string().min(1).optional(),
  /** Without one the route is for forward-auth only. */
  upstream: z.string().default(''),
  stripPrefix: z.string().nullable().default(null),
  forwardAuthorization: z.boolean().default(true),
  insufficientScopeStatus: z.union([z.literal(401), z.literal(403)]).default(401),
  encodedSlash: z.enum(['refuse', 'keep']).default('refuse'),
  matrixParameters: z.enum(['refuse', 'keep']).default('refuse'),
  bodySize: z.number().int().min(0).optional(),
  isolation: z.enum(['main', 'worker']).default('main'),
  acceptPersonalAccessTokens: z.boolean().default(false),
  /** Whether requests may open a WebSocket; the same decision lets them in. */
  websocket: z.boolean().default(false),
  cors: cors.optional(),
  /** One limit or several, all of which hold. Counted by each instance for itself. */
  rateLimit: z
    .union([rateLimit, z.array(rateLimit).max(8)])
    .transform((limits) => [limits].flat())
    .default([]),
})
