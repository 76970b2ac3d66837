import type { Logger } from '../platform/logger.ts'
import type { HookLoad } from './concurrency.ts'
import type { Deliver } from './deliver.ts'
import type { Session } from './heartbeat.ts'
import type { AttemptRecord } from './ledger/attempt-store.ts'
import type { Lease, OpenDelivery } from './ledger/lane-store.ts'
import type { Standing, Targets } from './targets.ts'

/** `gated`: one POST was reserved for it. */
export type Kind = 'plain' | 'gated' | 'test'

export interface Claimed {
  lease: Lease
  kind: Kind
  session: Session
  /** The relay stops, or its session is over. */
  breakOff: AbortSignal
  /** What it sends had happened by then (`performance.now()`): so had what changed its hook before that. */
  since: number
  /** No attempt starts after this (`performance.now()`). */
  until: number
  /** Of the hook, when the lane was claimed. */
  epoch: HookLoad['epoch']
}

/** A hook that this relay cannot serve is left to others for so long; and when this machine is short of something. */
const avoidMs = 30_000
const recoverMs = 5_000

/**
 * One POST of a lane that is ours. Undefined when there is none, or none that counts: the hook wants no more or was changed, the lease gets
 * short, the relay stops, or this machine is short of something.
 */
export type Send = (claimed: Claimed, load: HookLoad, delivery: OpenDelivery) => Promise<AttemptRecord | undefined>

export const createSend = (options: {
  targets: Targets
  deliver: Deliver
  logger: Logger
  /** No attempt starts after it. */
  stopping: AbortSignal
}): Send => {
  const { targets, deliver, logger, stopping } = options

  /** What may be sent to right now: a change of the hook since the claim counts. */
  const targetOf = ({ kind }: Claimed, load: HookLoad, standing: Standing | undefined) => {
    if (standing?.target === undefined) {
      if (kind === 'test') throw new Error('The hook of a test-send is gone or cannot be opened.')
      load.avoid(avoidMs)
      return undefined
    }
    const isWanted = kind === 'test' || (standing.receptive && (kind === 'gated' || !standing.gated))
    return isWanted ? { target: standing.target, failing: standing.failing } : undefined
  }

  const sendNow: Send = async (claimed, load, delivery) => {
    const { lease, kind, session: own, breakOff, since, until, epoch } = claimed
    const mayStart = () => !stopping.aborted && load.epoch === epoch && own.holds() && performance.now() < until
    if (!mayStart()) return undefined
    const found = targetOf(claimed, load, await targets.current(lease.hookId, since))
    if (found === undefined || !mayStart()) return undefined
    const target = kind === 'test' ? await targets.ofTest(found.target, delivery.id) : found.target
    const result = await deliver(lease, target, delivery, breakOff)
    const succeeded = result.state === 'succeeded'
    // Broken off by us, not by the receiver: it counts for nothing.
    if (breakOff.aborted && !succeeded) return undefined
    if (kind === 'test') return Object.assign(result, { isNews: false })
    if (result.ownFault) {
      logger.error({ hookId: lease.hookId, reason: result.error }, 'nothing can be sent from here; others may')
      load.avoid(recoverMs)
      return undefined
    }
    const stop = result.pauseHookMs !== undefined || result.disableHook !== undefined
    const isNew = load.learn({ succeeded, durationMs: result.durationMs, stop })
    return Object.assign(result, { isNews: isNew || found.failing })
  }
  return async (claimed, load, delivery) => {
    const end = load.watch()
    try {
      return await sendNow(claimed, load, delivery)
    } finally {
      end()
    }
  }
}
