import type { AttemptRecord } from '../events/attempt-store.ts'
import { claimGatedLanes, claimLanes, claimTestLanes, msUntilGatedDue } from '../events/lane-claim-store.ts'
import type { Lease, OpenDelivery } from '../events/lane-store.ts'
import { freeUnknownLanes } from '../events/relay-store.ts'
import { createBackoff, createWakeup, pause } from '../events/wakeup.ts'
import type { Database } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import { type Claimed, createSend, type Kind } from './claimed-lane.ts'
import type { Deliver } from './deliver.ts'
import { createHookLoads, type HookLoad } from './hook-load.ts'
import { createLaneReader, perLane } from './lane-reader.ts'
import type { Recorder } from './recorder.ts'
import type { RelaySession, Session } from './session.ts'
import type { Targets } from './targets.ts'

/** Claims lanes that are due and works them off: each in order, many at once, within what each hook may have under way. */
export interface Lanes {
  /** There may be new deliveries. */
  wake(): void
  /** Claims no more, lets running attempts end for `graceMs` (default 10 000), then breaks them off; gives the lanes back. */
  close(graceMs?: number): Promise<void>
}

export interface LanesOptions {
  database: Database
  session: Pick<RelaySession, 'current'>
  targets: Targets
  deliver: Deliver
  recorder: Recorder
  onResult(result: AttemptRecord, delivery: OpenDelivery): void
  logger: Logger
  /** POSTs to one hook at a time. */
  perHook: number
  /** Lanes under way at a time, over all hooks. */
  maxLanes: number
  /** Payloads and answers in memory, in bytes; some more for a moment. */
  maxBytes: number
  /** POSTs a minute to a hook that catches up after an absence. */
  catchUpRate: number
  /** Until others may claim the lane again. Must exceed `attemptTimeoutMs` by what storing a result takes. */
  leaseMs: number
  attemptTimeoutMs: number
}

/** How often a lane is read under one lease: then other lanes of the hook have their turn. */
const mostRounds = 4
const pollMs = 1_000
/** Between claims, so that one replaces what several lanes have finished. */
const claimPauseMs = 2
const storingMs = 1_000
/** What one claim takes, at most. */
const perClaim = 256

const sizeOf = (deliveries: readonly OpenDelivery[]) =>
  deliveries.reduce((bytes, { payload }) => bytes + (payload?.length ?? 0), 0)

export const createLanes = (options: LanesOptions): Lanes => {
  const { database, session, targets, deliver, recorder, logger } = options
  const { perHook, maxLanes, maxBytes, catchUpRate, leaseMs, attemptTimeoutMs } = options
  const stopping = new AbortController()
  const abandoning = new AbortController()
  const wakeup = createWakeup()
  const loads = createHookLoads({ perHook, maxLanes })
  const running = new Set<Promise<void>>()
  /** Fences of the leases that we know of. */
  const known = new Set<number>()
  let bytes = 0
  const reader = createLaneReader({ query: database.query, logger, room: () => maxBytes - bytes })
  /** When lanes are due that were given back for less than a poll (`performance.now()`). */
  let soon: number[] = []
  const send = createSend({ targets, deliver, logger, stopping: stopping.signal })
  const isFull = () => running.size >= maxLanes || bytes >= maxBytes
  /** The last claim did not look. */
  let wasFull = false

  /** Sends the deliveries one after the other, until one fails, the lease gets short, or the hook wants no more. True when it could go on. */
  const workOff = async (
    claimed: Claimed,
    deliveries: readonly OpenDelivery[],
    load: HookLoad,
    held: { bytes: number },
  ) => {
    let gap = false
    for (const open of deliveries) {
      const delivery: OpenDelivery = gap ? { ...open, gap } : open
      const result = await load.inTurn(() => send(claimed, load, delivery))
      if (result === undefined) return false
      recorder.add(result)
      options.onResult(result, delivery)
      held.bytes += result.responseBody?.length ?? 0
      bytes += result.responseBody?.length ?? 0
      if (result.state === 'retrying' && result.retryInMs < pollMs) soon.push(performance.now() + result.retryInMs)
      if (result.state === 'retrying' || bytes > maxBytes) return false
      gap = result.state === 'dead'
    }
    return claimed.kind === 'plain' && deliveries.length > 0
  }

  /** Sends deliveries of a lane and stores what came of them. True when it has more that is due, and we keep it for that. */
  const runOnce = async (claimed: Claimed, deliveries: readonly OpenDelivery[], mayKeep: boolean) => {
    const load = loads.of(claimed.lease.hookId)
    const held = { bytes: sizeOf(deliveries) }
    bytes += held.bytes
    load.begin()
    let ended = false
    const end = () => {
      if (!ended && (load.end() || claimed.kind === 'gated')) wakeup.wake()
      ended = true
    }
    try {
      const goesOn = await workOff(claimed, deliveries, load, held)
      // The receiver may have its next lanes while the results of these are stored, but not when these may open its breaker.
      if (!load.failing) end()
      const left = await recorder.release(claimed.lease, goesOn && mayKeep && !isFull())
      if (left) claimed.lease.from = left.from
      if (left?.due && !left.kept) wakeup.wake()
      return left?.kept === true
    } finally {
      end()
      bytes -= held.bytes
    }
  }

  const run = async (claimed: Claimed, first: readonly OpenDelivery[]) => {
    try {
      let deliveries = first
      for (let round = 1; await runOnce(claimed, deliveries, round < mostRounds); round += 1)
        deliveries = await reader.more(claimed.lease)
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

  const begin = async (leases: readonly Lease[], kind: Kind, own: Session, until: number) => {
    if (leases.length === 0) return
    for (const { fence } of leases) known.add(fence)
    const hookIds = new Set(leases.map(({ hookId }) => hookId))
    const reading = Promise.all([
      reader.read(leases, kind === 'plain' ? perLane : 1),
      // Together; each lane then finds its own fresh.
      ...[...hookIds].map((hookId) => targets.current(hookId)),
    ])
    const [open] = await reading.catch((error: unknown) => {
      // Otherwise nobody had them until the lease ends.
      for (const lease of leases) void recorder.release(lease).then(() => known.delete(lease.fence))
      throw error
    })
    const breakOff = breakOffOf(own)
    for (const lease of leases) {
      const claimed = { lease, kind, session: own, breakOff, until, epoch: loads.of(lease.hookId).epoch }
      const lane = run(claimed, open.get(lease.fence) ?? [])
      running.add(lane)
      void lane.then(() => {
        running.delete(lane)
        known.delete(lease.fence)
        if (wasFull) wakeup.wake()
      })
    }
  }

  /** The answer to a claim may have been lost: nobody would have what it claimed until the leases end. */
  let isUnsure = false
  const makeSure = async (own: Session) => {
    const lanes = await database.transaction((query) => freeUnknownLanes(query, own.id, [...known]))
    isUnsure = false
    if (lanes > 0) logger.warn({ lanes }, 'lanes were claimed without our knowing; they are claimed again')
  }

  /** How far the hooks have had their turn; empty at the end of a round. */
  let after = ''
  /** What woke us up in the middle of a round may concern a hook that had its turn before. */
  let anotherRound = false
  /** Claims and starts lanes. `cut`: others are due that it did not get to. `gated`: there are hooks whose lanes wait for more than time. */
  const claim = async (): Promise<{ cut: boolean; gated: boolean }> => {
    const own = session.current()
    if (own !== undefined && isUnsure) await makeSure(own)
    const limit = Math.min(maxLanes - running.size, perClaim)
    wasFull = isFull()
    if (own === undefined || wasFull) return { cut: false, gated: false }
    const until = performance.now() + leaseMs - attemptTimeoutMs - storingMs
    const common = { relayId: own.id, leaseMs, perHook, room: loads.room() }
    const plain = await claimLanes(database.query, { ...common, limit, after })
    const { gated, tests } = plain
    after = plain.after
    const byHook = Map.groupBy(plain.leases, ({ hookId }) => hookId)
    const counts = new Map([...byHook].map(([hookId, { length }]) => [hookId, length]))
    loads.claimed(counts, common.room, plain.leases.length === limit)
    // Ends when all have ended: the answer to a claim that is under way is not lost.
    const begun = await Promise.allSettled([
      begin(plain.leases, 'plain', own, until),
      gated &&
        claimGatedLanes(database.query, { ...common, catchUpRate }).then((leases) =>
          begin(leases, 'gated', own, until),
        ),
      tests && claimTestLanes(database.query, common).then((leases) => begin(leases, 'test', own, until)),
    ])
    for (const one of begun) if (one.status === 'rejected') throw one.reason
    const cut = after !== '' || anotherRound
    if (after === '') anotherRound = false
    return { cut, gated }
  }

  /** Until there is something to claim. What has no room now is claimed when lanes end, which wakes us. */
  const rest = async (gated: boolean, claimedFrom: number) => {
    const now = performance.now()
    soon = soon.filter((at) => at > now)
    const sinceMs = now - claimedFrom
    const gatedMs = gated ? await msUntilGatedDue(database.query, { catchUpRate, sinceMs }) : undefined
    const dueMs = Math.min(Math.min(...soon) - now, Math.max(gatedMs ?? pollMs, 0)) + 1
    await wakeup.wait(Math.min(dueMs, pollMs), stopping.signal)
    anotherRound = after !== ''
  }

  const loop = async () => {
    const backoff = createBackoff()
    while (!stopping.signal.aborted) {
      try {
        const from = performance.now()
        const { cut, gated } = await claim()
        const to = performance.now()
        if (!cut) await rest(gated, from)
        const early = to + claimPauseMs - performance.now()
        if (early > 0) await pause(early, stopping.signal)
        backoff.reset()
      } catch (error) {
        isUnsure = true
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
