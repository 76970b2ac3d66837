import type { Notifier } from '../../../events/notifier.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { lastRevocation, type RevocationPage, readRevocations } from './revocation-store.ts'

/** The list of revocations, for readers that follow it. */
export interface RevocationFeed {
  /**
   * Entries after `since`; when there are none, waits up to `waitMs` for the first. Ends early, with no entries, when
   * `signal` aborts.
   */
  read(since: number, waitMs: number, signal: AbortSignal): Promise<RevocationPage>
  /** Answers everybody who waits. */
  close(): void
}

const pageSize = 1_000
/** How often one look into the database serves all who wait, in ms, while nobody can wake us up. */
const pollMs = 1_000

/**
 * Any number of waiting readers cost the database nothing: one connection of the instance hears of commits and wakes
 * them all.
 */
export const createRevocationFeed = ({
  database,
  notifier,
  logger,
}: {
  database: Pick<Database, 'query'>
  /** On `revocationChannel`. */
  notifier: Pick<Notifier, 'onNotify' | 'connected'>
  logger: Logger
}): RevocationFeed => {
  const waiting = new Set<() => void>()
  let closed = false
  const wakeAll = () => {
    for (const wake of [...waiting]) wake()
  }
  const stopListening = notifier.onNotify(wakeAll)

  let seen = 0
  const poll = async () => {
    if (waiting.size === 0 || notifier.connected) return
    const last = await lastRevocation(database.query)
    if (last !== seen) wakeAll()
    seen = last
  }
  const timer = setInterval(
    () => void poll().catch((error) => logger.warn({ err: error }, 'revocations cannot be looked for')),
    pollMs,
  )
  timer.unref()

  /** `stop` must be called. */
  const alarm = (waitMs: number, signal: AbortSignal) => {
    const { promise: rung, resolve } = Promise.withResolvers<void>()
    const deadline = setTimeout(resolve, waitMs)
    waiting.add(resolve)
    signal.addEventListener('abort', () => resolve(), { once: true })
    const stop = () => {
      clearTimeout(deadline)
      waiting.delete(resolve)
    }
    return { rung, stop }
  }

  return {
    async read(since, waitMs, signal) {
      const until = performance.now() + waitMs
      for (;;) {
        const left = closed || signal.aborted ? 0 : Math.max(0, until - performance.now())
        // Set before looking: what is committed after the look rings it.
        const { rung, stop } = alarm(left, signal)
        try {
          const page = await readRevocations(database.query, since, pageSize)
          if (page.entries.length > 0 || left === 0) return page
          await rung
        } finally {
          stop()
        }
      }
    },
    close() {
      closed = true
      clearInterval(timer)
      stopListening()
      wakeAll()
    },
  }
}
