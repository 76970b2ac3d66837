import { z } from 'zod'
import { supportedAlgorithms } from '../../platform/jwt/algorithms.ts'
import { pathEqualitySchema } from '../../policies/path-equality.ts'
import { dialectNames } from '../forward-auth.ts'
import { isNetwork } from '../request/client-address.ts'
import { insecureNames } from './insecure-settings.ts'
import { accessLog, decisionLog } from './logs.ts'
import { policies } from './policies.ts'
import { route } from './route.ts'
import { bytes, duration, httpUrl, identifier, port, secret } from './values.ts'

/**
 * The members of `gateway.yaml`. Objects are strict: a misspelt name must not silently mean a default.
 */

const listener = (defaultPort: number) =>
  z.strictObject({ host: z.string().min(1).default('127.0.0.1'), port: port.default(defaultPort) })

const issuer = z.strictObject({
  issuer: httpUrl,
  jwksUri: httpUrl.optional(),
  /** How the key set is asked for. */
  jwks: z
    .strictObject({
      cooldown: duration(1_000, 3_600_000).default(10_000),
      timeout: duration(100, 60_000).default(5_000),
      maxBytes: bytes(1_024, 16_777_216).default(262_144),
    })
    .prefault({}),
  algorithms: z
    .array(
      z.string().refine((alg) => supportedAlgorithms.includes(alg), `must be one of ${supportedAlgorithms.join(', ')}`),
    )
    .min(1)
    .default(['ES256', 'EdDSA', 'RS256']),
  typ: z.array(z.string().min(1)).min(1).default(['at+jwt']),
  clockSkew: duration(0, 120_000).default(5_000),
  client: z.strictObject({ id: z.string().min(1), secret: secret }).optional(),
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
  pathEquality: pathEqualitySchema.prefault({}),
  /** Whether it is the issuer: only then its cookies pass. */
  issuer: z.boolean().optional(),
  /** `aud` of the identity JWT; without one the upstream gets none. */
  identityAudience: z.string().min(1).max(2_048).optional(),
})

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
  policies,
  decisionLog: decisionLog.optional(),
  accessLog: accessLog.optional(),
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
      /** A second and address of a client, before answers wait. */
      refusedTokens: z.number().int().min(1).max(1_000_000).default(100),
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
      /** Of what is behind the other proxy, for routes that name no upstream. */
      pathEquality: pathEqualitySchema.prefault({}),
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
