import { z } from 'zod'
import { targetRows } from './targets.ts'
import { duration, pathEquality, share } from './values.ts'

const retries = z.strictObject({
  attempts: z.number().int().min(2).max(10).default(2).describe('For one request, the first one counted.'),
  on: z
    .array(z.literal(['connect', 'refused-stream', 502, 503, 504]))
    .min(1)
    .default(['connect', 'refused-stream', 502, 503, 504])
    .describe(
      'After what. `connect`: there is no connection, nothing was sent. `refused-stream`: the connection ended before an answer. `502`, `503`, `504`: this answer, and for 502 an invalid one, for 504 none in time.',
    ),
  budget: share
    .prefault('20%')
    .describe(
      'Repeated requests of the last 10 s, of all requests of the upstream in that time; 10 are always allowed.',
    ),
})

export type RetrySettings = z.output<typeof retries>

/** Files are relative to the configuration. */
const tls = z.strictObject({
  ca: z.string().min(1).optional().describe("PEM of the authorities that are trusted, in the place of the system's."),
  cert: z.string().min(1).optional().describe('PEM of the certificate that the gateway shows, with its chain.'),
  key: z.string().min(1).optional().describe('PEM of its private key, without a passphrase.'),
  serverName: z
    .string()
    .regex(
      /^(?=.{1,253}$)[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*$/,
      'must be a host name',
    )
    .optional()
    .describe("The name in the targets' certificates, and for SNI. Default: that of the URL."),
})

export type TlsSettings = z.output<typeof tls>

/** An entry of `upstreams:`. One row is one setting: what may stand there, its default, and what it means. */
export const upstream = z
  .strictObject({
    ...targetRows,
    connectTimeout: duration(1, 60_000).prefault('2s').describe('Until a connection is there: 504.'),
    headersTimeout: duration(1, 3_600_000)
      .prefault('30s')
      .describe(
        "Longest silence until the head of the answer: 504. Time spent waiting for the client's body does not count.",
      ),
    idleTimeout: duration(0, 86_400_000)
      .prefault('60s')
      .describe(
        'Longest silence within the answer, and how long a client may stand still; `0s` for streams that may be quiet.',
      ),
    maxRequests: z
      .number()
      .int()
      .min(1)
      .max(100_000)
      .default(1_024)
      .describe(
        'At the same time, from before their bodies have come until the upstream has answered; more get 503 at once.',
      ),
    maxWebSockets: z.number().int().min(1).max(100_000).default(4_096).describe('Open at the same time; more get 503.'),
    webSocketIdleTimeout: duration(0, 86_400_000)
      .prefault('5m')
      .describe('How long neither side of a WebSocket may send anything; `0s`: for ever.'),
    pathEquality: pathEquality.prefault({}).describe('Which spellings of a path the API takes for the same.'),
    retries: retries.optional().describe('Repeats requests that failed. Default: none is repeated.'),
    tls: tls.optional().describe('How `https` targets are verified, and what the gateway shows them.'),
    issuer: z
      .boolean()
      .optional()
      .describe(
        '`true`: this is the issuer, or its console. Its cookies (`surrogate_*`, `__Host-surrogate*`) reach no other upstream, and no other one sets them or deletes them.',
      ),
    identityAudience: z
      .string()
      .min(1)
      .max(2_048)
      .optional()
      .describe('`aud` of the signed identity in `x-auth-assertion`; needs `identity`. Without one there is none.'),
  })
  .describe('An API behind the gateway.')

export type UpstreamSettings = z.output<typeof upstream>
