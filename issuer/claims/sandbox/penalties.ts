import type { CallResult, ScriptFailure } from './messages.ts'

/**
 * Which owners are served apart: those whose calls went beyond a limit lately, or were slow more often than everybody could afford.
 */
export interface Standing {
  isApart(owner: string): boolean
  /** True when this call is the reason that its owner is served apart from now on. */
  note(owner: string, result: CallResult): boolean
}

/** Of a processor, what calls that are slow or go beyond limits may take for one owner. */
export const slowShare = 0.05
/** How long an owner is served apart after the last such call, in ms. */
const apartFor = 30_000
/** Owners remembered, at most; then it begins anew. */
const mostOwners = 10_000

/** What a failure counts, as a share of what is too much. Time that passes may be the fault of a machine that is too busy. */
const weights: Partial<Record<ScriptFailure, number>> = { cpu: 1, memory: 1, wall: 0.5 }

export const weightOf = ({ outcome }: CallResult): number => ('failed' in outcome && weights[outcome.failed]) || 0

/** `slowMs`: calls that take less processor time count nothing. */
export const createStanding = ({ slowMs, now }: { slowMs: number; now: () => number }): Standing => {
  const owners = new Map<string, { debtMs: number; at: number; apartUntil: number }>()
  const tooMuchMs = 4 * slowMs

  const isApart = (owner: string): boolean => (owners.get(owner)?.apartUntil ?? Number.NEGATIVE_INFINITY) > now()

  return {
    isApart,
    note(owner, result) {
      const charge = weightOf(result) * tooMuchMs || (result.cpuMs > slowMs ? result.cpuMs : 0)
      if (charge === 0) return false
      const wasApart = isApart(owner)
      const at = now()
      const before = owners.get(owner) ?? { debtMs: 0, at, apartUntil: Number.NEGATIVE_INFINITY }
      const debtMs = Math.max(0, before.debtMs - (at - before.at) * slowShare) + charge
      const apartUntil = wasApart || debtMs >= tooMuchMs ? at + apartFor : before.apartUntil
      if (!owners.has(owner) && owners.size >= mostOwners) owners.clear()
      // Bounded, so that who has been served apart for long is not remembered for longer than others.
      owners.set(owner, { debtMs: Math.min(debtMs, tooMuchMs), at, apartUntil })
      return !wasApart && apartUntil > at
    },
  }
}
