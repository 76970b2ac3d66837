/** Where a stream of all gateways is: from when on it has to be asked for anew, and what of that is known. */
export interface StreamPosition {
  /** False for a decision that has come before. */
  take(decision: { gateway: string; decision_id: string; timestamp: string }): boolean
  /** Of each gateway at the start and at each change. */
  gateway(name: string, answers: boolean): void
  /** It is open, by the clock of the server: from the first time on nothing may be missing. */
  begin(at: Date): void
  /** RFC 3339. Undefined: it is to begin now. */
  since(): string | undefined
}

/** By how much the clocks of gateways may differ, and one may be behind another. In ms. */
const overlapMs = 10_000
/** Ids of decisions. */
const mostKnown = 20_000

export const createStreamPosition = (since: string | undefined): StreamPosition => {
  const known = new Set<string>()
  let newest = since === undefined ? undefined : Date.parse(since)
  /** When each of those that do not answer was last heard of. */
  const away = new Map<string, number>()
  let hasBegun = since !== undefined
  /** What is earlier was not asked for. */
  let floor = newest ?? Number.NEGATIVE_INFINITY
  let hasTaken = false
  let opened = { at: Number.POSITIVE_INFINITY, clock: 0 }
  /** By the server: a gateway whose clock is ahead must not hide what others decide. */
  const present = () => opened.at + performance.now() - opened.clock

  return {
    take({ gateway, decision_id: id, timestamp }) {
      const key = `${gateway} ${id}`
      if (known.has(key)) return false
      known.add(key)
      // The oldest is the first.
      for (const oldest of known) {
        if (known.size <= mostKnown) break
        known.delete(oldest)
      }
      newest = Math.max(newest ?? 0, Math.min(Date.parse(timestamp), present()))
      hasTaken = true
      return true
    },
    gateway(name, answers) {
      if (answers) away.delete(name)
      else if (!away.has(name) && newest !== undefined) away.set(name, newest)
    },
    begin(at) {
      opened = { at: at.getTime(), clock: performance.now() }
      if (hasBegun) return
      hasBegun = true
      newest = Math.max(newest ?? 0, at.getTime())
      floor = newest
    },
    since() {
      if (newest === undefined) return undefined
      const first = Math.min(newest, ...away.values())
      return new Date(hasTaken ? Math.max(first - overlapMs, floor) : Math.max(first, floor)).toISOString()
    },
  }
}
