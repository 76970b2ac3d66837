import type { WorkerProcess } from './fork-worker.ts'

/** For a report to operators, in ms: a worker that does not answer in this time has no part in it. */
export const reportTimeoutMs = 1_500

/** What each of them answers; undefined of one that does not in time. */
export const askAll = <Answer>(workers: readonly WorkerProcess[], ask: (worker: WorkerProcess) => Promise<Answer>) =>
  Promise.all(
    workers.map(async (worker) => ({ worker: worker.number, answer: await ask(worker).catch(() => undefined) })),
  )
