import { z } from 'zod'
import type { MetricsSnapshot } from '../../platform/metrics.ts'
import { introspectionAnswer } from '../caller/introspection-questions.ts'
import { revocationEntry } from '../caller/revocation-reader.ts'
import { decisionFilter, shadowDifference } from '../inspection/decision-answers.ts'
import { sessionState, trustedIssuers } from '../inspection/trusted-issuers.ts'
import { gatewayInspection } from '../inspection/upstreams.ts'
import type { Calls } from './channel.ts'

/** What the primary process and its workers say to each other; `channel.ts` carries it. */

const nothing = z.undefined()
/** Of a call that is done, or rejects. */
const done = z.void()
const bytes = z.instanceof(Uint8Array)

/** Compiled rules, as a bundle. `name` and `path` are those of their `PolicySource`. */
const policyBundle = z.object({ name: z.string(), path: z.string(), bundle: bytes })
export type PolicyBundle = z.output<typeof policyBundle>

/** `gateway.yaml` as the primary process read it, with the variables of the environment that it names. */
const configuration = z.object({
  file: z.string(),
  text: z.string(),
  environment: z.record(z.string(), z.string()),
})
export type Configuration = z.output<typeof configuration>

const snapshot = z.custom<MetricsSnapshot>((value) => Array.isArray(value))
const check = z.object({ ok: z.boolean(), detail: z.string().optional() })

/** Several may be under way: one of a configuration may wait for its issuers. */
const change = z.object({ id: z.number().int() })

/** Records as JSON; `time` in ms since 1970. */
const foundDecisions = z.object({
  decisions: z.array(z.object({ time: z.number(), bytes })),
  more: z.boolean(),
})
/** `since` in ms since 1970; `most` in bytes. */
const replay = z.object({ since: z.number(), most: z.number() })
/** The primary process' own number for whoever is told of decisions. */
const follower = z.object({ follower: z.number().int() })

/** Asked of a worker. */
export const workerCalls = {
  /** The first call. */
  start: {
    body: z.object({
      /** From 1 to `of`; whoever takes the place of a worker has its number. */
      worker: z.number().int(),
      of: z.number().int(),
      log: z.object({ name: z.string(), level: z.string() }),
      /** The same for all: each takes up TLS sessions of the others. */
      ticketKeys: bytes,
      /** The same for all: a nonce of one is good for the others. */
      nonceKey: bytes,
      portSetting: z.string(),
      /** That the gateway was started with: of its listeners all workers have the settings of then. */
      first: configuration,
    }),
    answer: done,
  },
  /**
   * Makes everything that the change needs, without using it: of a configuration or of rules. `settle`: how long to
   * wait for keys and revocations of issuers, in ms; then it takes over without.
   */
  prepare: {
    body: change.extend({
      configuration: configuration.optional(),
      policies: z.array(policyBundle),
      settle: z.number().optional(),
    }),
    answer: done,
  },
  /** New requests wait from now on. */
  hold: { body: change, answer: done },
  /** What was prepared takes over, and requests that waited begin. */
  commit: { body: change, answer: done },
  /** What was prepared is thrown away, and requests that waited begin. */
  discard: { body: change, answer: done },
  /** Answered by whoever reads what it is told. */
  ping: { body: nothing, answer: done },
  /** Opens what serves connections; they are handed over from then on (`hand-out.ts`). */
  serve: { body: nothing, answer: done },
  metrics: { body: nothing, answer: snapshot },
  health: { body: nothing, answer: z.object({ ok: z.boolean(), checks: z.record(z.string(), check) }) },
  inspect: { body: nothing, answer: gatewayInspection },
  issuers: { body: nothing, answer: trustedIssuers },
  session: { body: z.object({ sid: z.string() }), answer: sessionState },
  /** Of those that it keeps. */
  findDecisions: { body: z.object({ filter: decisionFilter, limit: z.number().int() }), answer: foundDecisions },
  differences: { body: nothing, answer: z.array(shadowDifference) },
  /** It tells of decisions by `decisions` from now on; first of those that it keeps, where there is a `replay`. */
  followDecisions: { body: follower.extend({ filter: decisionFilter, replay: replay.optional() }), answer: done },
  unfollowDecisions: { body: follower, answer: done },
  reopenLogs: { body: nothing, answer: done },
  /** From now on each answer is the last one of its connection. */
  endKeepAlive: { body: nothing, answer: done },
  /** Ends as a gateway ends, answers its last metrics, and ends the process. No connection is handed over any more. */
  drain: { body: nothing, answer: snapshot },
  /** What is new of a feed that the worker follows. `silent`: for how long it has not been heard of, in ms. */
  revoked: {
    body: z.object({
      feed: z.number().int(),
      entries: z.array(revocationEntry),
      upToDate: z.boolean(),
      silent: z.number(),
    }),
    answer: done,
  },
  feedFailed: {
    body: z.object({ feed: z.number().int(), reason: z.string(), failures: z.number().int() }),
    answer: done,
  },
} satisfies Calls

/** Seconds. */
const feed = z.object({ url: z.string(), id: z.string(), secret: z.string(), waitSeconds: z.number() })
export type FeedAddress = z.output<typeof feed>

/** A JSON document of an issuer. Times in ms. */
const documentRequest = z.object({
  url: z.string(),
  timeoutMs: z.number(),
  maxBytes: z.number(),
  /** How long an answer may be shared with others. */
  cooldownMs: z.number(),
})
export type DocumentRequest = z.output<typeof documentRequest>

/** `key` is a limit's own. */
const wantedToken = z.object({ key: z.string(), party: z.string() })
const bucketAnswer = z.object({ wait: z.number(), left: z.number(), fullIn: z.number() })

/** `id` and `secret` are those of the client that asks. */
const introspectionRequest = z.object({
  issuer: z.string(),
  url: z.string(),
  id: z.string(),
  secret: z.string(),
  token: z.string(),
})
export type IntrospectionRequest = z.output<typeof introspectionRequest>
/** `until` in ms since the epoch. */
const usedProof = z.object({ id: z.string(), until: z.number() })

/** Asked of the primary process. */
export const primaryCalls = {
  fetch: {
    body: documentRequest,
    answer: z.union([
      z.object({ body: z.unknown(), cacheControl: z.string(), ageMs: z.number().optional() }),
      /** Of an answer that was not 200: whether there is a document decides where the next one is looked for. */
      z.object({ status: z.number().int() }),
    ]),
  },
  /** `feed` is the worker's own number for what follows. */
  follow: { body: feed.extend({ feed: z.number().int() }), answer: done },
  unfollow: { body: z.object({ feed: z.number().int() }), answer: done },
  /** One list for each request that waits: tokens that it needs of several limits, all or none. */
  take: { body: z.array(z.array(wantedToken)), answer: z.array(z.array(bucketAnswer)) },
  /** What an issuer says of an opaque token. */
  introspect: { body: introspectionRequest, answer: introspectionAnswer },
  /** DPoP proofs that are being used: whether each is used for the first time. */
  useProofs: { body: z.array(usedProof), answer: z.array(z.enum(['first', 'again', 'full'])) },
  /** Answered when they are with whoever follows. `lost`: so many were not kept for it. `old`: of a replay. */
  decisions: {
    body: follower.extend({ records: z.array(bytes), lost: z.number().int(), old: z.boolean() }),
    answer: done,
  },
  /** The keys and revocations of all issuers are there. */
  ready: { body: nothing, answer: done },
} satisfies Calls
