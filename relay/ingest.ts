import type { BusBatch, BusHandler } from '../events/bus.ts'
import type { EventFlow } from '../events/event-metrics.ts'
import { type LockedEvent, type Locking, lockPending, readyEvents, takeEventsIn } from '../events/ledger-store.ts'
import type { Database, Query } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { FirstAttempts, FirstRound } from './first-attempts.ts'
import { inspectMessages, lockEventsWithEarlier } from './ledger/inbox-store.ts'

export interface IngestOptions {
  database: Database
  logger: Logger
  flow: EventFlow
  firstAttempts: FirstAttempts
  /** A relay that hangs for so long loses what it has locked, in ms. */
  aliveMs: number
  /** There is something to deliver. */
  onDeliveries(): void
  /** It is unknown whether what was taken in stands. */
  onDoubt(): void
}

/**
 * Takes events from the bus into the ledger: the mark on the event and one delivery for every matching hook, in one transaction; the bus
 * acknowledges only after its commit. Between the two lie the first attempts, so that most deliveries are stored when they are done. An event
 * that was taken in before changes nothing, and what a broker says of it counts for nothing but its id: everything else is read from the ledger.
 */
export const createIngest = (options: IngestOptions): BusHandler => {
  const { database, logger, flow, firstAttempts, aliveMs, onDeliveries, onDoubt } = options

  /** Ids that are not in the ledger. */
  const inspect = async (eventIds: readonly string[], digests: NonNullable<BusBatch['digests']>) => {
    const { unknown, different } = await inspectMessages(database.query, eventIds, digests)
    flow.quarantined(unknown.length)
    flow.mismatched(different.length)
    if (different.length > 0)
      logger.error({ eventIds: different }, 'the broker brought other bytes than the ledger holds; the ledger counts')
    return unknown
  }

  const takeIn = async (lock: (query: Query, locking: Locking) => Promise<readonly LockedEvent[]>) => {
    let round: FirstRound | undefined
    try {
      const result = await database.transaction(
        async (query) => {
          const locked = await lock(query, { payloads: firstAttempts.mayBegin() })
          const ready = readyEvents(locked)
          round = await firstAttempts.begin(query, ready)
          const stored = await round?.store(query)
          const { deliveries } = await takeEventsIn(query, ready, stored)
          await round?.lease(query)
          return { eventIds: ready.map(({ id }) => id), deliveries, deferred: locked.length - ready.length }
        },
        { idleMs: aliveMs },
      )
      round?.goOn()
      flow.ingested(result.eventIds)
      if (result.deliveries > 0) onDeliveries()
      return result.deferred
    } catch (error) {
      round?.drop()
      onDoubt()
      throw error
    }
  }

  return async ({ eventIds, digests, lockNext }) => {
    const unknown = digests === undefined ? [] : await inspect(eventIds, digests)
    const deferred = await takeIn(lockNext ?? ((query, locking) => lockPending(query, eventIds, locking)))
    if (lockNext !== undefined || deferred === 0) return { deferred, unknown }
    // An earlier event may still be on its way, at another relay, or lost. It stands in the ledger: it is taken in from there.
    // How many these are nobody knows, so their payloads are not read.
    const lockAll = async (query: Query) => lockPending(query, await lockEventsWithEarlier(query, eventIds))
    return { deferred: await takeIn(lockAll), unknown }
  }
}
