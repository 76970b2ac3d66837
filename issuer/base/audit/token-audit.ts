import type { Database } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { type AuditEntry, insertLogs } from './log-store.ts'

/** The audit rows of grants that have no transaction of their own, written in batches off the request. */
export interface TokenAudit {
  record(entry: AuditEntry): void
  /** Writes what is left. */
  close(): Promise<void>
}

const maxWaitMs = 500
const maxBatch = 500
/** While the database is away, the oldest rows beyond this are dropped and counted in the log. */
const maxPending = 20_000

export const createTokenAudit = ({ database, logger }: { database: Database; logger: Logger }): TokenAudit => {
  let pending: { entry: AuditEntry; at: Date }[] = []
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()

  const schedule = () => {
    timer ??= setTimeout(flush, maxWaitMs)
    timer.unref()
  }

  const write = async (batch: typeof pending) => {
    try {
      await insertLogs(database.query, batch)
    } catch (error) {
      pending = [...batch, ...pending]
      const dropped = pending.splice(0, Math.max(0, pending.length - maxPending)).length
      logger.error({ err: error, waiting: pending.length, dropped }, 'audit rows could not be written')
      schedule()
    }
  }

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    const batch = pending.splice(0, maxBatch)
    if (batch.length > 0) writing = writing.then(() => write(batch))
    if (pending.length > 0) schedule()
  }

  return {
    record(entry) {
      pending.push({ entry, at: new Date() })
      if (pending.length >= maxBatch) flush()
      else schedule()
    },
    async close() {
      // One more try for what is left, then it is said in the log.
      for (let left = pending.length; left > 0; ) {
        flush()
        await writing
        if (pending.length >= left) break
        left = pending.length
      }
      clearTimeout(timer)
      await writing
    },
  }
}
