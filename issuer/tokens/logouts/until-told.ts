import { setTimeout as delay } from 'node:timers/promises'
import type { Query } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { hasUntriedLogouts } from './logout-store.ts'

/** With what is looked up around it, it stays within the second that is promised. */
const waitMs = 900
const pollMs = 20

/**
 * Waits until every application of the person has been told of a logout, or could not be reached; a second at most, so
 * that nobody is held up by an application. Never rejects: what has ended has ended.
 */
export const untilTold = async (query: Query, userId: string, logger: Logger): Promise<void> => {
  const until = performance.now() + waitMs
  const look = async () => {
    while (performance.now() < until && (await hasUntriedLogouts(query, userId))) await delay(pollMs)
  }
  const looking = look().catch((error) => logger.warn({ err: error }, 'nobody knows whether applications were told'))
  await Promise.race([looking, delay(waitMs)])
}
