import { type Database, statement } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { BusHandler, EventBus } from './bus.ts'
import { createNotifier } from './notifier.ts'
import { createBackoff, createWakeup, pause } from './wakeup.ts'

const batchSize = 500
/** A wake-up may be lost with its connection; this finds what it announced. */
const pollMs = 1_000
/** Until another relay has committed the events that ours come after. */
const deferredMs = 5

// By row, not by "seq above the last one": an earlier number may be committed later. Rows that another relay takes in are left to it.
const take = statement(
  'bus-take',
  `SELECT id FROM outbox_pending AS pending JOIN outbox USING (seq) ORDER BY seq LIMIT $1 FOR UPDATE OF pending SKIP LOCKED`,
)

/** The bus without a broker: consumers take events out of the ledger, in the transaction in which they are handled. */
export const createPostgresBus = ({ database, logger }: { database: Database; logger: Logger }): EventBus => {
  const notifier = createNotifier({ database, logger })

  const consumeBatch = (handler: BusHandler) =>
    database.transaction(async (query) => {
      const rows = await query<{ id: string }>(take, [batchSize])
      if (rows.length === 0) return { taken: 0, deferred: 0, committed: undefined }
      const handled = await handler({ eventIds: rows.map(({ id }) => id), transaction: query })
      return { taken: rows.length, ...handled }
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
