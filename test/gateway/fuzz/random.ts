/** A small generator of numbers that a seed repeats exactly (mulberry32). */
export interface Random {
  /** 0 ≤ n < `below`. */
  int(below: number): number
  chance(probability: number): boolean
  pick<Item>(items: readonly Item[]): Item
}

export const createRandom = (seed: number): Random => {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (below: number) => Math.floor(next() * below)
  return { int, chance: (probability) => next() < probability, pick: (items) => items[int(items.length)]! }
}
