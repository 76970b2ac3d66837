import type { Database } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { BusHandler, EventBus } from './bus.ts'
import { lockNextPending } from './ledger-store.ts'
import { createNotifier } from './notifier.ts'
import { createBackoff, createWakeup, pause } from './wakeup.ts'

const batchSize = 500
/** A wake-up may be lost with its connection; this finds what it announced. */
const pollMs = 1_000
/** Until another relay has committed the events that ours come after. */
const deferredMs = 5

/** The bus without a broker: consumers take events out of the ledger, in the transaction in which they are handled. */
export const createPostgresBus = ({ database, logger }: { database: Database; logger: Logger }): EventBus => {
  const notifier = createNotifier({ database, logger })

  const consumeBatch = (handler: BusHandler) =>
    database.transaction(async (query) => {
      const locked = await lockNextPending(query, batchSize)
      if (locked.length === 0) return { taken: 0, deferred: 0, committed: undefined }
      const handled = await handler({ eventIds: locked.map(({ id }) => id), held: { transaction: query, locked } })
      return { taken: locked.length, ...handled }
    })

  return {
    transport: 'ledger',
    ready: async () => {},
    settledBefore: async () => undefined,
    publish: async (batch) => batch.map(() => ({ outcome: 'ok' })),
    async consume(handler, { signal }) {
      const wakeup = createWakeup()
      const backoff = createBackoff()
      const stopListening = notifier.onNotify(wakeup.wake)
      try {
        while (!signal.aborted) {
          try {
            const { taken, deferred, committed } = await consumeBatch(handler)
            committed?.()
            backoff.reset()
            if (deferred > 0) await pause(deferredMs, signal)
            else if (taken < batchSize) await wakeup.wait(pollMs, signal)
          } catch (error) {
            logger.error({ err: error }, 'events could not be taken in; trying again')
            await pause(backoff.next(), signal)
          }
        }
      } finally {
        stopListening()
      }
    },
    wake: notifier.notify,
    onWake: notifier.onNotify,
    hintRevocations: () => {},
    health: async () => ({
      ok: true,
      connected: notifier.connected,
      detail: notifier.connected ? 'listening' : 'polling',
    }),
    close: notifier.close,
  }
}
