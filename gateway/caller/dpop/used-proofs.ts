import type { Metrics } from '../../../platform/metrics.ts'

/** A proof that is being used. */
export interface UsedProof {
  /** The same for every copy of it, also with another spelling of its signature. */
  id: string
  /** ms since the epoch: by then it is too old for everybody. */
  until: number
}

/** `full`: it cannot be remembered, for lack of room or because it comes too late, so it must not be accepted. */
export type ProofUse = 'first' | 'again' | 'full'

/** Proofs that were used, each until it is too old (RFC 9449 §11.1). */
export interface UsedProofs {
  /** `now` in ms. */
  use(proof: UsedProof, now: number): ProofUse
  readonly size: number
}

/** Proofs are forgotten together, by the end of the slice in which they are too old. In ms. */
const sliceMs = 10_000

/** @param most some 80 bytes each. */
export const createUsedProofs = ({ most = 500_000 } = {}): UsedProofs => {
  /** By the end of the slice; they differ by two minutes at most, so there are few. */
  const slices = new Map<number, Set<string>>()
  let size = 0
  return {
    use({ id, until }, now) {
      for (const [end, ids] of slices) {
        if (end <= now) {
          slices.delete(end)
          size -= ids.size
        } else if (ids.has(id)) return 'again'
      }
      if (size >= most || until <= now) return 'full'
      const end = Math.ceil(until / sliceMs) * sliceMs
      const ids = slices.get(end) ?? new Set()
      slices.set(end, ids.add(id))
      size++
      return 'first'
    },
    get size() {
      return size
    },
  }
}

export const countedUsedProofs = (metrics: Metrics): UsedProofs & { close(): void } => {
  const proofs = createUsedProofs()
  const remembered = metrics.gauge(
    'surrogate_gateway_dpop_proofs',
    'DPoP proofs that are remembered, not to be replayed',
  )
  const refused = metrics.counter(
    'surrogate_gateway_dpop_proofs_refused_total',
    'Good DPoP proofs that were refused: used before (again), or not to be remembered for lack of room (full)',
    ['reason'],
  )
  const stop = metrics.onCollect(() => remembered.set(proofs.size))
  return {
    use(proof, now) {
      const use = proofs.use(proof, now)
      if (use !== 'first') refused.inc({ reason: use })
      return use
    },
    get size() {
      return proofs.size
    },
    close() {
      stop()
      remembered.set(0)
    },
  }
}
