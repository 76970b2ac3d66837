import type { Query } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import { type Concurrency, createConcurrency, type HookConcurrency } from './concurrency.ts'
import type { Deliver } from './deliver.ts'
import type { Membership } from './heartbeat.ts'
import { createLaneReader, perLane } from './lane-reader.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'
import type { Lease, OpenDelivery } from './ledger/lane-store.ts'
import type { Recorder } from './recorder.ts'
import { type ClaimedLane, createSend } from './send.ts'
import type { Targets } from './targets.ts'

/** Works claimed lanes off: each in order, many at once, within what each hook may have under way. */
export interface LaneRunner {
  readonly concurrency: Concurrency
  /** Fences of the leases that we know of. */
  fences(): number[]
  /** How many more lanes may be begun; 0 also while there is no memory for what they send. */
  room(): number
  /**
   * Reads what the lanes have to send. Resolves when they are begun; when that cannot be read, they are given back, and
   * it rejects.
   */
  begin(leases: readonly Lease[], claim: Pick<ClaimedLane, 'kind' | 'membership' | 'startBefore'>): Promise<void>
  /** When the next retry is due whose lane was given back for a short while (`performance.now()`). */
  nextDue(): number
  /**
   * Lets running attempts end for `graceMs`, then breaks them off; gives the lanes back. Nothing may be begun any more.
   */
  close(graceMs: number): Promise<void>
}

export interface LaneRunnerOptions {
  query: Query
  targets: Targets
  deliver: Deliver
  recorder: Recorder
  onResult(result: AttemptRecord, delivery: OpenDelivery): void
  /** Lanes may be claimable now: one ended that others waited for, or one has more due. */
  onRoom(): void
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
/** A retry that is due within this is not left to the next look for lanes. */
export const pollMs = 1_000

const sizeOf = (deliveries: readonly OpenDelivery[]): number =>
  deliveries.reduce((bytes, { payload }) => bytes + (payload?.length ?? 0), 0)

export const createLaneRunner = (options: LaneRunnerOptions): LaneRunner => {
  const { query, targets, deliver, recorder, onResult, onRoom, logger, perHook, maxLanes, maxBytes, stopping } = options
  const abandoning = new AbortController()
  const concurrency = createConcurrency({ perHook, maxLanes })
  const known = new Set<number>()
  const running = new Set<Promise<void>>()
  let heldBytes = 0
  let retriesDue: number[] = []
  /** There was no room for lanes that may be due. */
  let isFull = false
  const reader = createLaneReader({ query, logger, room: () => maxBytes - heldBytes })
  const send = createSend({ targets, deliver, logger, stopping })

  const nextDue = () => {
    const now = performance.now()
    retriesDue = retriesDue.filter((at) => at > now)
    return Math.min(...retriesDue)
  }

  const room = () => {
    const lanes = heldBytes < maxBytes ? Math.max(maxLanes - running.size, 0) : 0
    if (lanes === 0) isFull = true
    return lanes
  }

  /**
   * Sends deliveries one after the other. False if the lane must stop: one has failed, there is no memory, or nothing
   * may be sent.
   */
  const sendAll = async (
    lane: ClaimedLane,
    hook: HookConcurrency,
    deliveries: readonly OpenDelivery[],
    hold: (bytes: number) => void,
  ) => {
    let gap = false
    for (const open of deliveries) {
      const delivery: OpenDelivery = gap ? { ...open, gap } : open
      const result = await hook.post(() => send(lane, hook, delivery))
      if (result === undefined) return false
      recorder.add(result)
      onResult(result, delivery)
      hold(result.responseBody?.length ?? 0)
      const isRetried = result.state === 'retrying'
      if (isRetried && result.retryInMs < pollMs) retriesDue.push(performance.now() + result.retryInMs)
      if (isRetried || heldBytes > maxBytes) return false
      gap = result.state === 'dead'
    }
    return true
  }

  /**
   * Sends deliveries of a lane and gives it back once the results are stored. Returns the lease if the lane is kept:
   * more is due.
   */
  const runOnce = async (lane: ClaimedLane, deliveries: readonly OpenDelivery[], mayKeep: boolean) => {
    const { lease, kind } = lane
    const hook = concurrency.of(lease.hookId)
    let held = 0
    const hold = (bytes: number) => {
      held += bytes
      heldBytes += bytes
    }
    hold(sizeOf(deliveries))
    hook.begin()
    let hasEnded = false
    const end = () => {
      if (!hasEnded && (hook.end() || kind === 'gated')) onRoom()
      hasEnded = true
    }
    try {
      const mayGoOn = (await sendAll(lane, hook, deliveries, hold)) && kind === 'plain' && deliveries.length > 0
      // The receiver may have its next lanes while the results of these are stored, but not when these may open its
      // breaker.
      if (!hook.failing) end()
      const left = await recorder.release(lease, mayGoOn && mayKeep && room() > 0)
      // A retry that is due soon must not find whoever looks for lanes asleep for longer.
      if ((left?.due && !left.kept) || nextDue() < Infinity) onRoom()
      return left?.kept ? { ...lease, from: left.from } : undefined
    } finally {
      end()
      heldBytes -= held
    }
  }

  const runToEnd = async (lane: ClaimedLane, deliveries: readonly OpenDelivery[]) => {
    try {
      let lease = await runOnce(lane, deliveries, true)
      for (let round = 2; lease !== undefined; round += 1) {
        const since = performance.now()
        const [next] = await Promise.all([reader.next(lease), targets.current(lease.hookId, since)])
        lease = await runOnce({ ...lane, lease, since }, next, round < mostRounds)
      }
    } catch (error) {
      // The lane stays leased: it is tried again when the lease ends, not at once.
      logger.error({ err: error, hookId: lane.lease.hookId }, 'a lane broke off')
    }
  }

  const run = (lane: ClaimedLane, deliveries: readonly OpenDelivery[]) => {
    const ended = runToEnd(lane, deliveries).then(() => {
      running.delete(ended)
      known.delete(lane.lease.fence)
      if (isFull) onRoom()
      isFull = false
    })
    running.add(ended)
  }

  /** One signal for all lanes of a membership: it may have thousands of attempts. */
  let breaking: { membership: Membership; signal: AbortSignal } | undefined
  const breakOffOf = (membership: Membership): AbortSignal => {
    if (breaking?.membership !== membership)
      breaking = { membership, signal: AbortSignal.any([abandoning.signal, membership.signal]) }
    return breaking.signal
  }

  return {
    concurrency,
    fences: () => [...known],
    room,
    async begin(leases, claim) {
      if (leases.length === 0) return
      const since = performance.now()
      for (const { fence } of leases) known.add(fence)
      const hookIds = new Set(leases.map(({ hookId }) => hookId))
      const reading = Promise.all([
        reader.read(leases, claim.kind === 'plain' ? perLane : 1),
        // All hooks in one statement; each lane then finds its own fresh.
        ...[...hookIds].map((hookId) => targets.current(hookId, since)),
      ])
      const [open] = await reading.catch((error: unknown) => {
        // Otherwise nobody had them until the leases end.
        for (const lease of leases) void recorder.release(lease).then(() => known.delete(lease.fence))
        throw error
      })
      const common = { ...claim, breakOff: breakOffOf(claim.membership), since }
      for (const lease of leases)
        run({ ...common, lease, epoch: concurrency.of(lease.hookId).epoch }, open.get(lease.fence) ?? [])
    },
    nextDue,
    async close(graceMs) {
      const timer = setTimeout(() => abandoning.abort(), graceMs)
      await Promise.all(running)
      clearTimeout(timer)
    },
  }
}
