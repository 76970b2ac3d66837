import { backOffMs } from '../back-off.ts'
import { type Clock, systemClock } from '../clock.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import { algorithms } from './algorithms.ts'
import { discoverJwksUri } from './discovery.ts'
import { type Fetched, fetchJson, type JsonFetcher } from './fetch-json.ts'
import { importJwks, type VerificationKey } from './keys.ts'

/** The keys of one issuer, fetched before they are needed, kept through rotations and through outages of the issuer. */
export interface JwksClient {
  readonly issuer: string
  /**
   * The key, or undefined when the issuer was asked and has none with this `kid`. An unknown `kid` causes one fetch,
   * shared by everybody who waits, at most every `cooldownMs`. Throws `KeysUnavailable` when there are no keys, or only
   * too old ones; and for a `kid` that the issuer could not be asked about, or only before it was first seen here: it
   * may be of a key that was made since.
   */
  get(kid: string): Promise<VerificationKey | undefined>
  /** The same from memory only: undefined means "ask `get`". */
  peek(kid: string): VerificationKey | undefined
  /** Whether the keys in memory may be used now. */
  usable(): boolean
  /** Grows when a key left or changed: what was verified under a smaller number must be verified again. */
  readonly generation: number
  /** Resolves with the first keys; an issuer that is down is asked again until it answers. */
  readonly ready: Promise<void>
  status(): { ok: boolean; detail?: string }
  /** Those in memory. `since`: when they were first there. */
  all(): { kid: string; alg: string; kty: string; since: Date }[]
  /** Runs after every change of `generation`. */
  onKeysChanged(listener: () => void): void
  close(): Promise<void>
}

export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable'
  /** When the issuer will be asked about the `kid`, in ms from now; undefined when it is not about a `kid`. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, { retryAfterMs }: { retryAfterMs?: number } = {}) {
    // Made as often as somebody likes to send tokens of unknown keys, and never a surprise: a stack would be most of
    // what it costs.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message)
    Error.stackTraceLimit = stackTraceLimit
    this.retryAfterMs = retryAfterMs
  }
}

export interface JwksClientOptions {
  /** Exact `iss`; also where discovery starts when there is no `jwksUri`. */
  issuer: string
  jwksUri?: string | undefined
  logger: Logger
  metrics?: Metrics | undefined
  now?: Clock | undefined
  /** Pause between fetches for unknown `kid`s, in ms. Default 10 000. */
  cooldownMs?: number | undefined
  /** Bounds for the `max-age` of the answer, in ms; without one `minAgeMs` counts. Defaults 30 000 and 3 600 000. */
  minAgeMs?: number | undefined
  maxAgeMs?: number | undefined
  /** How long keys past their age are used while the issuer does not answer, in ms. Default 3 600 000. */
  maxStaleMs?: number | undefined
  /** First pause before a failed fetch is tried again, in ms; doubles up to 30 000. Default 1 000. */
  retryMs?: number | undefined
  fetch?: JsonFetcher | undefined
}

const maxRetryMs = 30_000

/**
 * Of unknown `kid`s that are remembered until the next fetch, and of those that the issuer is known not to have.
 * Further ones, and in the second case the oldest, are merely asked about again.
 */
const maxUnknown = 1_000

const maxAgeOf = ({ cacheControl }: Fetched): number | undefined => {
  const match = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(cacheControl)
  return match ? Number(match[1]) * 1000 : undefined
}

/** Keeps the objects of keys that did not change, and tells whether one of the old ones is gone or different. */
const mergeKeys = (old: Map<string, VerificationKey>, fresh: Map<string, VerificationKey>) => {
  const keys = new Map(
    [...fresh].map(([kid, key]) => {
      const known = old.get(kid)
      return [kid, known && known.alg === key.alg && known.key.equals(key.key) ? known : key]
    }),
  )
  const removed = [...old.values()].some((key) => keys.get(key.kid) !== key)
  return { keys, removed }
}

/** Starts fetching at once. `now` serves the ages; timers run on the machine's clock. */
export const createJwksClient = (options: JwksClientOptions): JwksClient => {
  const { issuer, logger, now = systemClock, cooldownMs = 10_000, retryMs = 1_000 } = options
  const { minAgeMs = 30_000, maxAgeMs = 3_600_000, maxStaleMs = 3_600_000 } = options
  const fetcher = options.fetch ?? fetchJson()
  const fetches = options.metrics?.counter('surrogate_jwks_fetches_total', 'JWK Set fetches', ['issuer', 'outcome'])
  const unknownKids = options.metrics?.counter(
    'surrogate_jwks_unknown_kids_total',
    'Tokens that name a key which is not known yet, and are refused until the issuer may be asked again',
    ['issuer'],
  )
  const staleGauge = options.metrics?.gauge('surrogate_jwks_stale', '1 while keys past their age are used', ['issuer'])

  let keys = new Map<string, VerificationKey>()
  const firstSeen = new WeakMap<VerificationKey, Date>()
  let jwksUri = options.jwksUri
  let freshUntil = 0
  let usableUntil = 0
  let lastAttempt = Number.NEGATIVE_INFINITY
  let lastError: string | undefined
  let failures = 0
  let generation = 0
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false
  // Seen since the last fetch began; and those that a fetch could have told about, until their key is there.
  let unknown = new Set<string>()
  const absent = new Set<string>()
  const listeners: (() => void)[] = []
  const first = Promise.withResolvers<void>()

  const schedule = (ms: number) => {
    clearTimeout(timer)
    if (!closed) timer = setTimeout(() => void refresh(), ms).unref()
  }

  const load = async () => {
    const asked = unknown
    unknown = new Set()
    jwksUri ??= await discoverJwksUri(issuer, fetcher)
    const answer = await fetcher.get(jwksUri)
    const fresh = importJwks(answer.body)
    if (fresh.size === 0) throw new Error('the JWK Set holds no usable key')
    const { ageMs = 0 } = answer
    const age = Math.min(Math.max(maxAgeOf(answer) ?? minAgeMs, minAgeMs), maxAgeMs) - ageMs
    const merged = mergeKeys(keys, fresh)
    // Keys that have just left need not be asked about either. An older answer says nothing of what was seen since.
    for (const kid of [...(ageMs > 0 ? [] : asked), ...keys.keys()]) absent.add(kid)
    for (const kid of merged.keys.keys()) absent.delete(kid)
    for (const kid of absent) if (absent.size > maxUnknown) absent.delete(kid)
    keys = merged.keys
    for (const key of keys.values()) if (!firstSeen.has(key)) firstSeen.set(key, now())
    freshUntil = now().getTime() + age
    usableUntil = freshUntil + maxStaleMs
    failures = 0
    lastError = undefined
    if (answer.ageMs === undefined) fetches?.inc({ issuer, outcome: 'ok' })
    staleGauge?.set({ issuer }, 0)
    schedule(Math.max(age, retryMs))
    if (!merged.removed) return
    generation++
    for (const listener of listeners) listener()
  }

  const failed = (error: unknown) => {
    failures++
    lastError = error instanceof Error ? error.message : String(error)
    // Whatever was discovered may be what is wrong.
    jwksUri = options.jwksUri
    const stale = keys.size > 0 && now().getTime() >= freshUntil
    fetches?.inc({ issuer, outcome: 'error' })
    staleGauge?.set({ issuer }, stale ? 1 : 0)
    if (!closed) {
      const detail = { issuer, failures, reason: lastError, usableUntil: keys.size ? new Date(usableUntil) : undefined }
      logger[stale || keys.size === 0 ? 'error' : 'warn'](detail, 'the keys of a token issuer cannot be fetched')
    }
    schedule(backOffMs(failures, { first: retryMs, longest: maxRetryMs }))
  }

  /** Single flight; never rejects. */
  const refresh = (): Promise<void> => {
    if (closed) return Promise.resolve()
    lastAttempt = now().getTime()
    running ??= load()
      .catch(failed)
      .finally(() => {
        running = undefined
        if (keys.size > 0) first.resolve()
      })
    return running
  }

  const usable = () => keys.size > 0 && now().getTime() < usableUntil

  void refresh()

  return {
    issuer,
    ready: first.promise,
    get generation() {
      return generation
    },
    usable,
    peek: (kid) => (usable() ? keys.get(kid) : undefined),
    async get(kid) {
      const known = usable() ? keys.get(kid) : undefined
      if (known) return known
      if (unknown.size < maxUnknown && !absent.has(kid)) unknown.add(kid)
      if (running) await running
      else if (now().getTime() - lastAttempt >= cooldownMs) await refresh()
      if (!usable()) throw new KeysUnavailable(lastError ?? 'no keys yet')
      const key = keys.get(kid)
      if (key || absent.has(kid)) return key
      unknownKids?.inc({ issuer })
      const retryAfterMs = Math.max(lastAttempt + cooldownMs - now().getTime(), 0)
      throw new KeysUnavailable('the issuer has not been asked about this key', { retryAfterMs })
    },
    status() {
      if (keys.size === 0) return { ok: false, detail: `no keys of ${issuer}${lastError ? `: ${lastError}` : ''}` }
      // The tokens of other issuers are served whatever becomes of this one.
      if (!usable()) return { ok: true, detail: `the keys of ${issuer} are too old to be used: ${lastError}` }
      if (lastError === undefined) return { ok: true }
      return { ok: true, detail: `the keys of ${issuer} could not be renewed: ${lastError}` }
    },
    all: () =>
      [...keys.values()].map((one) => ({
        kid: one.kid,
        alg: one.alg,
        kty: algorithms[one.alg]!.kty,
        since: firstSeen.get(one)!,
      })),
    onKeysChanged: (listener) => void listeners.push(listener),
    async close() {
      closed = true
      clearTimeout(timer)
      await fetcher.close()
      await running
    },
  }
}
