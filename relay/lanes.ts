import { createBackOff } from '../platform/back-off.ts'
import type { Database } from '../platform/database/database.ts'
import type { Logger } from '../platform/logger.ts'
import { createWakeUp, pause } from '../platform/wake-up.ts'
import type { Heartbeat, Membership } from './heartbeat.ts'
import { type LaneRunner, pollMs } from './lane-runner.ts'
import { freeUnknownLanes, nextFence } from './ledger/heartbeat-store.ts'
import { claimGatedLanes, claimLanes, claimTestLanes, msUntilGatedDue } from './ledger/lane-claim-store.ts'

/** Claims lanes that are due, and has them worked off (`lane-runner.ts`). */
export interface Lanes {
  /** There may be new deliveries, or room for lanes. */
  wake(): void
  /** Resolves when it claims no more, after `stopping`. */
  ended: Promise<void>
}

export interface LanesOptions {
  database: Database
  heartbeat: Pick<Heartbeat, 'current'>
  runner: LaneRunner
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
  const { database, heartbeat, runner, logger, perHook, catchUpRate, leaseMs, attemptMs, stopping } = options
  const wakeUp = createWakeUp()

  /** The answer to a claim may have been lost: nobody would have what it claimed until the leases end. */
  let isUnsure = false
  const freeUnknown = async (own: Membership) => {
    const before = await nextFence(database.query)
    isUnsure = false
    // No claim is under way: of the leases that are older than `before` we know all.
    const fences = runner.fences()
    const lanes = await database.transaction((query) => freeUnknownLanes(query, own.id, { fences, before }))
    if (lanes > 0) logger.warn({ lanes }, 'lanes were claimed without our knowing; they are claimed again')
  }

  /** The last hook that was looked at in this round over all hooks; empty at the end of a round. */
  let after = ''
  /** A wake-up in the middle of a round may concern a hook that was looked at before. */
  let anotherRound = false
  /**
   * Claims and begins lanes. `more`: there are hooks left to look at. `gated`: there are hooks whose lanes wait for
   * more than time.
   */
  const claim = async (): Promise<{ more: boolean; gated: boolean }> => {
    const membership = heartbeat.current()
    if (membership !== undefined && isUnsure) await freeUnknown(membership)
    const limit = Math.min(runner.room(), perClaim)
    if (membership === undefined || limit === 0) return { more: false, gated: false }
    const startBefore = performance.now() + leaseMs - attemptMs
    const common = { relayId: membership.id, leaseMs, perHook, room: runner.concurrency.room() }
    const plain = await claimLanes(database.query, { ...common, limit, after })
    const { gated, tests } = plain
    after = plain.after
    const byHook = Map.groupBy(plain.leases, ({ hookId }) => hookId)
    const counts = new Map([...byHook].map(([hookId, { length }]) => [hookId, length]))
    runner.concurrency.claimed(counts, common.room, plain.leases.length === limit)
    const own = { membership, startBefore }
    // Ends when all have ended: no claim is under way then whose answer could be lost.
    const begun = await Promise.allSettled([
      runner.begin(plain.leases, { kind: 'plain', ...own }),
      gated &&
        claimGatedLanes(database.query, { ...common, catchUpRate }).then((leases) =>
          runner.begin(leases, { kind: 'gated', ...own }),
        ),
      tests && claimTestLanes(database.query, common).then((leases) => runner.begin(leases, { kind: 'test', ...own })),
    ])
    for (const one of begun) if (one.status === 'rejected') throw one.reason
    const more = after !== '' || anotherRound
    if (after === '') anotherRound = false
    return { more, gated }
  }

  /** Waits until there is something to claim. */
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
        const { more, gated } = await claim()
        const to = performance.now()
        if (!more) await rest(gated, from)
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

  return { wake: wakeUp.wake, ended: loop() }
}
