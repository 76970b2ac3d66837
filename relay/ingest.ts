import type { BusMessage, EventConsumer } from '../events/bus.ts'
import type { EventMetrics } from '../events/event-metrics.ts'
import type { Database, Query } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import { ingestEvents } from './ledger/ingest-store.ts'
import {
  compareMessages,
  inOrder,
  lockNextPending,
  lockPending,
  lockPendingWithEarlier,
  type PendingEvent,
} from './ledger/pending-store.ts'

export interface IngestOptions {
  database: Database
  logger: Logger
  metrics: EventMetrics
  /** There are deliveries to be made (`lanes.ts`). */
  onDeliveries(): void
}

/**
 * Ingests events from the bus: in one transaction an event stops being pending, and gets a delivery for every hook that
 * listens. The bus acknowledges only after the commit. An event that was ingested before changes nothing, and only the
 * id of a broker's message counts: everything else is read from the ledger.
 */
export const createIngest = ({ database, logger, metrics, onDeliveries }: IngestOptions): EventConsumer => {
  const ingestLocked = async (lock: (query: Query) => Promise<readonly PendingEvent[]>) => {
    const { found, ready, deliveries } = await database.transaction(async (query) => {
      const locked = await lock(query)
      const ready = inOrder(locked)
      return { found: locked.length, ready, deliveries: await ingestEvents(query, ready) }
    })
    metrics.ingested(ready.map(({ id }) => id))
    if (deliveries > 0) onDeliveries()
    return { found, deferred: found - ready.length }
  }

  /** Returns the ids that are not in the ledger. */
  const check = async (messages: readonly BusMessage[]): Promise<string[]> => {
    const { unknown, different } = await compareMessages(database.query, messages)
    metrics.quarantined(unknown.length)
    metrics.mismatched(different.length)
    if (different.length > 0)
      logger.error({ eventIds: different }, 'the broker brought other bytes than the ledger holds; the ledger counts')
    return unknown
  }

  return {
    async ingest(messages) {
      const unknown = await check(messages)
      const eventIds = messages.map(({ eventId }) => eventId)
      const { deferred } = await ingestLocked((query) => lockPending(query, eventIds))
      if (deferred === 0) return { deferred, unknown }
      // An earlier event may be on its way, at another relay, or lost by the broker. The ledger has it, so it is
      // ingested from there.
      const again = await ingestLocked((query) => lockPendingWithEarlier(query, eventIds))
      return { deferred: again.deferred, unknown }
    },
    ingestNext: (limit) => ingestLocked((query) => lockNextPending(query, limit)),
  }
}
