/** How many requests of an upstream may be repeated, so that failures do not multiply the load on what is left. */
export interface RetryBudget {
  /** A request of the upstream. `now` is in ms, as in `take`. */
  request(now: number): void
  /** Whether another request may be repeated now; if so, it counts. */
  take(now: number): boolean
}

/** ms */
const slotLength = 1_000
const slots = 10

/** So many in the window are always allowed, or an upstream with few requests could repeat none. */
const floor = 10

/** @param share of the requests of the last 10 s, from 0 to 1. */
export const createRetryBudget = (share: number): RetryBudget => {
  const requests = new Uint32Array(slots)
  const retries = new Uint32Array(slots)
  const total = { requests: 0, retries: 0 }
  let current = 0

  /** Returns where `now` is counted; what is older than the window is forgotten. */
  const slotOf = (now: number): number => {
    const latest = Math.floor(now / slotLength)
    const from = Math.max(current + 1, latest - slots + 1)
    for (let time = from; time <= latest; time++) {
      const slot = time % slots
      total.requests -= requests[slot]!
      total.retries -= retries[slot]!
      requests[slot] = 0
      retries[slot] = 0
    }
    current = Math.max(current, latest)
    return current % slots
  }

  return {
    request(now) {
      requests[slotOf(now)]!++
      total.requests++
    },
    take(now) {
      const slot = slotOf(now)
      if (total.retries >= Math.max(floor, Math.floor(total.requests * share))) return false
      retries[slot]!++
      total.retries++
      return true
    },
  }
}
