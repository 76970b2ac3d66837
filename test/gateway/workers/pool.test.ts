import { expect, onTestFinished, test } from 'vitest'
import { forkWorker } from '../../../gateway/workers/fork-worker.ts'
import { createWorkerPool } from '../../../gateway/workers/worker-pool.ts'
import { capturedLogger } from '../../support/captured-logger.ts'

const forkReal = (number: number) =>
  forkWorker({ number, handlersOf: () => ({}) as never, stdout: { write: () => true } })

const start = (refusals: number) => {
  const { logger, lines } = capturedLogger()
  let left = refusals
  const pool = createWorkerPool({
    ...{ size: 1, logger, onEnd() {} },
    fork(number) {
      // What the system says when there is no memory for a process.
      if (left-- > 0) throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' })
      return forkReal(number)
    },
    introduce: (worker) => worker.call('ping', undefined),
  })
  onTestFinished(async () => {
    pool.stop()
    for (const worker of pool.running()) worker.kill()
    await Promise.all(pool.running().map(({ closed }) => closed))
  })
  return { pool, lines }
}

test('a worker for which there is no process is tried again, and said', async () => {
  const { pool, lines } = start(2)
  await pool.started
  expect(pool.running()).toHaveLength(1)
  expect(JSON.stringify(lines)).toContain('spawn ENOMEM')
})

test('a gateway that gets no process at its start says so', async () => {
  await expect(start(100).pool.started).rejects.toThrow("The gateway's workers end as soon as they start")
})
