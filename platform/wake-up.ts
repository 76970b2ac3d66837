/**
 * A loop's alarm clock: `wait` resolves at the next `wake`, after `ms`, or when `signal` aborts. A wake-up while nobody
 * waits is kept, so that none is lost between looking for work and going to sleep.
 */
export interface WakeUp {
  wake(): void
  wait(ms: number, signal: AbortSignal): Promise<void>
}

export const createWakeUp = (): WakeUp => {
  let pending = false
  let resume: (() => void) | undefined
  return {
    wake() {
      pending = true
      resume?.()
    },
    async wait(ms, signal) {
      if (!pending)
        await sleep(ms, signal, (wakeUp) => {
          resume = wakeUp
        })
      resume = undefined
      pending = false
    },
  }
}

/** Waits `ms`, or less when `signal` aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> => sleep(ms, signal, () => {})

const sleep = (ms: number, signal: AbortSignal, expose: (wakeUp: () => void) => void): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const finish = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', finish)
      resolve()
    }
    const timer = setTimeout(finish, ms)
    signal.addEventListener('abort', finish)
    expose(finish)
  })
