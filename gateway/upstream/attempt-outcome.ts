import type { Outcome } from './targets/target.ts'
import { isOwnTrouble, isUpstreamFailure, upstreamError } from './upstream-error.ts'

/** Why an attempt was ended that its target did not end. */
export const clientGone = new Error('the client went away')
export const discarded = new Error('another target is asked')

/** An attempt without a whole answer. */
export interface FailedAttempt {
  /** Whether an answer had begun. */
  answered: boolean
  /** Whether the body ended early, which undici reports like an error of the upstream. */
  clientBroke: boolean
  /** Whether the time of the route was up. */
  expired: boolean
  /** Whether the target had all of that time: no earlier attempt, and no body that the client took its time with. */
  alone: boolean
}

/**
 * What it says about the target. Clients must not be able to make a target look ill: whatever they, this machine or
 * other targets may have caused is no evidence.
 */
export const outcomeOf = (thrown: Error, { answered, clientBroke, expired, alone }: FailedAttempt): Outcome => {
  if (thrown === discarded) return 'failed'
  if (thrown === clientGone || answered || clientBroke || isOwnTrouble(thrown)) return 'neither'
  if (expired && !alone) return 'neither'
  return isUpstreamFailure(upstreamError(thrown)) ? 'failed' : 'neither'
}
