import { z } from 'zod'
import { parseDuration } from '../platform/config.ts'
import { supportedAlgorithms } from '../platform/jwt/algorithms.ts'
import { Secret } from '../platform/secret.ts'
import { defaultEntrypoint } from '../policies/decide.ts'
import { signatureAlgorithms } from '../policies/engine/signatures.ts'
import { isAddress } from '../policies/origin.ts'
import { parseHost } from './canonical-request.ts'
import { isNetwork } from './client-address.ts'
import { isOriginPattern } from './cors.ts'
import { dialectNames } from './forward-auth.ts'
import { insecureNames } from './insecure-settings.ts'
import { isUrl } from './log-output.ts'

/**
 * The members of `gateway.yaml`. Objects are strict: a misspelt name must not silently mean a default.
 */

/** ms; `0s` where `min` is 0. */
const duration = (min: number, max: number) =>
  z
    .string()
    .meta({ pattern: '^\\d{1,9}(?:ms|s|m|h|d)$' })
    .transform((text, context) => {
      const ms = parseDuration(text)
      if (ms !== undefined && ms >= min && ms <= max) return ms
      context.addIssue(`must be a duration from ${min} ms to ${max} ms, such as 500ms, 5s or 10m`)
      return z.NEVER
    })

const port = z
  .union([z.number(), z.string().regex(/^\d+$/).transform(Number)], 'must be a port number')
  .pipe(z.number().int().min(0).max(65_535))

const httpUrl = z
  .string()
  .meta({ pattern: '^https?://' })
  .refine((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    return (
      url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '' && url.hash === ''
    )
  }, 'must be an http or https URL without credentials, query and fragment')

const listener = (defaultPort: number) =>
  z.strictObject({ host: z.string().min(1).default('127.0.0.1'), port: port.default(defaultPort) })

const issuer = z.strictObject({
  issuer: httpUrl,
  jwksUri: httpUrl.optional(),
  algorithms: z
    .array(
      z.string().refine((alg) => supportedAlgorithms.includes(alg), `must be one of ${supportedAlgorithms.join(', ')}`),
    )
    .min(1)
    .default(['ES256', 'EdDSA', 'RS256']),
  typ: z.array(z.string().min(1)).min(1).default(['at+jwt']),
  clockSkew: duration(0, 120_000).default(5_000),
  client: z
    .strictObject({ id: z.string().min(1), secret: z.string().transform((text) => new Secret(text)) })
    .optional(),
  /** Default: `<issuer>/token`. May be an internal address, like `jwksUri`. */
  tokenEndpoint: httpUrl.optional(),
  revocations: z
    .strictObject({
      mode: z.enum(['feed', 'off']).default('off'),
      /** Default: `<issuer>/revocations`. May be an internal address, like `jwksUri`. */
      url: httpUrl.optional(),
      maxStale: duration(0, 86_400_000).default(300_000),
      whenStale: z.enum(['deny', 'serve']).default('deny'),
    })
    .optional(),
})

const upstream = z.strictObject({
  url: httpUrl,
  connectTimeout: duration(1, 60_000).default(2_000),
  headersTimeout: duration(1, 3_600_000).default(30_000),
  idleTimeout: duration(0, 86_400_000).default(60_000),
  maxRequests: z.number().int().min(1).max(100_000).default(1_024),
  maxWebSockets: z.number().int().min(1).max(100_000).default(4_096),
  webSocketIdleTimeout: duration(0, 86_400_000).default(300_000),
  /** `aud` of the identity JWT; without one the upstream gets none. */
  identityAudience: z.string().min(1).max(2_048).optional(),
})

/** RFC 9110 §9.1, without the two that a gateway must not serve. */
const method = z
  .string()
  .regex(/^[A-Z][A-Z-]{0,31}$/, 'must be a method in capital letters')
  .refine((name) => name !== 'CONNECT' && name !== 'TRACE', 'CONNECT and TRACE are not served')

const host = z.string().transform((text, context) => {
  const canonical = parseHost(text, 'http')
  if (canonical !== undefined) return canonical
  context.addIssue('must be a host name or address with an optional port')
  return z.NEVER
})

const credentialHeaders =
  /^(?:(?:proxy-)?authorization|cookie2?|dpop|(?:.*-)?(?:auth|jwt|session(?:-?id)?|signature)(?:-.*)?|.*(?:token|secret|passw|api-?key|(?:access|private|subscription|functions)-key|credential|assertion).*)$/

const policyHeader = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,64}$/, 'must be a header name')
  .transform((name) => name.toLowerCase())
  .refine((name) => !credentialHeaders.test(name), 'a header that carries credentials is never handed to a policy')

/** RFC 6749 §3.3. */
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'must be a scope name')

const identifier = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be letters, digits, dots, dashes, at most 64')

/** RFC 9110 §5.1, as the CORS protocol spells lists of them. */
const fieldName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, 'must be a header name')
  .transform((name) => name.toLowerCase())

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

const route = z.strictObject({
  id: identifier,
  hosts: z.array(host).default([]),
  path: z.string(),
  methods: z.array(method).default([]),
  auth: z.enum(['required', 'none']).default('required'),
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

const maskPath = z.string().regex(/^\/(?:input|result)\/./, 'must be a JSON pointer under /input or /result')

const log = {
  to: z.union([z.literal('stdout'), httpUrl, z.string().regex(/^(?!https?:)./i)], 'must be stdout, a file or a URL'),
  /** Bytes that may wait to be written. */
  bufferSize: z.number().int().min(65_536).max(1_073_741_824).default(16_777_216),
  /** How lines are sent to a URL. */
  http: z
    .strictObject({
      token: z
        .string()
        .min(1)
        .transform((text) => new Secret(text))
        .optional(),
      batchSize: z.number().int().min(1_024).max(16_777_216).optional(),
      interval: duration(10, 600_000).optional(),
    })
    .optional(),
}

const httpOnlyForUrls = ({ to, http }: { to: string; http?: unknown }, context: z.RefinementCtx) => {
  if (http !== undefined && !isUrl(to))
    context.addIssue({ code: 'custom', path: ['http'], message: 'needs a URL in to' })
}

export const gatewaySchema = z.strictObject({
  version: z.literal(1),
  /** Insecure settings that are meant; see `insecure-settings.ts`. */
  allowInsecure: z.array(z.enum(insecureNames)).default([]),
  listen: listener(3000).prefault({}),
  admin: listener(9300).prefault({}),
  /** The one header that trusted proxies write; the other is dropped, since a client may have written it. */
  forwardedBy: z.enum(['x-forwarded', 'forwarded']).default('x-forwarded'),
  trustedProxies: z.array(z.string().refine(isNetwork, 'must be an address or a CIDR such as 10.0.0.0/8')).default([]),
  issuers: z.array(issuer).default([]),
  policies: z
    .strictObject({
      path: z.string().min(1).optional(),
      bundle: z
        .string()
        .min(1)
        .refine((text) => !isAddress(text) || URL.canParse(text), 'must be a file or a URL')
        .optional()
        .describe('A bundle file, or the https address of one.'),
      /** Of a bundle behind an address: how often it is asked for, and with which bearer token. */
      poll: duration(1_000, 86_400_000).default(30_000),
      token: z
        .string()
        .min(1)
        .transform((text) => new Secret(text))
        .optional(),
      /** Keeps the last good bundle of an address, for a start while it cannot be reached. */
      cache: z.string().min(1).optional(),
      /** Bundles must be signed by one of these keys. */
      verify: z
        .strictObject({
          keys: z
            .array(
              z.strictObject({
                id: z.string().min(1),
                algorithm: z.enum(signatureAlgorithms),
                file: z.string().min(1),
              }),
            )
            .min(1),
          scope: z.string().min(1).optional(),
        })
        .optional(),
      entrypoint: z.string().min(1).default(defaultEntrypoint),
      /** Asked beside the live policies and never enforced: a folder, a bundle file or its address. */
      shadow: z.string().min(1).optional(),
      shadowSample: z.number().min(0).max(1).default(1),
      /** For routes with `isolation: worker`. */
      isolation: z
        .strictObject({
          workers: z.number().int().min(1).max(64).default(2),
          deadline: duration(1, 10_000).default(50),
        })
        .prefault({}),
    })
    .prefault({}),
  decisionLog: z
    .strictObject({
      ...log,
      mask: z.array(z.union([maskPath, z.strictObject({ path: maskPath, value: z.unknown() })])).default([]),
      labels: z.record(z.string().min(1), z.string()).default({}),
    })
    .superRefine(httpOnlyForUrls)
    .optional(),
  accessLog: z.strictObject(log).superRefine(httpOnlyForUrls).optional(),
  limits: z
    .strictObject({
      targetLength: z.number().int().min(256).max(65_536).default(8_192),
      headerCount: z.number().int().min(10).max(1_000).default(100),
      headerSize: z.number().int().min(4_096).max(262_144).default(32_768),
      bodySize: z.number().int().min(0).default(104_857_600),
      /** How long a connection may be idle between two requests. */
      keepAliveTimeout: duration(1_000, 3_600_000).default(75_000),
      headersTimeout: duration(100, 600_000).default(10_000),
      requestTimeout: duration(100, 86_400_000).default(300_000),
    })
    .prefault({}),
  drain: z
    .strictObject({
      /** How long new requests are still taken after `/readyz` says no: what balancers need to notice. */
      delay: duration(0, 30_000).default(0),
      /** How long running requests then have to end. */
      timeout: duration(0, 50_000).default(10_000),
    })
    .prefault({}),
  upstreams: z.record(identifier, upstream).default({}),
  routes: z.array(route).default([]),
  /** Decisions for another proxy, which forwards the requests itself. */
  forwardAuth: z
    .strictObject({
      path: z
        .string()
        .regex(/^(?:\/[A-Za-z0-9._~-]+)+$/, 'must be a path of unreserved characters without a final slash')
        .default('/.surrogate/auth'),
      dialect: z.enum(dialectNames),
    })
    .optional(),
  identity: z
    .strictObject({
      /** `iss` of the assertions; need not be an address. */
      issuer: z.string().min(1).max(2_048),
      keyFile: z.string().min(1),
    })
    .optional(),
  /** RFC 9728 documents for the audiences that are URLs, and their addresses in challenges. */
  resourceMetadata: z.boolean().default(true),
})

export type GatewayFile = z.output<typeof gatewaySchema>
export type RouteEntry = GatewayFile['routes'][number]
