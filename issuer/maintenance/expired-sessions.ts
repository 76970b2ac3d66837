import type { Database } from '../../platform/database/database.ts'
import type { Logger } from '../../platform/logger.ts'
import { eraseRedirects } from '../interaction/interaction-store.ts'
import { revocationsOfAuthorizations } from '../tokens/authorizations/end.ts'
import { expireSessions } from '../tokens/authorizations/end-store.ts'
import { revoke } from '../tokens/revocations/revocation-store.ts'

/** Sessions at a time. */
const batch = 200
const everyMs = 30_000

/**
 * Ends sessions that have idled or lasted too long, with what came of them without offline access, so that gateways
 * hear of it like of every other end. Sessions count no more from the moment on that their time is over: this is only
 * for tokens that were issued before. Every issuer may do it at once.
 */
export const startSessionExpiry = ({
  database,
  logger,
}: {
  database: Pick<Database, 'transaction' | 'query'>
  logger: Logger
}): { close(): Promise<void> } => {
  let running: Promise<void> | undefined
  const run = async () => {
    const ended = await database.transaction(async (query) => {
      const authorizations = await expireSessions(query, batch)
      await revoke(query, revocationsOfAuthorizations(authorizations))
      return authorizations
    })
    // Not a matter of sessions, but as short-lived.
    await eraseRedirects(database.query)
    if (ended.length > 0) logger.debug({ authorizations: ended.length }, 'sessions have expired')
  }
  const timer = setInterval(() => {
    running ??= run()
      .catch((error) => logger.warn({ err: error }, 'expired sessions could not be ended'))
      .finally(() => {
        running = undefined
      })
  }, everyMs)
  timer.unref()
  return {
    async close() {
      clearInterval(timer)
      await running
    },
  }
}
