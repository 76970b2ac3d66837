/** Random numbers that a seed repeats. */
export interface Random {
  /** In [0, 1). */
  next(): number
  /** In [from, to). */
  between(from: number, to: number): number
  pick<Item>(items: readonly Item[]): Item
  /** Another sequence of its own, for somebody who draws at unpredictable moments. */
  fork(): Random
}

/** mulberry32: 32 bits of state, enough for choosing. */
export const createRandom = (seed: number): Random => {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    next,
    between: (from, to) => from + next() * (to - from),
    pick: (items) => items[Math.floor(next() * items.length)]!,
    fork: () => createRandom(Math.floor(next() * 4_294_967_296)),
  }
}
