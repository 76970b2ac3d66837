import { logoutContext, logoutTimeoutMs } from '../../deliveries/logouts/logout.ts'
import { createBackOff } from '../../platform/back-off.ts'
import type { Query } from '../../platform/database/database.ts'
import type { Envelope } from '../../platform/envelope.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { createWakeUp, pause } from '../../platform/wake-up.ts'
import {
  type ClaimedLogout,
  claimLogouts,
  logoutDelivered,
  logoutFailed,
  waitingLogouts,
} from './logout-claim-store.ts'

export interface LogoutSending {
  /** There may be new logouts. */
  wake(): void
  /** Takes no more, and lets those that are being sent end. */
  close(graceMs: number): Promise<void>
}

/** One POST to an application, and what came of it. `error`: for people, without a status. Never rejects. */
export type Post = (request: {
  /** Whose connections are used. */
  owner: string
  url: URL
  headers: Record<string, string>
  body: Buffer
  /** For the whole POST, in ms. */
  timeoutMs: number
  signal: AbortSignal
}) => Promise<{ status: number | null; error: string | null }>

export interface LogoutSendingOptions {
  query: Query
  envelope: Envelope
  /** Only to addresses that may be reached; leads nowhere else. */
  post: Post
  logger: Logger
  metrics: Metrics
  /** In [0, 1), for jitter. */
  random: () => number
  /** For one POST, in ms. Default 5 000. */
  timeoutMs?: number | undefined
  /** Until another relay takes over, in ms. Must exceed `timeoutMs`. Default 10 000. */
  leaseMs?: number | undefined
  /** Delays before attempts 2, 3, … in ms; the last one again and again. */
  schedule?: readonly number[] | undefined
}

const defaultSchedule = [2_000, 8_000, 20_000, 60_000, 120_000]
/** POSTs under way of one relay. */
const concurrency = 200
/** Of these, to one application. */
const perApplication = 8
/** How often it looks without being woken, in ms. */
const pollMs = 1_000

/**
 * Tells applications which of their authorizations have ended (OpenID Connect Back-Channel Logout 1.0 §2.5). Issuers
 * make the tokens; each is sent once. Any number of relays share the work.
 */
export const startLogoutSending = (options: LogoutSendingOptions): LogoutSending => {
  const { query, envelope, logger, metrics, random } = options
  const { timeoutMs = logoutTimeoutMs, leaseMs = 10_000, schedule = defaultSchedule } = options
  const outcomes = metrics.counter(
    'surrogate_logouts_total',
    'Attempts to tell an application who has signed out, by what came of them.',
    ['outcome'],
  )
  const gauge = metrics.gauge('surrogate_logouts_waiting', 'Logouts that applications are still to be told of.')
  const removeGauge = metrics.onCollect(async () => gauge.set({}, await waitingLogouts(query)))
  const wakeUp = createWakeUp()
  const stopping = new AbortController()
  const breakOff = new AbortController()
  const running = new Set<Promise<void>>()
  const underWay = new Map<string, number>()

  const attempt = ({ authorizationId, clientId, url, sealed }: ClaimedLogout) => {
    const token = envelope.open(sealed, logoutContext(authorizationId)).toString()
    return options.post({
      owner: clientId,
      url: new URL(url),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: '*/*' },
      body: Buffer.from(new URLSearchParams({ logout_token: token }).toString()),
      timeoutMs,
      signal: breakOff.signal,
    })
  }

  /** When it is tried again; undefined: never. */
  const retryAfter = ({ attempts }: ClaimedLogout, status: number | null): number | undefined => {
    // §2.8: the token was not accepted. Another one would not be either.
    if (status === 400) return undefined
    if (breakOff.signal.aborted) return 0
    return (schedule[Math.min(attempts, schedule.length) - 1] ?? 2_000) * (0.9 + 0.2 * random())
  }

  const deliver = async (logout: ClaimedLogout) => {
    const { status, error: reason } = await attempt(logout)
    const { authorizationId, clientId } = logout
    // §2.8; some frameworks answer 204.
    if (status === 200 || status === 204) {
      await logoutDelivered(query, authorizationId)
      outcomes.inc({ outcome: 'delivered' })
      return
    }
    const error = reason ?? `The receiver answered ${status}.`
    const isOver = await logoutFailed(query, logout, { error, retryMs: retryAfter(logout, status) })
    outcomes.inc({ outcome: isOver ? 'failed' : 'retried' })
    if (isOver) logger.warn({ clientId, authorizationId, reason: error }, 'an application was not told of a logout')
  }

  const begin = (logout: ClaimedLogout) => {
    const { clientId, authorizationId } = logout
    underWay.set(clientId, (underWay.get(clientId) ?? 0) + 1)
    const work = deliver(logout)
      // It stays claimed until its lease ends; then any relay takes it, with another token.
      .catch((error) => logger.error({ err: error, authorizationId }, 'a logout could not be handled'))
      .finally(() => {
        const left = underWay.get(clientId)! - 1
        if (left > 0) underWay.set(clientId, left)
        else underWay.delete(clientId)
        running.delete(work)
        wakeUp.wake()
      })
    running.add(work)
  }

  const run = async () => {
    const backOff = createBackOff()
    while (!stopping.signal.aborted) {
      try {
        const limit = concurrency - running.size
        const busy = [...underWay].filter(([, count]) => count >= perApplication).map(([clientId]) => clientId)
        const claimed = limit > 0 ? await claimLogouts(query, { limit, perApplication, busy, leaseMs }) : []
        for (const logout of claimed) begin(logout)
        backOff.reset()
        if (claimed.length === 0) await wakeUp.wait(pollMs, stopping.signal)
      } catch (error) {
        logger.warn({ err: error }, 'logouts could not be looked for; trying again')
        await pause(backOff.next(), stopping.signal)
      }
    }
  }
  const ended = run()

  return {
    wake: wakeUp.wake,
    async close(graceMs) {
      stopping.abort()
      await ended
      const finished = new AbortController()
      void Promise.allSettled([...running]).then(() => finished.abort())
      await pause(graceMs, finished.signal)
      breakOff.abort()
      await Promise.allSettled([...running])
      removeGauge()
    },
  }
}
