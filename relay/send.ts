import type { Logger } from '../platform/logger.ts'
import type { HookConcurrency } from './concurrency.ts'
import type { Deliver } from './deliver.ts'
import type { Membership } from './heartbeat.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'
import type { Lease, OpenDelivery } from './ledger/lane-store.ts'
import type { HookState, Targets } from './targets.ts'

/** A lane that this relay has claimed. */
export interface ClaimedLane {
  lease: Lease
  /** `gated`: one POST was reserved for it. `test`: it is sent whatever the state of the hook. */
  kind: 'plain' | 'gated' | 'test'
  /** Under which it was claimed. */
  membership: Membership
  /** Aborts when the relay stops or its membership ends: running attempts are broken off. */
  breakOff: AbortSignal
  /**
   * Deliveries and hook are read after this time (`performance.now()`). So a change of the hook applies to every later
   * event.
   */
  since: number
  /** No attempt starts after this (`performance.now()`). */
  startBefore: number
  /** Of the hook, when the lane was claimed. */
  epoch: number
}

/**
 * How long a hook that this relay cannot serve is left to other relays; and how long when this machine is short of
 * something. In ms.
 */
const avoidMs = 30_000
const recoverMs = 5_000

/**
 * Makes one POST of a claimed lane. Undefined if none was made, or none that counts: the hook wants no more or was
 * changed, the lease gets short, the relay stops, or this machine is short of something. The lane is then given back.
 */
export type Send = (
  lane: ClaimedLane,
  hook: HookConcurrency,
  delivery: OpenDelivery,
) => Promise<AttemptRecord | undefined>

export const createSend = (options: {
  targets: Targets
  deliver: Deliver
  logger: Logger
  /** No attempt starts after it. */
  stopping: AbortSignal
}): Send => {
  const { targets, deliver, logger, stopping } = options

  /** Undefined if nothing may be sent to the hook now: it may have changed since the claim. */
  const targetOf = async ({ kind }: ClaimedLane, { target, active, gated }: HookState, delivery: OpenDelivery) => {
    if (kind === 'test') return target && targets.ofTest(target, delivery.id)
    return active && (kind === 'gated' || !gated) ? target : undefined
  }

  return async (lane, hook, delivery) => {
    const { lease, kind, membership, breakOff, since, startBefore, epoch } = lane
    const mayStart = () =>
      !stopping.aborted && hook.epoch === epoch && membership.isAlive() && performance.now() < startBefore
    if (!mayStart()) return undefined
    const state = await targets.current(lease.hookId, since)
    if (state?.target === undefined) {
      if (kind === 'test') throw new Error('The hook of a test-send is gone or cannot be opened.')
      hook.avoid(avoidMs)
      return undefined
    }
    const target = await targetOf(lane, state, delivery)
    if (target === undefined || !mayStart()) return undefined
    const result = await deliver(lease, target, delivery, breakOff)
    const succeeded = result.state === 'succeeded'
    // Broken off by us, not by the receiver.
    if (breakOff.aborted && !succeeded) return undefined
    if (kind === 'test') return { ...result, changesHealth: false }
    if (result.ownFault) {
      logger.error({ hookId: lease.hookId, reason: result.error }, 'nothing can be sent from here; others may')
      hook.avoid(recoverMs)
      return undefined
    }
    const stop = result.pauseHookMs !== undefined || result.disableHook !== undefined
    const changes = hook.learn({ succeeded, durationMs: result.durationMs, stop })
    return { ...result, changesHealth: changes || state.failing }
  }
}
