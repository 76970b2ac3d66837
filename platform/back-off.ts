export interface BackOffBounds {
  /** After the first failure, in ms. Default 100. */
  first?: number
  /** In ms. Default 5 000. */
  longest?: number
  /**
   * Share of the delay by which it is longer or shorter at random, so that those who failed together do not come back
   * together. Default 0.
   */
  jitter?: number
}

/** How long to wait after so many failures in a row, in ms: doubling each time. Nothing after none. */
export const backOffMs = (
  failures: number,
  { first = 100, longest = 5_000, jitter = 0 }: BackOffBounds = {},
): number =>
  failures <= 0 ? 0 : Math.min(first * 2 ** (failures - 1), longest) * (1 + jitter * (2 * Math.random() - 1))

/** The same for a loop that counts its failures here; `reset` after a success. */
export const createBackOff = (bounds?: BackOffBounds) => {
  let failures = 0
  return {
    next: (): number => backOffMs(++failures, bounds),
    reset(): void {
      failures = 0
    },
  }
}
