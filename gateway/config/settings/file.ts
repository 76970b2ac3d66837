import { z } from 'zod'
import { extAuthz } from './ext-authz.ts'
import { inspection } from './inspection.ts'
import { issuer } from './issuer.ts'
import { address, listen } from './listen.ts'
import { accessLog, decisionLog } from './logs.ts'
import { policies } from './policies.ts'
import { route } from './route.ts'
import { telemetry } from './telemetry.ts'
import { upstream } from './upstream.ts'
import { bytes, duration, identifier, network, pathEquality } from './values.ts'

/**
 * The members of `gateway.yaml`. Objects are strict: a misspelt name must not silently mean a default. What is
 * described here is shown by editors, and is short; the whole story is in docs/operators.md.
 */

const admin = z.strictObject(address(9300)).prefault({})

const limits = z.strictObject({
  targetLength: z.number().int().min(256).max(65_536).default(8_192).describe('Characters of path and query: 414.'),
  headerCount: z.number().int().min(10).max(1_000).default(100).describe('Header fields: 431.'),
  headerSize: bytes(4_096, 262_144).prefault('32kB').describe('Of all header fields: 431.'),
  bodySize: bytes(0, Number.MAX_SAFE_INTEGER).prefault('100MB').describe('Of a body: 413.'),
  policyBodies: bytes(262_144, 1_073_741_824)
    .prefault('64MB')
    .describe('Memory for the bodies that policies look at, of all requests that are under way: 503.'),
  keepAliveTimeout: duration(1_000, 3_600_000)
    .prefault('75s')
    .describe('How long a connection may be idle between two requests.'),
  headersTimeout: duration(100, 600_000).prefault('10s').describe('Until the header fields have arrived: 408.'),
  requestTimeout: duration(100, 86_400_000).prefault('5m').describe('Until the whole request has arrived: 408.'),
  refusedTokens: z
    .number()
    .int()
    .min(1)
    .max(1_000_000)
    .default(100)
    .describe('A second and client address, before the answers to refused tokens wait up to half a second.'),
})

const drain = z.strictObject({
  delay: duration(0, 30_000)
    .prefault('0s')
    .describe('Between "not ready" and closing the listener, for balancers to notice.'),
  timeout: duration(0, 50_000).prefault('10s').describe('How long running requests may take to end.'),
})

const forwardAuth = z.strictObject({
  path: z
    .string()
    .regex(/^(?:\/[A-Za-z0-9._~-]+)+$/, 'must be a path of unreserved characters without a final slash')
    .default('/.surrogate/auth')
    .describe('Where decisions are given; with Envoy the prefix.'),
  dialect: z.enum(['nginx', 'traefik', 'caddy', 'envoy']).describe('Which proxy asks.'),
  pathEquality: pathEquality
    .prefault({})
    .describe('Which spellings of a path the API behind that proxy takes for the same; for routes without upstream.'),
})

export type ForwardAuthSettings = z.output<typeof forwardAuth>

const identity = z.strictObject({
  issuer: z.string().min(1).max(2_048).describe('Its iss; need not be an address.'),
  keyFile: z.string().min(1).describe('Private JWK (EC, P-256) that signs, or a JWK Set whose first key signs.'),
})

/** The names for `allowInsecure`; `insecure-settings.ts` finds where each is used. */
export const insecureNames = [
  'http-issuer',
  'http-upstream',
  'http-log',
  'http-telemetry',
  'http-inspection',
  'no-revocations',
  'serve-when-stale',
  'trust-everybody',
  'public-by-default',
  'plaintext-ext-authz',
] as const

export const gatewayFile = z.strictObject({
  version: z.literal(1).describe('Of this format: 1.'),
  allowInsecure: z
    .array(z.enum(insecureNames))
    .default([])
    .describe('Insecure settings that are meant. Each is an error unless it is named here.'),
  workers: z
    .union(
      [z.literal('auto'), z.number().int().min(1).max(256)],
      'must be a number of processes from 1 to 256, or auto',
    )
    .default(1)
    .describe('Processes that share the public port, of the command line; `auto`: one for each core.'),
  listen: listen.describe('The public listener.'),
  admin: admin.describe('The listener for operators: /livez, /readyz, /metrics.'),
  inspection: inspection
    .optional()
    .describe('A listener that tells callers with a token what is decided and why. Default: none.'),
  forwardedBy: z
    .enum(['x-forwarded', 'forwarded'])
    .default('x-forwarded')
    .describe(
      'The header that trusted proxies write: X-Forwarded-* or Forwarded (RFC 7239). The other is dropped, since a client may have written it.',
    ),
  trustedProxies: z.array(network).default([]).describe('Addresses or CIDRs whose X-Forwarded-* are believed.'),
  issuers: z.array(issuer).default([]).describe('Whose tokens are accepted.'),
  policies: policies.prefault({}).describe('The rules that decide. Default: those that come with the gateway.'),
  decisionLog: decisionLog.optional().describe("One line a request in the event format of OPA's decision logs."),
  accessLog: accessLog.optional().describe('One short line a request.'),
  telemetry: telemetry.optional().describe('Traces and metrics for an OpenTelemetry collector. Default: none.'),
  limits: limits.prefault({}).describe('Of requests.'),
  drain: drain.prefault({}).describe('How the gateway stops.'),
  upstreams: z.record(identifier, upstream).default({}).describe('The APIs behind the gateway, by name.'),
  routes: z.array(route).default([]).describe('Which requests are let through, and on what terms.'),
  forwardAuth: forwardAuth.optional().describe('Decisions for another proxy, which forwards the requests itself.'),
  extAuthz: extAuthz
    .optional()
    .describe('Decisions for Envoy, by gRPC (ext_authz, v3): the listener of them. It answers `trustedProxies` only.'),
  identity: identity.optional().describe('The identity JWT for upstreams.'),
  resourceMetadata: z
    .boolean()
    .default(true)
    .describe('RFC 9728 documents for the audiences that are URLs, and their addresses in challenges.'),
})

export type GatewayFile = z.output<typeof gatewayFile>
