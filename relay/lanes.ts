import { createBackOff } from '../platform/back-off.ts'
import type { Database } from '../platform/database.ts'
import type { Logger } from '../platform/logger.ts'
import { createWakeUp, pause } from '../platform/wake-up.ts'
import type { Claimed } from './claimed-lane.ts'
import type { RelaySession, Session } from './heartbeat.ts'
import { perLane } from './lane-reader.ts'
import { type LaneRunner, pollMs } from './lane-runner.ts'
import { freeUnknownLanes, nextFence } from './ledger/heartbeat-store.ts'
import { claimGatedLanes, claimLanes, claimTestLanes, msUntilGatedDue } from './ledger/lane-claim-store.ts'
import type { Lease } from './ledger/lane-store.ts'
import type { Recorder } from './recorder.ts'
import type { Targets } from './targets.ts'

/** Claims lanes that are due and has them worked off. */
export interface Lanes {
  /** There may be new deliveries, or room for lanes. */
  wake(): void
  /** A lane has ended. */
  onEnd(): void
  /** Some may be leased to us without our knowing: the answer to what leased them was lost. They are freed. */
  doubt(): void
  /** Resolves when it claims no more, after `stopping`. */
  ended: Promise<void>
}

export interface LanesOptions {
  database: Database
  session: Pick<RelaySession, 'current'>
  targets: Targets
  runner: LaneRunner
  recorder: Recorder
  logger: Logger
  /** POSTs to one hook at a time. */
  perHook: number
  /** POSTs a minute to a hook that catches up after an absence. */
  catchUpRate: number
  /** Until others may claim the lane again. Must exceed `attemptMs` by what storing a result takes. */
  leaseMs: number
  /** How long before its end a lease is too short to begin an attempt, in ms. */
  attemptMs: number
  stopping: AbortSignal
}

/** Between claims, so that one replaces what several lanes have finished. */
const claimPauseMs = 2
/** What one claim takes, at most. */
const perClaim = 256

export const createLanes = (options: LanesOptions): Lanes => {
  const { database, session, targets, runner, recorder, logger } = options
  const { perHook, catchUpRate, leaseMs, attemptMs, stopping } = options
  const wakeUp = createWakeUp()
  const { loads, reader, known } = runner
  /** The last claim did not look. */
  let wasFull = false

  const begin = async (leases: readonly Lease[], lane: Pick<Claimed, 'kind' | 'session' | 'until'>) => {
    if (leases.length === 0) return
    const since = performance.now()
    for (const { fence } of leases) known.add(fence)
    const hookIds = new Set(leases.map(({ hookId }) => hookId))
    const reading = Promise.all([
      reader.read(leases, lane.kind === 'plain' ? perLane : 1),
      // Together; each lane then finds its own fresh.
      ...[...hookIds].map((hookId) => targets.current(hookId, since)),
    ])
    const [open] = await reading.catch((error: unknown) => {
      // Otherwise nobody had them until the lease ends.
      for (const lease of leases) void recorder.release(lease).then(() => known.delete(lease.fence))
      throw error
    })
    for (const lease of leases) runner.run(runner.claimed(lease, { ...lane, since }), open.get(lease.fence) ?? [])
  }

  /** The answer to a claim may have been lost: nobody would have what it claimed until the leases end. */
  let isUnsure = false
  const makeSure = async (own: Session) => {
    const before = await nextFence(database.query)
    // By now we know all leases that are older, or look again later.
    if (runner.isLearning) return
    isUnsure = false
    const fences = [...known]
    const lanes = await database.transaction((query) => freeUnknownLanes(query, own.id, { fences, before }))
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
    const limit = Math.min(runner.room(), perClaim)
    wasFull = limit === 0
    if (own === undefined || wasFull) return { cut: false, gated: false }
    const until = performance.now() + leaseMs - attemptMs
    const common = { relayId: own.id, leaseMs, perHook, room: loads.room() }
    const plain = await runner.reserving(limit, () => claimLanes(database.query, { ...common, limit, after }))
    const { gated, tests } = plain
    after = plain.after
    const byHook = Map.groupBy(plain.leases, ({ hookId }) => hookId)
    const counts = new Map([...byHook].map(([hookId, { length }]) => [hookId, length]))
    loads.claimed(counts, common.room, plain.leases.length === limit)
    // Ends when all have ended: the answer to a claim that is under way is not lost.
    const begun = await Promise.allSettled([
      begin(plain.leases, { kind: 'plain', session: own, until }),
      gated &&
        claimGatedLanes(database.query, { ...common, catchUpRate }).then((leases) =>
          begin(leases, { kind: 'gated', session: own, until }),
        ),
      tests &&
        claimTestLanes(database.query, common).then((leases) => begin(leases, { kind: 'test', session: own, until })),
    ])
    for (const one of begun) if (one.status === 'rejected') throw one.reason
    const cut = after !== '' || anotherRound
    if (after === '') anotherRound = false
    return { cut, gated }
  }

  /** Until there is something to claim. What has no room now is claimed when lanes end, which wakes us. */
  const rest = async (gated: boolean, claimedFrom: number) => {
    const now = performance.now()
    const sinceMs = now - claimedFrom
    const gatedMs = gated ? await msUntilGatedDue(database.query, { catchUpRate, sinceMs }) : undefined
    const dueMs = Math.min(runner.nextDue() - now, Math.max(gatedMs ?? pollMs, 0)) + 1
    await wakeUp.wait(Math.min(dueMs, pollMs), stopping)
    anotherRound = after !== ''
  }

  const loop = async () => {
    const backOff = createBackOff()
    while (!stopping.aborted) {
      try {
        const from = performance.now()
        const { cut, gated } = await claim()
        const to = performance.now()
        if (!cut) await rest(gated, from)
        const early = to + claimPauseMs - performance.now()
        if (early > 0) await pause(early, stopping)
        backOff.reset()
      } catch (error) {
        isUnsure = true
        logger.error({ err: error }, 'lanes could not be claimed; trying again')
        await pause(backOff.next(), stopping)
      }
    }
  }

  return {
    wake: wakeUp.wake,
    onEnd() {
      if (wasFull) wakeUp.wake()
    },
    doubt() {
      isUnsure = true
      wakeUp.wake()
    },
    ended: loop(),
  }
}
