import type { Database } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { recordUse } from './personal-access-token-store.ts'

/** Notes when a personal access token was last used, to the minute, while nobody waits for it. */
export interface LastUse {
  record(digest: Buffer): void
  /** Waits for what is being written. */
  close(): Promise<void>
}

export const createLastUse = ({ database, logger }: { database: Pick<Database, 'query'>; logger: Logger }): LastUse => {
  // A token in constant use is written once at a time, not once a request.
  const writing = new Map<string, Promise<void>>()
  return {
    record(digest) {
      const key = digest.toString('base64')
      if (writing.has(key)) return
      const write = recordUse(database.query, digest)
        .catch((error: unknown) => logger.warn({ err: error }, 'the use of a personal access token was not noted'))
        .finally(() => writing.delete(key))
      writing.set(key, write)
    },
    async close() {
      await Promise.all(writing.values())
    },
  }
}
