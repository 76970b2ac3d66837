import { setTimeout as delay } from 'node:timers/promises'
import { backOffMs } from '../../platform/back-off.ts'
import type { Logger } from '../../platform/logger.ts'
import { StartupError } from '../../platform/startup-error.ts'
import type { WorkerProcess } from './fork-worker.ts'

/** Keeps a number of workers running: whoever ends has its place taken. */
export interface WorkerPool {
  /** Resolves when all serve for the first time. Rejects when one cannot. */
  readonly started: Promise<void>
  /** No place is taken any more. */
  stop(): void
  /** Those that run, whether they serve or only begin to. */
  running(): readonly WorkerProcess[]
}

/** Between the end of a worker and the start of the next one in its place. */
const retry = { first: 100, longest: 30_000 }
/** A worker that served so long did not end because of how it started. In ms. */
const provenAfterMs = 30_000
/** At the start a worker may end so often before it serves. */
const mostAttempts = 3

export const createWorkerPool = (options: {
  size: number
  fork: (number: number) => WorkerProcess
  /** Makes a new worker serve; rejects when it cannot. */
  introduce: (worker: WorkerProcess) => Promise<void>
  onEnd: (worker: WorkerProcess) => void
  logger: Logger
}): WorkerPool => {
  const { size, fork, introduce, onEnd, logger } = options
  const running = new Set<WorkerProcess>()
  const stopping = new AbortController()

  const run = async (number: number, first: PromiseWithResolvers<void>) => {
    let served = false
    /** From the beginning of one to its end. */
    const once = async (): Promise<{ how: string; pid?: number | undefined; problem?: Error }> => {
      let worker: WorkerProcess
      try {
        worker = fork(number)
      } catch (error) {
        return { how: 'it could not begin', problem: error as Error }
      }
      running.add(worker)
      let problem: Error | undefined
      try {
        await introduce(worker)
        served = true
        first.resolve()
      } catch (error) {
        problem = error as Error
        worker.kill()
      }
      const how = await worker.ended
      running.delete(worker)
      onEnd(worker)
      return { how, pid: worker.pid, ...(problem && { problem }) }
    }
    for (let failures = 0; !stopping.signal.aborted; ) {
      const begunAt = performance.now()
      const { how, pid, problem } = await once()
      if (stopping.signal.aborted) return
      failures = performance.now() - begunAt > provenAfterMs ? 1 : failures + 1
      if (!served && problem instanceof StartupError) return first.reject(problem)
      if (!served && failures >= mostAttempts) return first.reject(crashLoop(how, problem))
      const told = { worker: number, workerPid: pid, how, ...(problem && { problem: problem.message }) }
      logger.error(told, 'a worker ended; another one takes its place')
      await delay(backOffMs(failures, retry), undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const firsts = Array.from({ length: size }, (_, index) => {
    const first = Promise.withResolvers<void>()
    void run(index + 1, first)
    return first.promise
  })
  const started = Promise.all(firsts).then(() => {})
  started.catch(() => {})
  return { started, stop: () => stopping.abort(), running: () => [...running] }
}

const crashLoop = (how: string, cause: Error | undefined) =>
  new StartupError(`The gateway's workers end as soon as they start (${how}).`, {
    hint: 'What they print says why; with workers: 1 the same may be seen in one process.',
    cause,
  })
