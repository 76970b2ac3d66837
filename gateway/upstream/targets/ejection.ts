import type { EjectionSettings } from '../../config/settings/targets.ts'

/** What requests say about a target: failures in a row take it out for a time, longer each time. */
export interface Ejection {
  /** Until when it is out, on the clock of `failed`. */
  readonly until: number
  /** How often it was taken out. */
  readonly count: number
  answered(): void
  /** Returns whether this failure takes it out. */
  failed(settings: EjectionSettings, now: number): boolean
}

const longestInARow = 10

export const createEjection = (): Ejection => {
  let failures = 0
  let inARow = 0
  let until = Number.NEGATIVE_INFINITY
  let count = 0
  return {
    get until() {
      return until
    },
    get count() {
      return count
    },
    answered() {
      failures = 0
    },
    failed({ consecutiveFailures, for: length }, now) {
      // While it is out, only requests of before fail, or those that are sent because nearly all are out.
      if (now < until || ++failures < consecutiveFailures) return false
      failures = 0
      // Each `for` that it was in takes one away.
      const forgiven = Math.floor((now - until) / length)
      inARow = Math.min(Math.max(inARow - forgiven, 0) + 1, longestInARow)
      until = now + length * inARow
      count++
      return true
    },
  }
}
