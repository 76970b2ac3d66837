import {
  type AttemptRecord,
  claimLanes,
  type Lease,
  msUntilDue,
  type OpenDelivery,
  openDeliveries,
  type SealedTarget,
  targetsOf,
} from '../events/lane-store.ts'
import { createBackoff, createWakeup, pause } from '../events/wakeup.ts'
import type { Database } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import type { Deliver, Target } from './deliver.ts'
import { createHookLoads, type HookLoad } from './hook-load.ts'
import type { Recorder } from './recorder.ts'

/** Claims lanes that are due and works them off: each in order, many at once, within what each hook may have under way. */
export interface Lanes {
  /** There may be new deliveries. */
  wake(): void
  /** Claims no more, lets running attempts end for `graceMs` (default 10 000), then breaks them off; gives the lanes back. */
  close(graceMs?: number): Promise<void>
}

export interface LanesOptions {
  database: Database
  deliver: Deliver
  recorder: Recorder
  /** Decrypts a target. Throws when a key is not known. */
  open(target: SealedTarget): Target
  onResult(result: AttemptRecord, delivery: OpenDelivery): void
  logger: Logger
  relayId: string
  /** POSTs to one hook at a time. */
  perHook: number
  /** Lanes under way at a time, over all hooks. */
  maxLanes: number
  /** Until others may claim the lane again. Must exceed `attemptTimeoutMs` by what storing a result takes. */
  leaseMs: number
  attemptTimeoutMs: number
}

/** Deliveries of a lane worked off under one lease, at most. */
const perLane = 8
const pollMs = 1_000
/** Between claims, so that one replaces what several lanes have finished. */
const claimPauseMs = 2
const storingMs = 1_000

interface Claimed {
  lease: Lease
  target: Target
  deliveries: OpenDelivery[]
  /** No attempt starts after this (`performance.now()`). */
  until: number
}

export const createLanes = (options: LanesOptions): Lanes => {
  const { database, deliver, recorder, logger, maxLanes, leaseMs, attemptTimeoutMs } = options
  const stopping = new AbortController()
  const abandoning = new AbortController()
  const wakeup = createWakeup()
  const loads = createHookLoads({ perHook: options.perHook })
  const running = new Set<Promise<void>>()

  /** Sends the deliveries one after the other, until one fails, the lease gets short, or the hook wants no more. */
  const workOff = async ({ lease, target, deliveries, until }: Claimed, load: HookLoad) => {
    const { epoch } = load
    const mayStart = () => !stopping.signal.aborted && load.epoch === epoch && performance.now() < until
    let gap = false
    for (const open of deliveries) {
      const delivery: OpenDelivery = gap ? { ...open, gap } : open
      const result = await load.inTurn(async () =>
        mayStart() ? deliver(lease, target, delivery, abandoning.signal) : undefined,
      )
      const succeeded = result?.state === 'succeeded'
      // Broken off by us, not by the receiver: it counts for nothing.
      if (result === undefined || (abandoning.signal.aborted && !succeeded)) return
      recorder.add(result)
      options.onResult(result, delivery)
      const stop = result.pauseHookMs !== undefined || result.disableHook !== undefined
      load.learn({ succeeded, durationMs: result.durationMs, stop })
      if (result.state === 'retrying') return
      gap = result.state === 'dead'
    }
  }

  const run = async (claimed: Claimed) => {
    const load = loads.of(claimed.lease.hookId)
    load.begin()
    try {
      await workOff(claimed, load)
      await recorder.release(claimed.lease)
    } catch (error) {
      // The lane stays leased: it is tried again when the lease ends, not at once.
      logger.error({ err: error, hookId: claimed.lease.hookId }, 'a lane broke off')
    } finally {
      if (load.end()) wakeup.wake()
    }
  }

  const openTargets = async (hookIds: string[]) => {
    const opened = new Map<string, Target>()
    for (const sealed of await targetsOf(database.query, hookIds)) {
      try {
        opened.set(sealed.id, options.open(sealed))
      } catch (error) {
        logger.error(
          { err: error, hookId: sealed.id },
          'a hook cannot be opened: is its key-encryption key configured?',
        )
      }
    }
    return opened
  }

  /** Claims and starts lanes; returns how many. */
  const claim = async (): Promise<number> => {
    const limit = maxLanes - running.size
    if (limit <= 0) return 0
    const until = performance.now() + leaseMs - attemptTimeoutMs - storingMs
    const { relayId, perHook } = options
    const leases = await claimLanes(database.query, { relayId, leaseMs, limit, perHook, room: loads.room() })
    if (leases.length === 0) return 0
    const [open, targets] = await Promise.all([
      openDeliveries(database.query, leases, perLane),
      openTargets([...new Set(leases.map(({ hookId }) => hookId))]),
    ])
    for (const lease of leases) {
      const target = targets.get(lease.hookId)
      if (target === undefined) continue
      const lane = run({ lease, target, deliveries: open.get(lease.fence) ?? [], until })
      running.add(lane)
      void lane.then(() => running.delete(lane))
    }
    return leases.length
  }

  const rest = async () => {
    const due = running.size < maxLanes ? await msUntilDue(database.query) : undefined
    // Overdue yet not claimed: their hook has no room, and lanes that end wake us.
    await wakeup.wait(due === undefined || due <= 0 ? pollMs : Math.min(due + 1, pollMs), stopping.signal)
  }

  const loop = async () => {
    const backoff = createBackoff()
    while (!stopping.signal.aborted) {
      try {
        if ((await claim()) > 0) await pause(claimPauseMs, stopping.signal)
        else await rest()
        backoff.reset()
      } catch (error) {
        logger.error({ err: error }, 'lanes could not be claimed; trying again')
        await pause(backoff.next(), stopping.signal)
      }
    }
  }
  const ended = loop()

  return {
    wake: wakeup.wake,
    async close(graceMs = 10_000) {
      stopping.abort()
      await ended
      const timer = setTimeout(() => abandoning.abort(), graceMs)
      await Promise.all(running)
      clearTimeout(timer)
    },
  }
}
