import type { CallResult, ScriptFailure } from './messages.ts'

/**
 * Which owners are penalized: those whose calls went beyond a limit lately, or were slow more often than everybody
 * could afford.
 */
export interface Penalties {
  isPenalized(owner: string): boolean
  /** True when this call is the reason that its owner is penalized from now on. */
  record(owner: string, result: CallResult): boolean
}

/** Of a processor, what calls that are slow or go beyond limits may take for one owner. */
export const slowShare = 0.05
/** How long an owner is penalized after the last such call, in ms. */
const penaltyMs = 30_000
/** Owners remembered, at most; then it begins anew. */
const mostOwners = 10_000

/**
 * What a failure counts, as a share of what is too much. Time that passes may be the fault of a machine that is too
 * busy.
 */
const weights: Partial<Record<ScriptFailure, number>> = { cpu: 1, memory: 1, wall: 0.5 }

export const weightOf = ({ outcome }: CallResult): number => ('failed' in outcome && weights[outcome.failed]) || 0

/** `slowMs`: calls that take less processor time count nothing. */
export const createPenalties = ({ slowMs, now }: { slowMs: number; now: () => number }): Penalties => {
  const owners = new Map<string, { debtMs: number; at: number; penalizedUntil: number }>()
  const tooMuchMs = 4 * slowMs

  const isPenalized = (owner: string): boolean =>
    (owners.get(owner)?.penalizedUntil ?? Number.NEGATIVE_INFINITY) > now()

  return {
    isPenalized,
    record(owner, result) {
      const charge = weightOf(result) * tooMuchMs || (result.cpuMs > slowMs ? result.cpuMs : 0)
      if (charge === 0) return false
      const wasPenalized = isPenalized(owner)
      const at = now()
      const before = owners.get(owner) ?? { debtMs: 0, at, penalizedUntil: Number.NEGATIVE_INFINITY }
      const debtMs = Math.max(0, before.debtMs - (at - before.at) * slowShare) + charge
      const penalizedUntil = wasPenalized || debtMs >= tooMuchMs ? at + penaltyMs : before.penalizedUntil
      if (!owners.has(owner) && owners.size >= mostOwners) owners.clear()
      // Bounded, so that an owner penalized for long is not remembered for longer than others.
      owners.set(owner, { debtMs: Math.min(debtMs, tooMuchMs), at, penalizedUntil })
      return !wasPenalized && penalizedUntil > at
    },
  }
}
