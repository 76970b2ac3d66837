import { z } from 'zod'
import { targetRows } from './targets.ts'
import { duration, pathEquality } from './values.ts'

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
    issuer: z
      .boolean()
      .optional()
      .describe(
        '`true`: this is the issuer, or its console. Its cookies (`surrogate_*`, `__Host-surrogate*`) reach no other upstream, and no other one sets them.',
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
