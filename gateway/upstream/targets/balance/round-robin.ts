import type { Balancer, Candidate } from './balancer.ts'

/**
 * Smooth weighted round robin, as nginx does it: with weights 5, 1, 1 the turns are a a b a c a a, not a a a a a b c.
 */
export const createRoundRobin = (): Balancer => {
  const credits = new WeakMap<Candidate, number>()
  return (candidates) => {
    let total = 0
    let best = candidates[0]!
    let most = Number.NEGATIVE_INFINITY
    for (const candidate of candidates) {
      total += candidate.currentWeight
      const credit = (credits.get(candidate) ?? 0) + candidate.currentWeight
      credits.set(candidate, credit)
      if (credit > most) {
        best = candidate
        most = credit
      }
    }
    credits.set(best, most - total)
    return best
  }
}
