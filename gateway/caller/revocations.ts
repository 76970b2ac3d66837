import type { Clock } from '../../platform/clock.ts'
import type { VerifiedClaims } from '../../platform/jwt/verify.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Secret } from '../../platform/secret.ts'
import { invalidToken } from '../refusals/challenges.ts'
import { problem } from '../refusals/problems.ts'
import type { Stage } from '../request/request-context.ts'
import { createRevocationIndex } from './revocation-index.ts'
import { followRevocations } from './revocation-reader.ts'

/** What one issuer has revoked, followed through its feed. */
export interface Revocations {
  readonly issuer: string
  /** Throws 401 `invalid_token` for a revoked token, and 503 `revocations_unavailable` when that cannot be known. */
  check(claims: VerifiedClaims): void
  /** Resolves when the feed has been read once from its beginning. */
  readonly ready: Promise<void>
  /** Runs when revocations have arrived and count. Returns a function that ends that. */
  onUpdate(listener: () => void): () => void
  /**
   * For `/readyz`: not ok before the first full read; afterwards ok, since other issuers' tokens are served whatever
   * becomes of this feed.
   */
  status(): { ok: boolean; detail?: string }
  /** Whether all tokens with this `sid` are refused as revoked. */
  hasEnded(sid: string): boolean
  /** `silent`: since the feed was last heard of, in ms; absent before it was read once. */
  state(): { entries: number; silent?: number; problem?: string }
  close(): Promise<void>
}

export interface RevocationsOptions {
  issuer: string
  /** Where the feed is. Default: `<issuer>/revocations`. */
  url?: string | undefined
  /** Holds the management permission `revocations`. */
  client: { id: string; secret: Secret }
  /** How long tokens are served after the feed was last heard of, in ms. At least 5 000. */
  maxStale: number
  /** What then happens: 503, or (insecure) tokens are served as if nothing more had been revoked. */
  whenStale: 'deny' | 'serve'
  logger: Logger
  metrics: Metrics
  now: Clock
  /** Reads the feed. Default: over the network. */
  follow?: typeof followRevocations | undefined
}

const leastStaleMs = 5_000
/** A silent feed answers after this long, so it is heard of at least this often, in seconds. */
const longestWait = 25
const pruneEveryMs = 60_000

/** Starts following at once. `now` serves the ages; the waiting runs on the machine's clock. */
export const createRevocations = (options: RevocationsOptions): Revocations => {
  const { issuer, whenStale, logger, metrics, now, follow = followRevocations } = options
  const maxStale = Math.max(options.maxStale, leastStaleMs)
  const index = createRevocationIndex()
  const first = Promise.withResolvers<void>()
  let complete = false
  let lastHeard = 0
  let lastPruned = 0
  let trouble: string | undefined
  const listeners = new Set<() => void>()

  const silentMs = () => now().getTime() - lastHeard
  const isStale = () => silentMs() > maxStale

  const reader = follow({
    url: options.url ?? `${issuer}/revocations`,
    client: options.client,
    // Well within the time that a feed may be silent.
    waitSeconds: Math.min(longestWait, Math.floor(maxStale / 2_000)),
    onPage(entries, upToDate, silentMs = 0) {
      for (const entry of entries) index.add(entry)
      if (entries.length > 0) for (const listener of listeners) listener()
      if (!upToDate) return
      const time = now().getTime()
      if (trouble !== undefined) logger.info({ issuer }, 'the revocation feed is followed again')
      trouble = undefined
      lastHeard = time - silentMs
      if (time - lastPruned >= pruneEveryMs) {
        index.prune(time / 1000)
        lastPruned = time
      }
      complete = true
      first.resolve()
    },
    onFailure(reason, failures) {
      trouble = reason
      // Once per outage, and again every minute or so.
      if (failures % 12 === 1) logger.error({ issuer, reason, failures }, 'the revocation feed cannot be read')
    },
  })

  const gauges = {
    entries: metrics.gauge('surrogate_gateway_revocations', 'Revocations in memory', ['issuer']),
    silence: metrics.gauge('surrogate_gateway_revocations_silent_seconds', 'Since the feed was last heard of', [
      'issuer',
    ]),
    stale: metrics.gauge('surrogate_gateway_revocations_stale', '1 while the feed has been silent for too long', [
      'issuer',
    ]),
  }
  const stopCollecting = metrics.onCollect(() => {
    gauges.entries.set({ issuer }, index.size)
    gauges.silence.set({ issuer }, complete ? Math.max(0, silentMs() / 1000) : 0)
    gauges.stale.set({ issuer }, !complete || isStale() ? 1 : 0)
  })

  const status = (): { ok: boolean; detail?: string } => {
    const because = trouble === undefined ? '' : `: ${trouble}`
    if (!complete) return { ok: false, detail: `the revocations of ${issuer} have not been read yet${because}` }
    if (isStale()) {
      const consequence = whenStale === 'deny' ? 'its tokens are refused' : 'its tokens are served all the same'
      return { ok: true, detail: `the revocations of ${issuer} are too old, ${consequence}${because}` }
    }
    if (trouble === undefined) return { ok: true }
    return { ok: true, detail: `the revocations of ${issuer} cannot be followed now${because}` }
  }

  return {
    issuer,
    ready: first.promise,
    check(claims) {
      if (index.isRevoked(claims)) throw invalidToken('The token was revoked.')
      if (complete && (whenStale === 'serve' || !isStale())) return
      throw problem('revocations_unavailable', { headers: { 'retry-after': '5' } })
    },
    onUpdate(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    hasEnded: index.hasEnded,
    state() {
      const { detail } = status()
      return {
        entries: index.size,
        ...(complete && { silent: Math.max(0, Math.round(silentMs())) }),
        ...(detail !== undefined && { problem: detail }),
      }
    },
    status,
    async close() {
      stopCollecting()
      for (const gauge of Object.values(gauges)) gauge.remove({ issuer })
      await reader.close()
    },
  }
}

export interface CheckRevokedParts {
  /** Of the issuers whose feed is followed. */
  revocations: readonly Revocations[]
}

/** Refuses tokens that were revoked after they were signed. Runs on every request, also for cached tokens. */
export const createCheckRevoked = ({ revocations }: CheckRevokedParts): Stage => {
  const followed = new Map(revocations.map((one) => [one.issuer, one]))
  return ({ principal }) => {
    if (principal) followed.get(principal.claims.iss)?.check(principal.claims)
  }
}
