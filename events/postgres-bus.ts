import { createBackOff } from '../platform/back-off.ts'
import type { Database } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import { createWakeUp, pause } from '../platform/wake-up.ts'
import type { EventBus } from './bus.ts'
import { createNotifier } from './notifier.ts'

const batchSize = 500
/** A wake-up may be lost with its connection; this finds what it announced. */
const pollMs = 1_000
/** Until another relay has committed the events that ours come after. */
const deferredMs = 5

/** The bus without a broker: consumers find events in the ledger, and are only woken up. */
export const createPostgresBus = ({ database, logger }: { database: Database; logger: Logger }): EventBus => {
  const notifier = createNotifier({ database, logger })
  return {
    transport: 'ledger',
    ready: async () => {},
    lostBefore: async () => undefined,
    publish: async (batch) => batch.map(() => ({ outcome: 'ok' })),
    async consume(consumer, { signal }) {
      const wakeUp = createWakeUp()
      const backOff = createBackOff()
      const stopListening = notifier.onNotify(wakeUp.wake)
      while (!signal.aborted) {
        try {
          const { found, deferred } = await consumer.ingestNext(batchSize)
          backOff.reset()
          if (deferred > 0) await pause(deferredMs, signal)
          else if (found < batchSize) await wakeUp.wait(pollMs, signal)
        } catch (error) {
          logger.error({ err: error }, 'events could not be taken in; trying again')
          await pause(backOff.next(), signal)
        }
      }
      stopListening()
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
