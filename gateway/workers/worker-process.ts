import { flushStdout } from '../../platform/line-writer.ts'
import type { Logger } from '../../platform/logger.ts'
import type { Handed } from './taken-connections.ts'
import { createWorker } from './worker.ts'

/** The process that `worker-pool.ts` forks. */

// A terminal and a service manager signal the whole group: only the primary process acts on it, and tells the workers.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

const end = async (code: number): Promise<never> => {
  await flushStdout()
  process.exit(code)
}

let logger: Logger | undefined
const fail = (error: unknown) => {
  logger?.fatal({ err: error }, 'an error nobody handled; this worker ends')
  if (!logger) process.stderr.write(`${(error as Error).stack}\n`)
  void end(1)
}
process.on('uncaughtException', fail)
process.on('unhandledRejection', fail)

const worker = createWorker({
  send: (message, written = () => {}) => void process.send!(message, undefined, undefined, written),
  end: () => void end(0),
  onLogger: (opened) => {
    logger = opened
  },
})
process.on('message', (message, handle) => (handle ? worker.take(message as Handed, handle) : worker.receive(message)))
// Nobody serves unsupervised: without a primary process there are no revocations, no limits and no reloads.
process.on('disconnect', () => process.exit(1))
