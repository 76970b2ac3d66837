import { setting } from '../../platform/config.ts'
import type { Database } from '../../platform/database/database.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { type RemovableKind, removeOld } from './retention-store.ts'

const day = 86_400_000

/**
 * Kept no longer than they mean something: used assertions and proofs until they expire, buckets until they are full
 * again, what signing in needs until it is over. Not settings.
 */
const fixed = {
  clientAssertions: 0,
  dpopProofs: 0,
  rateLimits: 120_000,
  refreshTokens: 0,
  consents: 0,
  // Like sign-ins by default; what came of them, and why, stands in the session of impersonation.
  impersonationRequests: 90 * day,
  // So that a link that was used or has expired is told as such.
  oneTimeTokens: 7 * day,
  interactions: day,
  proofs: day,
  // Until what they opened has expired as well.
  pushedRequests: 2 * 3_600_000,
  // So that a device that asks late is told that its time is over.
  deviceCodes: day,
  // As long as the cookie.
  knownDevices: 400 * day,
  // Longer than the longest lock.
  signInFailures: 2 * day,
  captchaSolutions: 0,
  consoleSessions: 0,
  consoleInvitations: 0,
  // Longer than the time in which they count together.
  failingIdentifiers: 3_600_000,
  // Longer than the longest window.
  messageCounts: 2 * day,
}

export type RetentionKind = Exclude<RemovableKind, keyof typeof fixed>

/**
 * How long each kind of row is kept, in ms: after its expiry, or after it was made where it does not expire. Events:
 * the relay's.
 */
export const retentionDefaults = {
  subjectTokens: 7 * day,
  opaqueTokens: day,
  sessions: 400 * day,
  signInSessions: 90 * day,
  authorizations: 90 * day,
  logs: 400 * day,
  revocations: 0,
  idempotency: day,
} satisfies Record<RetentionKind, number>

export type Retention = Record<RetentionKind, number>

/** The settings behind `Retention`. */
export const retentionSettings = {
  /** After their expiry. */
  RETENTION_SUBJECT_TOKENS: setting.duration().default(retentionDefaults.subjectTokens),
  /** After their expiry. */
  RETENTION_OPAQUE_TOKENS: setting.duration().default(retentionDefaults.opaqueTokens),
  /** After their start; those whose token is still good stay. */
  RETENTION_SESSIONS: setting.duration().default(retentionDefaults.sessions),
  /** Sessions in which people signed in, and what applications got in them: after their end. */
  RETENTION_SIGN_INS: setting
    .duration()
    .refine((ms) => ms >= day, 'must be at least 1d')
    .default(retentionDefaults.signInSessions),
  /** The audit trail. */
  RETENTION_LOGS: setting.duration().default(retentionDefaults.logs),
  /** After the last token they concern has expired. */
  RETENTION_REVOCATIONS: setting.duration().default(retentionDefaults.revocations),
  /** Answers to requests with an `Idempotency-Key`. */
  RETENTION_IDEMPOTENCY: setting.duration().default(retentionDefaults.idempotency),
}

export interface RetentionDependencies {
  database: Pick<Database, 'transaction'>
  retention: Retention
  logger: Logger
  metrics: Metrics
  /** Rows of one transaction. Default 5 000. */
  batch?: number
}

export interface RetentionJob {
  /** Removes everything that is too old now, unless another instance is at it. */
  run(): Promise<void>
  /** Runs every hour from then on, first after a minute. */
  start(): void
  /** Waits for the batch that is being removed. */
  close(): Promise<void>
}

const firstAfterMs = 60_000
const everyMs = 3_600_000

export const createRetentionJob = (dependencies: RetentionDependencies): RetentionJob => {
  const { database, retention, logger, metrics, batch = 5_000 } = dependencies
  const counter = metrics.counter('surrogate_retention_removed_total', 'Rows removed for their age.', ['kind'])
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let closed = false

  const kept: Record<RemovableKind, number> = { ...fixed, ...retention }

  const removeAll = async (kind: RemovableKind) => {
    let total = 0
    let removed: number | undefined
    do {
      removed = await removeOld(database, kind, kept[kind], batch)
      total += removed ?? 0
    } while (removed === batch && !closed)
    counter.inc({ kind }, total)
    if (total > 0) logger.info({ kind, removed: total }, 'removed what was kept long enough')
  }

  const run = async () => {
    // One kind that fails does not keep the others.
    for (const kind of Object.keys(kept) as RemovableKind[]) {
      if (closed) return
      await removeAll(kind).catch((error) => logger.error({ err: error, kind }, 'old rows could not be removed'))
    }
  }

  const schedule = (ms: number) => {
    timer = setTimeout(() => {
      running = run()
      void running.then(() => closed || schedule(everyMs))
    }, ms)
    timer.unref()
  }

  return {
    run,
    start: () => schedule(firstAfterMs),
    async close() {
      closed = true
      clearTimeout(timer)
      await running
    },
  }
}
