import type { Metrics } from '../../platform/metrics.ts'

/** Counts the memory of the bodies that are held whole, in bytes. */
export interface HeldBodies {
  /** Whether so many more may be held; if so, they are counted. */
  take(bytes: number): boolean
  give(bytes: number): void
}

export const createHeldBodies = ({ most, metrics }: { most: number; metrics: Metrics }): HeldBodies => {
  const gauge = metrics.gauge('surrogate_gateway_held_body_bytes', 'Memory of the request bodies that policies look at')
  const refused = metrics.counter(
    'surrogate_gateway_held_bodies_refused_total',
    'Requests refused because limits.policyBodies was used up',
  )
  let held = 0
  return {
    take(bytes) {
      if (held + bytes > most) {
        refused.inc()
        return false
      }
      held += bytes
      gauge.set(held)
      return true
    },
    give(bytes) {
      held -= bytes
      gauge.set(held)
    },
  }
}
