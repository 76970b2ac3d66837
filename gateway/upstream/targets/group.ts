import type { Balance } from '../../config/settings/targets.ts'
import { createBalancer } from './balance/balancer.ts'
import type { Target } from './target.ts'
import type { UsedTarget } from './used-target.ts'

/** Counts what happened to the targets of an upstream, so that groups need to look at them only then. */
export interface Changes {
  count: number
}

/** Targets among which a request may choose: all of an upstream, or those with certain labels. */
export interface Group {
  pick(key: string | undefined, tried: readonly Target[] | undefined): UsedTarget | undefined
  /** Whether all are used because too many would be out. */
  isOverdrawn(): boolean
}

/** How often the weight of a target that starts slowly grows, in ms. */
const slowStartStep = 100

export const createGroup = (options: {
  targets: readonly UsedTarget[]
  balance: Balance
  /** From 0 to 1. */
  maxShare: number
  changes: Changes
  now: () => number
  onLook?: ((overdrawn: boolean) => void) | undefined
}): Group => {
  const { targets, maxShare, changes, now, onLook } = options
  const balance = createBalancer(options.balance)
  let usable: readonly UsedTarget[] = targets
  let overdrawn = false
  let seen = -1
  /** When the next one comes back, or gets more. */
  let next = Number.NEGATIVE_INFINITY

  const look = () => {
    if (seen === changes.count && (next === Number.POSITIVE_INFINITY || now() < next)) return
    const at = now()
    seen = changes.count
    next = Number.POSITIVE_INFINITY
    const inside: UsedTarget[] = []
    for (const target of targets) {
      const until = target.outUntil(at)
      if (until > at) next = Math.min(next, until)
      else inside.push(target)
      if (target.grow(at) < 1) next = Math.min(next, at + slowStartStep)
    }
    const out = targets.length - inside.length
    overdrawn = out > 0 && (inside.length === 0 || out > maxShare * targets.length)
    usable = overdrawn ? targets : inside
    onLook?.(overdrawn)
  }

  return {
    pick(key, tried) {
      look()
      const left = tried?.length ? usable.filter((target) => !tried.includes(target)) : usable
      return left.length === 0 ? undefined : balance(left, key)
    },
    isOverdrawn() {
      look()
      return overdrawn
    },
  }
}
