import { continueReplay } from '../../../deliveries/replay-store.ts'
import { createBackOff } from '../../../platform/back-off.ts'
import type { Database } from '../../../platform/database/database.ts'
import type { Logger } from '../../../platform/logger.ts'
import { createWakeUp, pause } from '../../../platform/wake-up.ts'

/**
 * Works on the replays that callers asked for, those that another instance left unfinished included; several instances
 * share them.
 */
export interface ReplayJob {
  /** There is a new one. */
  wake(): void
  /** After the stretch that is being queued. The rest is done by another instance, or after the next start. */
  close(): Promise<void>
}

export interface ReplayJobOptions {
  database: Pick<Database, 'transaction'>
  logger: Logger
  /** Events looked at in one transaction. Default 1 000. */
  stretch?: number
  /** Between looks for replays of others, in ms. Default 5 000. */
  pollMs?: number
}

export const startReplayJob = (options: ReplayJobOptions): ReplayJob => {
  const { database, logger, stretch = 1_000, pollMs = 5_000 } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const wakeUp = createWakeUp()

  const run = async () => {
    const backOff = createBackOff()
    while (!signal.aborted) {
      try {
        const step = await database.transaction((query) => continueReplay(query, stretch))
        if (step === undefined) await wakeUp.wait(pollMs, signal)
        backOff.reset()
      } catch (error) {
        logger.error({ err: error }, 'a replay could not go on; trying again')
        await pause(backOff.next(), signal)
      }
    }
  }
  const ended = run()

  return {
    wake: wakeUp.wake,
    async close() {
      stopping.abort()
      await ended
    },
  }
}
