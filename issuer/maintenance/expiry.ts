import { recordEvent } from '../../events/outbox.ts'
import type { Database } from '../../platform/database/database.ts'
import { uuidv7 } from '../../platform/ids.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { eraseRedirects } from '../interaction/interaction-store.ts'
import { endActing } from '../tokens/authorizations/end.ts'
import { expireSessions } from '../tokens/authorizations/end-store.ts'
import { eraseSuccessors } from '../tokens/authorizations/refresh-token-store.ts'
import { revoke } from '../tokens/revocations/revocation-store.ts'

export interface ExpiryDependencies {
  database: Pick<Database, 'transaction' | 'query'>
  /** The publisher of the outbox. */
  events: { wake(): void }
  /** In seconds. */
  refreshTokenLeeway: number
  logger: Logger
  metrics: Metrics
}

/** Time caused it, and no request. */
const nobodys = { ip: '', userAgent: undefined, method: '', path: '', matchedRoute: '', params: {}, status: 0 }

/** Rows of one statement. */
const batch = 100
const everyMs = 30_000

/**
 * What is over before retention would come to it: sessions that have idled or lasted too long, with what came of them
 * without offline access, so that gateways hear of it like of every other end; and sealed values that were good for
 * seconds. All of it counts no more from the moment on that its time is over. Every issuer may do it at once.
 */
export const startExpiry = (dependencies: ExpiryDependencies): { close(): Promise<void> } => {
  const { database, events, refreshTokenLeeway, logger, metrics } = dependencies
  const counter = metrics.counter(
    'surrogate_authorizations_expired_total',
    'Authorizations that ended because their session had idled or lasted too long.',
  )

  const endSessions = async () => {
    const { ended, expired } = await database.transaction(async (trx) => {
      const over = await expireSessions(trx, batch)
      const request = { ...nobodys, correlationId: uuidv7() }
      await revoke(
        trx,
        await endActing({ trx, record: (event) => recordEvent(trx, { ...event, request }) }, over, undefined),
      )
      return { ended: over.authorizations.length, expired: over.sessions.length }
    })
    counter.inc({}, ended)
    if (expired > 0) events.wake()
    return Math.max(ended, expired)
  }
  const tasks = [endSessions, () => eraseSuccessors(database.query, refreshTokenLeeway)]

  const run = async () => {
    for (const task of tasks) while ((await task()) >= batch && !closed);
    await eraseRedirects(database.query)
  }

  let closed = false
  let running: Promise<void> | undefined
  const timer = setInterval(() => {
    running ??= run()
      .catch((error) => logger.warn({ err: error }, 'what has expired could not be ended'))
      .finally(() => {
        running = undefined
      })
  }, everyMs)
  timer.unref()
  return {
    async close() {
      closed = true
      clearInterval(timer)
      await running
    },
  }
}
