/** Runs `work` when there is room for it, first come first served. */
export type WithPermit = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * For work that takes more than its share of something, such as threads or connections: at most `permits` of it runs at
 * a time.
 * @param maxWaiting beyond so many that wait, `full` is thrown instead. Default: any number waits.
 */
export const createSemaphore = (options: { permits: number; maxWaiting?: number; full?: () => Error }): WithPermit => {
  const { permits, maxWaiting = Number.POSITIVE_INFINITY, full = () => new Error('too many are waiting') } = options
  let taken = 0
  const waiting: (() => void)[] = []

  const acquire = async () => {
    if (taken < permits) {
      taken++
      return
    }
    if (waiting.length >= maxWaiting) throw full()
    // Whoever releases hands over the permit, so `taken` stays.
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  const release = () => {
    const next = waiting.shift()
    if (next) next()
    else taken--
  }

  return async (work) => {
    await acquire()
    try {
      return await work()
    } finally {
      release()
    }
  }
}
