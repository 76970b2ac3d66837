import type { BusBatch, BusHandler } from '../events/bus.ts'
import type { EventFlow } from '../events/event-flow.ts'
import { inspectMessages, lockEventsWithEarlier } from '../events/inbox-store.ts'
import { lockPending, takeEventsIn } from '../events/ledger-store.ts'
import type { Database } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'

export interface IngestOptions {
  database: Database
  logger: Logger
  flow: EventFlow
  /** There is something to deliver. */
  onDeliveries(): void
}

/**
 * Takes events from the bus into the ledger: the mark on the event and one delivery for every matching hook, in one transaction; the bus
 * acknowledges only after its commit. An event that was taken in before changes nothing, and what a broker says of it counts for nothing
 * but its id: everything else is read from the ledger.
 */
export const createIngest = ({ database, logger, flow, onDeliveries }: IngestOptions): BusHandler => {
  /** Ids that are not in the ledger. */
  const inspect = async (eventIds: readonly string[], digests: NonNullable<BusBatch['digests']>) => {
    const { unknown, different } = await inspectMessages(database.query, eventIds, digests)
    flow.quarantined(unknown.length)
    flow.mismatched(different.length)
    if (different.length > 0)
      logger.error({ eventIds: different }, 'the broker brought other bytes than the ledger holds; the ledger counts')
    return unknown
  }

  return async ({ eventIds, digests, held }) => {
    const unknown = digests === undefined ? [] : await inspect(eventIds, digests)
    const { taken, deliveries, deferred } = held
      ? await takeEventsIn(held.transaction, held.locked)
      : await takeInWithEarlier(database, eventIds)
    flow.ingested(taken, eventIds)
    return { deferred, unknown, committed: deliveries > 0 ? onDeliveries : undefined }
  }
}

/** An earlier event may still be on its way, at another relay, or lost. It stands in the ledger: it is taken in from there. */
const takeInWithEarlier = async (database: Database, eventIds: readonly string[]) => {
  const direct = await database.transaction(async (query) => takeEventsIn(query, await lockPending(query, eventIds)))
  if (direct.deferred === 0) return direct
  const rest = await database.transaction(async (query) =>
    takeEventsIn(query, await lockPending(query, await lockEventsWithEarlier(query, eventIds))),
  )
  return { ...rest, taken: direct.taken + rest.taken, deliveries: direct.deliveries + rest.deliveries }
}
