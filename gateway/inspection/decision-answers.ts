import { z } from 'zod'
import { explainedRule, nearMiss, remedy, stages } from './explanation.ts'
import { decisionSummary } from './policy-answers.ts'

/** What the endpoints about decisions answer: records, why one ended so, what rules say of an input. */

export const verdicts = ['allowed', 'denied', 'failed'] as const
export type Verdict = (typeof verdicts)[number]

/**
 * An event of the decision log (OPA's format, masked as there) and how the request ended. Masks of the decision log may
 * have taken out any member under `input` and `result`, so nothing there is promised.
 */
export const decisionRecord = z.looseObject({
  /** The id of the request. */
  decision_id: z.string(),
  /** RFC 3339. */
  timestamp: z.string(),
  /** The entrypoint; absent when no route matched. */
  path: z.string().optional(),
  input: z.unknown(),
  result: z.unknown(),
  error: z.object({ message: z.string() }).optional(),
  requested_by: z.string().optional(),
  labels: z.record(z.string(), z.string()),
  bundles: z.record(z.string(), z.object({ revision: z.string() })),
  erased: z.array(z.string()).optional(),
  masked: z.array(z.string()).optional(),
  /** `failed`: something of ours, of the upstream's or of the policy's went wrong. */
  verdict: z.enum(verdicts),
  /** As the client got it; 0: it left before. */
  status: z.number(),
  /** Of the problem document. */
  code: z.string().optional(),
  detail: z.string().optional(),
  route: z.string().optional(),
  target: z.string().optional(),
  retries: z.number().optional(),
  /** ms */
  duration: z.number(),
  trace_id: z.string().optional(),
  span_id: z.string().optional(),
})
export type DecisionRecord = z.output<typeof decisionRecord>

/** Which records are wanted; all that are given must fit. */
export const decisionFilter = z.strictObject({
  request: z.string().max(256).optional(),
  sid: z.string().max(1_024).optional(),
  subject: z.string().max(1_024).optional(),
  route: z.string().max(64).optional(),
  verdict: z.enum(verdicts).optional(),
})
export type DecisionFilter = z.output<typeof decisionFilter>

/** Of a list: how many, at most 1 000. */
export const limitOf = (otherwise: number) =>
  z
    .string()
    .regex(/^\d{1,4}$/, 'must be a number')
    .transform(Number)
    .pipe(z.number().int().min(1).max(1_000))
    .prefault(String(otherwise))

export const decisions = z.object({
  /** Newest first. */
  decisions: z.array(decisionRecord),
  /** Whether there are more that fit than `limit` or the bound of an answer. */
  more: z.boolean(),
})

export const why = z.object({
  request: z.string(),
  /** RFC 3339. */
  timestamp: z.string(),
  verdict: z.enum(verdicts),
  status: z.number(),
  /** Of the request, as far as it could be read. */
  method: z.string().optional(),
  host: z.string().optional(),
  path: z.string().optional(),
  route: z.string().optional(),
  nearMisses: z.array(nearMiss),
  /** What the token said, as far as the masks leave it. Absent without a good token. */
  token: z
    .object({
      issuer: z.string().optional(),
      subject: z.string().optional(),
      /** Who acts for the subject, the present one first. */
      actors: z.array(z.string()).optional(),
      client: z.string().optional(),
      organization: z.string().optional(),
      audience: z.array(z.string()).optional(),
      scopes: z.array(z.string()).optional(),
      sid: z.string().optional(),
      acr: z.string().optional(),
      /** Seconds since 1970. */
      expires: z.number().optional(),
      /** To a key (RFC 9449) or a client certificate (RFC 8705). */
      bound: z.enum(['key', 'certificate']).optional(),
    })
    .optional(),
  /** Why it was not answered; absent when it was. */
  refusal: z.object({ stage: z.enum(stages), code: z.string(), because: z.string() }).optional(),
  /** Where a compiler is at hand and the policy was asked. */
  rules: z.array(explainedRule).optional(),
  wouldAllow: z.array(remedy),
  /** What could not be told or tried, and why: sentences. */
  notes: z.array(z.string()),
})
export type Why = z.output<typeof why>

export const evaluation = z.object({
  /** Absent: no rule gave a value. */
  result: z.unknown(),
  /** Why there is no result: a sentence of the engine. */
  error: z.string().optional(),
  /** Of work, as the engine counts it. */
  units: z.number(),
  /** What masks of the decision log have taken out of the result, as JSON pointers. */
  erased: z.array(z.string()).optional(),
  masked: z.array(z.string()).optional(),
  /** Of the policies that were asked. */
  revision: z.string(),
  /** Where a compiler and the rules' sources are at hand. */
  rules: z.array(explainedRule).optional(),
})

export const evaluationRequest = z.strictObject({
  /** Default: `policies.entrypoint`. */
  entrypoint: z.string().min(1).max(512).optional(),
  input: z.unknown(),
})

export const shadowDifference = z.object({
  /** RFC 3339. */
  timestamp: z.string(),
  requestId: z.string(),
  route: z.string(),
  entrypoint: z.string(),
  /** The members of the decision. */
  differs: z.array(z.string()),
  live: decisionSummary,
  shadow: decisionSummary,
  /** Of the shadow policies. */
  revision: z.string(),
})
export type ShadowDifference = z.output<typeof shadowDifference>

export const shadow = z.object({
  /** Whether there are shadow policies. */
  configured: z.boolean(),
  /** Newest first, the last 100 of each process. */
  differences: z.array(shadowDifference),
})

export const session = z.object({
  /** Every process of the gateway refuses tokens with this `sid` by now. */
  ended: z.boolean(),
  /** Whether it follows what an issuer revokes; without that it cannot know. */
  followed: z.boolean(),
})

/** An event of `GET /decisions/stream`, by its name; `data` is JSON. */
export const streamEvents = {
  decision: decisionRecord,
  /**
   * How many fitting records this reader was too slow for since the last event; or that were asked for by `since` and
   * are not kept any more: of those at least 1 is told.
   */
  lost: z.object({ lost: z.number() }),
  /** The last one. */
  end: z.object({ because: z.enum(['expired', 'revoked', 'refused', 'closing']) }),
} as const
