import { createBackOff } from '../platform/back-off.ts'
import type { Database, Query } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import { createWakeUp, pause } from '../platform/wake-up.ts'
import { type BusHandler, batchesAtOnce, type EventBus } from './bus.ts'
import { type LockedEvent, type Locking, lockNextPending } from './ledger-store.ts'
import { createNotifier } from './notifier.ts'

const batchSize = 250
/** A wake-up may be lost with its connection; this finds what it announced. */
const pollMs = 1_000
/** Until another relay has committed the events that ours come after. */
const deferredMs = 5

/** The bus without a broker: consumers find events in the ledger. */
export const createPostgresBus = ({ database, logger }: { database: Database; logger: Logger }): EventBus => {
  const notifier = createNotifier({ database, logger })

  const underWay = new Map<number, LockedEvent>()
  /** `found`: how many events there were, as soon as that is known; 0 also when it failed. */
  const takeBatch = (handler: BusHandler) => {
    const found = Promise.withResolvers<number>()
    let locked: LockedEvent[] = []
    const lockNext = async (query: Query, locking: Locking) => {
      locked = await lockNextPending(query, { ...locking, limit: batchSize, underWay })
      for (const event of locked) underWay.set(event.seq, event)
      found.resolve(locked.length)
      return locked
    }
    const handled = handler({ eventIds: [], lockNext }).finally(() => {
      for (const { seq } of locked) underWay.delete(seq)
      found.resolve(0)
    })
    return { found: found.promise, handled }
  }

  return {
    transport: 'ledger',
    ready: async () => {},
    settledBefore: async () => undefined,
    publish: async (batch) => batch.map(() => ({ outcome: 'ok' })),
    async consume(handler, { signal }) {
      const wakeUp = createWakeUp()
      const backOff = createBackOff()
      const stopListening = notifier.onNotify(wakeUp.wake)
      const running = new Set<Promise<void>>()
      const end = async (handled: ReturnType<BusHandler>, others: readonly Promise<void>[]) => {
        try {
          const { deferred } = await handled
          backOff.reset()
          if (deferred === 0) return
          // What is missing may be in our other batch.
          await (others.length > 0 ? Promise.all(others) : pause(deferredMs, signal))
        } catch (error) {
          logger.error({ err: error }, 'events could not be taken in; trying again')
          await pause(backOff.next(), signal)
        }
        wakeUp.wake()
      }
      while (!signal.aborted) {
        const { found, handled } = takeBatch(handler)
        const ended = end(handled, [...running])
        running.add(ended)
        void ended.then(() => running.delete(ended))
        if ((await found) < batchSize) await wakeUp.wait(pollMs, signal)
        if (running.size === batchesAtOnce) await Promise.race(running)
      }
      await Promise.all(running)
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
