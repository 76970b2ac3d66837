import type { Database } from '../../platform/database/database.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { eraseRedirects } from '../interaction/interaction-store.ts'
import { revocationsOfAuthorizations } from '../tokens/authorizations/end.ts'
import { expireSessions } from '../tokens/authorizations/end-store.ts'
import { eraseSuccessors } from '../tokens/authorizations/refresh-token-store.ts'
import { revoke } from '../tokens/revocations/revocation-store.ts'

export interface ExpiryDependencies {
  database: Pick<Database, 'transaction' | 'query'>
  /** In seconds. */
  refreshTokenLeeway: number
  logger: Logger
  metrics: Metrics
}

/** Rows of one statement. */
const batch = 100
const everyMs = 30_000

/**
 * What is over before retention would come to it: sessions that have idled or lasted too long, with what came of them
 * without offline access, so that gateways hear of it like of every other end; and sealed values that were good for
 * seconds. All of it counts no more from the moment on that its time is over. Every issuer may do it at once.
 */
export const startExpiry = (dependencies: ExpiryDependencies): { close(): Promise<void> } => {
  const { database, refreshTokenLeeway, logger, metrics } = dependencies
  const counter = metrics.counter(
    'surrogate_authorizations_expired_total',
    'Authorizations that ended because their session had idled or lasted too long.',
  )

  const endSessions = async () => {
    const ended = await database.transaction(async (query) => {
      const authorizations = await expireSessions(query, batch)
      await revoke(query, revocationsOfAuthorizations(authorizations))
      return authorizations.length
    })
    counter.inc({}, ended)
    return ended
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
