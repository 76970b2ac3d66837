import { announceOutcomes, type HookOutcome } from '../deliveries/outcome-notice-store.ts'
import type { Query } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'

/** Tells what came of attempts that are stored, all of a moment at once. */
export interface OutcomeNotices {
  add(stored: readonly AttemptRecord[]): void
  close(): void
}

const everyMs = 250

export const createOutcomeNotices = ({ query, logger }: { query: Query; logger: Logger }): OutcomeNotices => {
  let outcomes = new Map<string, HookOutcome>()
  let timer: NodeJS.Timeout | undefined

  const tell = () => {
    timer = undefined
    const told = [...outcomes.values()]
    outcomes = new Map()
    announceOutcomes(query, told).catch((error) => logger.debug({ err: error }, 'outcomes could not be told'))
  }

  return {
    add(stored) {
      for (const { lease, state } of stored) {
        const { hookId } = lease
        const outcome = outcomes.get(hookId) ?? { hookId, succeeded: 0, failed: 0 }
        outcome[state === 'succeeded' ? 'succeeded' : 'failed'] += 1
        outcomes.set(hookId, outcome)
      }
      if (stored.length > 0) timer ??= setTimeout(tell, everyMs)
    },
    close: () => clearTimeout(timer),
  }
}
