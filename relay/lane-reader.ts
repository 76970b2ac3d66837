import { createBatcher } from '../platform/batcher.ts'
import type { Query } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import { type Lease, type OpenDelivery, openDeliveries } from './ledger/lane-store.ts'

/** Reads what lanes have to send, many lanes at a time. */
export interface LaneReader {
  /** By fence; at most `perLane` deliveries of each. */
  read(leases: readonly Lease[], perLane: number): Promise<Map<number, OpenDelivery[]>>
  /**
   * What one lane has next; lanes that ask at the same time are read together. If that fails it is logged, and there is
   * nothing.
   */
  next(lease: Lease): Promise<readonly OpenDelivery[]>
}

/** Deliveries of a lane that are read at a time. */
export const perLane = 8
/**
 * Lanes read together, and statements under way, at most; another one begins after `secondAfterMs` when the first takes
 * longer.
 */
const reads = { most: 1_000, mostUnderWay: 4, secondAfterMs: 5 }

/** `room`: bytes of payload for which there is memory. */
export const createLaneReader = (options: { query: Query; logger: Logger; room(): number }): LaneReader => {
  const { query, logger, room } = options
  const read: LaneReader['read'] = (leases, most) =>
    openDeliveries(query, leases, { perLane: most, maxBytes: Math.max(room(), 0) })

  return {
    read,
    next: createBatcher<Lease, readonly OpenDelivery[]>({
      ...reads,
      mayRepeat: () => false,
      async send(leases) {
        const open = await read(leases, perLane).catch((error: unknown) => {
          logger.error(
            { err: error, lanes: leases.length },
            'what lanes have next could not be read; they are given back',
          )
          return new Map<number, OpenDelivery[]>()
        })
        return leases.map(({ fence }) => open.get(fence) ?? [])
      },
    }),
  }
}
