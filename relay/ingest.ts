import type { BusHandler } from '../events/bus.ts'
import { takeEventsIn } from '../events/ledger-store.ts'
import type { Database } from '../platform/database.ts'

/**
 * Takes events from the bus into the ledger: the mark on the event and one delivery for every matching hook, in one transaction; the bus
 * acknowledges only after its commit. An event that was taken in before changes nothing.
 */
export const createIngest = ({ database, onDeliveries }: { database: Database; onDeliveries(): void }): BusHandler => {
  return async ({ eventIds, transaction }) => {
    const { deliveries, deferred } = transaction
      ? await takeEventsIn(transaction, eventIds)
      : await database.transaction((query) => takeEventsIn(query, eventIds))
    return { deferred, committed: deliveries > 0 ? onDeliveries : undefined }
  }
}
