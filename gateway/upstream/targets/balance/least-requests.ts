import type { Candidate } from './balancer.ts'

/**
 * The less busy of two that are taken at random by weight. Not the least busy of all: several gateways that see the
 * same would all send there, and a target that fails at once is the least busy one.
 */
export const leastRequests = <One extends Candidate>(candidates: readonly One[]): One => {
  if (candidates.length === 1) return candidates[0]!
  let total = 0
  for (const { currentWeight } of candidates) total += currentWeight
  const first = atPoint(candidates, Math.random() * total, undefined)
  const second = atPoint(candidates, Math.random() * (total - first.currentWeight), first)
  return second.running / second.currentWeight < first.running / first.currentWeight ? second : first
}

/** The one at a point of the line on which all but `without` lie, each as long as its weight. */
const atPoint = <One extends Candidate>(candidates: readonly One[], point: number, without: One | undefined): One => {
  let left = point
  let last: One | undefined
  for (const candidate of candidates) {
    if (candidate === without) continue
    last = candidate
    left -= candidate.currentWeight
    if (left < 0) return candidate
  }
  // Sums of fractions may be a little short.
  return last!
}
