import { setImmediate } from 'node:timers/promises'
import type { Query } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import { type Lease, type OpenDelivery, openDeliveries } from './ledger/lane-store.ts'

/** Reads what lanes have to send, many lanes at a time. */
export interface LaneReader {
  /** By fence; at most `perLane` deliveries of each. */
  read(leases: readonly Lease[], perLane: number): Promise<Map<number, OpenDelivery[]>>
  /** What one lane has next. Lanes that ask at the same time are read together. Nothing, and a line in the log, when that fails. */
  more(lease: Lease): Promise<readonly OpenDelivery[]>
}

/** Deliveries of a lane that are read at a time. */
export const perLane = 8

/** `room`: bytes of payload for which there is memory. */
export const createLaneReader = (options: { query: Query; logger: Logger; room(): number }): LaneReader => {
  const { query, logger, room } = options
  const read: LaneReader['read'] = (leases, most) =>
    openDeliveries(query, leases, { perLane: most, maxBytes: Math.max(room(), 0) })

  let asked: Lease[] = []
  let reading: ReturnType<typeof read> | undefined
  const readAsked = async (): ReturnType<typeof read> => {
    // Those whose results were stored together ask one right after the other.
    await setImmediate()
    const leases = asked
    asked = []
    reading = undefined
    try {
      return await read(leases, perLane)
    } catch (error) {
      logger.error({ err: error, lanes: leases.length }, 'what lanes have next could not be read; they are given back')
      return new Map()
    }
  }

  return {
    read,
    async more(lease) {
      asked.push(lease)
      reading ??= readAsked()
      return (await reading).get(lease.fence) ?? []
    },
  }
}
