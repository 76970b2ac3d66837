import type { Candidate } from './balancer.ts'

/**
 * Weighted rendezvous hashing: every candidate draws a lot for the key, and the best one wins. One that goes moves its
 * own keys only, and one that comes takes its share from all. Schindelhauer and Schomaker's logarithmic method.
 */
export const rendezvous = <One extends Candidate>(candidates: readonly One[], key: string): One => {
  const hashed = hash(key)
  let best = candidates[0]!
  let highest = Number.NEGATIVE_INFINITY
  for (const candidate of candidates) {
    const lot = (mixed(hashed ^ hashOf(candidate)) + 0.5) / 2 ** 32
    const score = -candidate.currentWeight / Math.log(lot)
    if (score > highest) {
      best = candidate
      highest = score
    }
  }
  return best
}

const hashes = new WeakMap<Candidate, number>()

const hashOf = (candidate: Candidate): number => {
  const known = hashes.get(candidate)
  if (known !== undefined) return known
  const hashed = hash(candidate.name)
  hashes.set(candidate, hashed)
  return hashed
}

/** FNV-1a, 32 bits, over code units. */
const hash = (text: string): number => {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  return mixed(value)
}

/** The finalizer of MurmurHash3: every bit changes half of the others. */
const mixed = (value: number): number => {
  let bits = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
