import { z } from 'zod'
import { supportedAlgorithms } from '../../../platform/jwt/algorithms.ts'
import { bytes, duration, httpUrl, secret } from './values.ts'

/** An entry of `issuers:`. One row is one setting: what may stand there, its default, and what it means. */

const algorithm = z
  .string()
  .refine((alg) => supportedAlgorithms.includes(alg), `must be one of ${supportedAlgorithms.join(', ')}`)

const jwks = z.strictObject({
  cooldown: duration(1_000, 3_600_000).prefault('10s').describe('Between two questions about keys that are not known.'),
  timeout: duration(100, 60_000).prefault('5s').describe('For one answer.'),
  maxBytes: bytes(1_024, 16_777_216).prefault('256kB').describe('Of one answer.'),
})

const client = z.strictObject({
  id: z.string().min(1).describe('Client id of the gateway.'),
  secret: secret.describe('Its secret: `"${NAME}"` of the environment rather than here.'),
})

const introspection = z.strictObject({
  url: httpUrl
    .optional()
    .describe(
      'Default: by discovery (`introspection_endpoint`). An internal address maybe. Redirects are not followed.',
    ),
  client: client.optional().describe('How the gateway shows itself there. Default: the `client` of the issuer.'),
})

const revocations = z.strictObject({
  mode: z
    .enum(['feed', 'off'])
    .default('off')
    .describe('`feed`: what the issuer revokes is refused within a second. `off`: for foreign issuers.'),
  url: httpUrl.optional().describe('Default: `<issuer>/revocations`. May be an internal address.'),
  maxStale: duration(0, 86_400_000)
    .prefault('5m')
    .describe('How long tokens are served while the feed is silent; 5 s at least.'),
  whenStale: z
    .enum(['deny', 'serve'])
    .default('deny')
    .describe('Then: 503, or with `serve` (insecure) as if nothing had been revoked.'),
})

export const issuer = z.strictObject({
  issuer: httpUrl.describe('The exact `iss`. A key set serves the tokens of its own issuer only.'),
  jwksUri: httpUrl
    .optional()
    .describe('Where the keys are, an internal address maybe. Default: by discovery. Redirects are not followed.'),
  jwks: jwks.prefault({}).describe('How the key set is asked for.'),
  algorithms: z
    .array(algorithm)
    .min(1)
    .default(['ES256', 'EdDSA', 'RS256'])
    .describe('What tokens may be signed with; asymmetric algorithms only.'),
  typ: z
    .array(z.string().min(1))
    .min(1)
    .default(['at+jwt'])
    .describe(
      'Accepted token types (RFC 9068). `[JWT]` for issuers that do not set it: tokens with `nonce` or `at_hash` (ID tokens) are then refused.',
    ),
  clockSkew: duration(0, 120_000).prefault('5s').describe('Between the clocks, at most `120s`.'),
  client: client
    .optional()
    .describe('How the gateway shows itself to the issuer, for revocations, personal access tokens and introspection.'),
  tokenEndpoint: httpUrl
    .optional()
    .describe('Where personal access tokens are exchanged. Default: `<issuer>/token`. May be an internal address.'),
  introspection: introspection
    .optional()
    .describe('Asks the issuer about tokens that are no JWTs (RFC 7662). Default: they are refused.'),
  revocations: revocations.optional().describe('Following what the issuer revokes.'),
})

export type IssuerSettings = z.output<typeof issuer>

/** The issuers that are asked about opaque tokens, and how the gateway shows itself to them. */
export const introspectionsOf = (issuers: readonly IssuerSettings[]) =>
  issuers.flatMap(({ issuer, client, clockSkew, introspection }) => {
    const shown = introspection?.client ?? client
    return introspection && shown ? [{ issuer, clockSkew, url: introspection.url, client: shown }] : []
  })
