import type { Logger } from './logger.ts'

/**
 * Start and stop as mirrors: whatever opens a resource registers its release here, and `stop` releases in reverse
 * order.
 */
export interface Lifecycle {
  /** `release` gets at most `timeoutMs` (default 15 000), after which the next one is released all the same. */
  onStop(name: string, release: () => Promise<unknown> | unknown, timeoutMs?: number): void
  /**
   * Runs every release once, last registered first; a release that fails is logged and does not keep the others from
   * running.
   */
  stop(): Promise<void>
  readonly stopping: boolean
}

export const createLifecycle = ({ logger }: { logger: Logger }): Lifecycle => {
  const releases: { name: string; release: () => Promise<unknown> | unknown; timeoutMs: number }[] = []
  let stopped: Promise<void> | undefined

  const releaseAll = async () => {
    for (const { name, release, timeoutMs } of releases.reverse()) {
      let timer: NodeJS.Timeout | undefined
      const deadline = new Promise<'late'>((resolve) => {
        timer = setTimeout(resolve, timeoutMs, 'late')
      })
      try {
        const outcome = await Promise.race([Promise.resolve().then(release), deadline])
        if (outcome === 'late') logger.error({ part: name, timeoutMs }, 'a part did not stop in time')
      } catch (error) {
        logger.error({ err: error, part: name }, 'a part failed to stop')
      } finally {
        clearTimeout(timer)
      }
    }
  }

  return {
    onStop(name, release, timeoutMs = 15_000) {
      releases.push({ name, release, timeoutMs })
    },
    stop() {
      stopped ??= releaseAll()
      return stopped
    },
    get stopping() {
      return stopped !== undefined
    },
  }
}
