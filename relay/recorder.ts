import { setTimeout as delay } from 'node:timers/promises'
import { createBackOff } from '../platform/back-off.ts'
import type { Database } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import { type AttemptRecord, type LaneLeft, type Release, recordAttempts } from './ledger/attempt-store.ts'
import type { HookChange, ProbeTiming } from './ledger/hook-health-store.ts'
import type { Lease } from './ledger/lane-store.ts'

/** Stores what came of attempts, many in one transaction (measured: twice the throughput of one transaction each). */
export interface Recorder {
  add(result: AttemptRecord): void
  /**
   * Gives a lane back, behind its results, unless it may `goOn`. Resolves when that is committed, or the lease has been
   * lost; with what is left to send.
   */
  release(lease: Lease, goOn?: boolean): Promise<LaneLeft | undefined>
  /** Stores what is left. */
  close(): Promise<void>
}

const flushRows = 200
const flushMs = 10
/** How long results are tried to be stored while the relay stops. */
const stoppingMs = 3_000
/** Of one transaction. */
const mostRows = 500

export const createRecorder = (options: {
  database: Database
  logger: Logger
  /** After this many ms without success results are dropped: their leases are over, and others have taken the lanes. */
  giveUpMs: number
  timing: ProbeTiming
  onChange(change: HookChange): void
  onStored(results: readonly AttemptRecord[]): void
  /** From then on nobody waits long for a database that is gone: what it does not know is sent again. */
  stopping: AbortSignal
}): Recorder => {
  const { database, logger, giveUpMs, timing, onChange, onStored, stopping } = options
  let results: AttemptRecord[] = []
  let releases: (Release & { done: (left: LaneLeft | undefined) => void })[] = []
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined

  const store = async (batch: AttemptRecord[], released: Release[]): Promise<Map<number, LaneLeft>> => {
    const backOff = createBackOff()
    const from = performance.now()
    for (;;) {
      try {
        const { fenced, changes, left } = await database.transaction((query) =>
          recordAttempts(query, batch, released, timing),
        )
        for (const change of changes) onChange(change)
        onStored(batch)
        if (fenced > 0) logger.warn({ lanes: fenced }, 'lanes were lost before their results could be stored')
        return left
      } catch (error) {
        logger.error({ err: error, results: batch.length }, 'results of deliveries could not be stored; trying again')
        const patience = stopping.aborted ? Math.min(giveUpMs, stoppingMs) : giveUpMs
        if (performance.now() - from > patience) return new Map<number, LaneLeft>()
        await delay(backOff.next())
      }
    }
  }

  const drain = async () => {
    while (results.length > 0 || releases.length > 0) {
      // A lane is released behind its results: they were added before, and so are in this batch or were in an earlier
      // one.
      const isAll = results.length <= mostRows
      const batch = isAll ? results : results.slice(0, mostRows)
      const done = isAll ? releases : []
      results = isAll ? [] : results.slice(mostRows)
      if (isAll) releases = []
      const left = await store(batch, done)
      for (const { lease, done: resolve } of done) resolve(left.get(lease.fence))
    }
  }

  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    writing ??= drain().finally(() => {
      writing = undefined
      if (results.length + releases.length > 0) soon()
    })
    return writing
  }
  const soon = () => {
    if (results.length + releases.length >= flushRows) void flush()
    else timer ??= setTimeout(flush, flushMs)
  }

  return {
    add(result) {
      results.push(result)
      soon()
    },
    release: (lease, goOn = false) =>
      new Promise((done) => {
        releases.push({ lease, goOn, done })
        soon()
      }),
    close: flush,
  }
}
