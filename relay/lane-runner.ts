import type { Query } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import { type Claimed, createSend, type Send } from './claimed-lane.ts'
import { createHookLoads, type HookLoad, type HookLoads } from './concurrency.ts'
import type { Deliver } from './deliver.ts'
import type { Session } from './heartbeat.ts'
import { createLaneReader, type LaneReader } from './lane-reader.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'
import type { Lease, OpenDelivery } from './ledger/lane-store.ts'
import type { Recorder } from './recorder.ts'
import type { Targets } from './targets.ts'

/** Works lanes off that are ours: each in order, many at once, within what each hook may have under way. */
export interface LaneRunner {
  readonly loads: HookLoads
  readonly send: Send
  readonly reader: Pick<LaneReader, 'read'>
  /** Fences of the leases that we know of. */
  readonly known: Set<number>
  /** Runs `lease`, which returns the fences of new leases; nobody asks meanwhile which we know. */
  learnFences(lease: () => Promise<number[]>): Promise<void>
  /** Leases are being made whose fences are still to be learnt. */
  readonly isLearning: boolean
  /** How many more lanes may be begun; 0 also while there is no memory for what they send. */
  room(): number
  claimed(lease: Lease, of: Pick<Claimed, 'kind' | 'session' | 'since' | 'until'>): Claimed
  /** Returns at once. `begun`: the attempt at the first delivery is under way already, and counted by whoever began it. */
  run(lane: Claimed, deliveries: readonly OpenDelivery[], begun?: Promise<AttemptRecord | undefined>): void
  /** So many bytes more are in memory, or less. */
  hold(bytes: number): void
  /** There is memory for more. */
  hasMemory(): boolean
  /** So many lanes more are about to be begun, or fewer. */
  reserve(lanes: number): void
  /** Reserves them while `work` runs. */
  reserving<Result>(lanes: number, work: () => Promise<Result>): Promise<Result>
  /** When the next lane is due that was given back for a short while (`performance.now()`). */
  nextDue(): number
  /** Lets running attempts end for `graceMs`, then breaks them off; gives the lanes back. Nothing may be begun any more. */
  close(graceMs: number): Promise<void>
}

export interface LaneRunnerOptions {
  query: Query
  targets: Targets
  deliver: Deliver
  recorder: Recorder
  onResult(result: AttemptRecord, delivery: OpenDelivery): void
  /** A hook has room for lanes again, or there are lanes that are due. */
  onRoom(): void
  /** A lane has ended, or one that was reserved is free. */
  onEnd(): void
  logger: Logger
  /** POSTs to one hook at a time. */
  perHook: number
  /** Lanes under way at a time, over all hooks. */
  maxLanes: number
  /** Payloads and answers in memory, in bytes; some more for a moment. */
  maxBytes: number
  /** No attempt starts after it. */
  stopping: AbortSignal
}

/** How often a lane is read under one lease: then other lanes of the hook have their turn. */
const mostRounds = 4
/** What is due again within this is not left to the next look for lanes. */
export const pollMs = 1_000

/** Of what is to be sent. */
export const sizeOf = (deliveries: readonly Pick<OpenDelivery, 'payload'>[]): number =>
  deliveries.reduce((bytes, { payload }) => bytes + (payload?.length ?? 0), 0)

export const createLaneRunner = (options: LaneRunnerOptions): LaneRunner => {
  const { query, targets, deliver, recorder, onResult, onRoom, logger, perHook, maxLanes, maxBytes, stopping } = options
  const abandoning = new AbortController()
  const loads = createHookLoads({ perHook, maxLanes })
  const running = new Set<Promise<void>>()
  const known = new Set<number>()
  let bytes = 0
  let reserved = 0
  let soon: number[] = []
  const reader = createLaneReader({ query, logger, room: () => maxBytes - bytes })
  const send = createSend({ targets, deliver, logger, stopping })
  const hasMemory = () => bytes < maxBytes
  const reserve = (more: number) => {
    reserved += more
    if (more < 0) options.onEnd()
  }
  let learning = 0
  const room = () => (hasMemory() ? Math.max(maxLanes - running.size - reserved, 0) : 0)

  /** Sends the deliveries one after the other, until one fails, the lease gets short, or the hook wants no more. True when it could go on. */
  const workOff = async (
    { claimed, load, held }: { claimed: Claimed; load: HookLoad; held: { bytes: number } },
    deliveries: readonly OpenDelivery[],
    begun: Promise<AttemptRecord | undefined> | undefined,
  ) => {
    let gap = false
    for (const [index, open] of deliveries.entries()) {
      const delivery: OpenDelivery = gap ? { ...open, gap } : open
      const isBegun = index === 0 && begun !== undefined
      const result = await (isBegun ? begun : load.inTurn(() => send(claimed, load, delivery)))
      if (result === undefined) return false
      recorder.add(result)
      if (!isBegun) onResult(result, delivery)
      held.bytes += result.responseBody?.length ?? 0
      bytes += result.responseBody?.length ?? 0
      if (result.state === 'retrying' && result.retryInMs < pollMs) soon.push(performance.now() + result.retryInMs)
      if (result.state === 'retrying' || bytes > maxBytes) return false
      gap = result.state === 'dead'
    }
    return claimed.kind === 'plain' && deliveries.length > 0
  }

  /** Sends deliveries of a lane and stores what came of them. True when it has more that is due, and we keep it for that. */
  const runOnce = async (
    claimed: Claimed,
    deliveries: readonly OpenDelivery[],
    { mayKeep, begun }: { mayKeep: boolean; begun: Promise<AttemptRecord | undefined> | undefined },
  ) => {
    const load = loads.of(claimed.lease.hookId)
    const held = { bytes: sizeOf(deliveries) }
    bytes += held.bytes
    load.begin()
    let ended = false
    const end = () => {
      if (!ended && (load.end() || claimed.kind === 'gated')) onRoom()
      ended = true
    }
    try {
      const goesOn = await workOff({ claimed, load, held }, deliveries, begun)
      // The receiver may have its next lanes while the results of these are stored, but not when these may open its breaker.
      if (!load.failing) end()
      const left = await recorder.release(claimed.lease, goesOn && mayKeep && room() > 0)
      if (left) claimed.lease.from = left.from
      if (left?.due && !left.kept) onRoom()
      return left?.kept === true
    } finally {
      end()
      bytes -= held.bytes
    }
  }

  const runToEnd = async (
    claimed: Claimed,
    first: readonly OpenDelivery[],
    begun?: Promise<AttemptRecord | undefined>,
  ) => {
    try {
      let kept = await runOnce(claimed, first, { mayKeep: true, begun })
      for (let round = 2; kept; round += 1) {
        claimed.since = performance.now()
        targets.prepare(claimed.lease.hookId, claimed.since)
        const deliveries = await reader.more(claimed.lease)
        kept = await runOnce(claimed, deliveries, { mayKeep: round < mostRounds, begun: undefined })
      }
    } catch (error) {
      // The lane stays leased: it is tried again when the lease ends, not at once.
      logger.error({ err: error, hookId: claimed.lease.hookId }, 'a lane broke off')
    }
  }

  let breaking: { own: Session; signal: AbortSignal } | undefined
  const breakOffOf = (own: Session): AbortSignal => {
    if (breaking?.own !== own) breaking = { own, signal: AbortSignal.any([abandoning.signal, own.signal]) }
    return breaking.signal
  }

  return {
    loads,
    send,
    reader,
    known,
    room,
    hold(more) {
      bytes += more
    },
    hasMemory,
    reserve,
    async reserving(lanes, work) {
      reserve(lanes)
      try {
        return await work()
      } finally {
        reserve(-lanes)
      }
    },
    async learnFences(lease) {
      learning += 1
      try {
        for (const fence of await lease()) known.add(fence)
      } finally {
        learning -= 1
      }
    },
    get isLearning() {
      return learning > 0
    },
    claimed: (lease, of) => ({
      ...of,
      lease,
      breakOff: breakOffOf(of.session),
      epoch: loads.of(lease.hookId).epoch,
    }),
    run(claimed, deliveries, begun) {
      const lane = runToEnd(claimed, deliveries, begun)
      running.add(lane)
      void lane.then(() => {
        running.delete(lane)
        known.delete(claimed.lease.fence)
        options.onEnd()
      })
    },
    nextDue() {
      const now = performance.now()
      soon = soon.filter((at) => at > now)
      return Math.min(...soon)
    },
    async close(graceMs) {
      const timer = setTimeout(() => abandoning.abort(), graceMs)
      await Promise.all(running)
      clearTimeout(timer)
    },
  }
}
