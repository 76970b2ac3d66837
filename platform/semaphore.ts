/** Gives a permit back before the work that has it ends. What follows of that work runs without one. */
export type Release = () => void

/** Runs `work` when there is room for it, first come first served. */
export type WithPermit = <Result>(work: (release: Release) => Promise<Result>) => Promise<Result>

/** The same where each key has room of its own. */
export type WithPermitOf = <Result>(key: string, work: (release: Release) => Promise<Result>) => Promise<Result>

interface SemaphoreOptions {
  permits: number
  maxWaiting?: number
  full?: () => Error
}

/**
 * For work that takes more than its share of something, such as threads or connections: at most `permits` of it runs at
 * a time.
 * @param maxWaiting beyond so many that wait, `full` is thrown instead. Default: any number waits.
 */
export const createSemaphore = (options: SemaphoreOptions): WithPermit => {
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

  const handOver = () => {
    const next = waiting.shift()
    if (next) next()
    else taken--
  }

  return async (work) => {
    await acquire()
    let isHeld = true
    const release = () => {
      if (isHeld) handOver()
      isHeld = false
    }
    try {
      return await work(release)
    } finally {
      release()
    }
  }
}

/** A semaphore for each key, which is there while there is work for it. */
export const createSemaphores = (options: SemaphoreOptions): WithPermitOf => {
  const inUse = new Map<string, { withPermit: WithPermit; users: number }>()
  return async (key, work) => {
    const semaphore = inUse.get(key) ?? { withPermit: createSemaphore(options), users: 0 }
    inUse.set(key, semaphore)
    semaphore.users++
    try {
      return await semaphore.withPermit(work)
    } finally {
      semaphore.users--
      if (semaphore.users === 0) inUse.delete(key)
    }
  }
}
