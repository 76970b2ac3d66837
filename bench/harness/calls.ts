import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { poolCpuMicros } from './pool-cpu.ts'

/**
 * The child's side of `process.ts`: a child process offers functions to the benchmark over its IPC channel, so that
 * asking for its CPU time costs no request on the port that is measured.
 */
export type Handlers = Record<string, (argument: never) => unknown>

export type Call = { id: number; name: string; argument: unknown }
export type Answer = { id: number; result?: unknown; error?: string }

/** CPU microseconds this process has used since it started, all its threads together, user + system. */
export const ownCpuMicros = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** The same of its main thread alone, where JavaScript runs: no hashing, compiling or collecting in other threads. */
const mainCpuMicros = (): number => {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

/** Bytes after a full collection: what is really held. */
export const ownMemory = (): { rss: number; heapUsed: number } => {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  for (let times = 0; times < 3; times++) collect()
  const { rss, heapUsed } = process.memoryUsage()
  return { rss, heapUsed }
}

/**
 * Offers `handlers`, `cpu`, `mainCpu`, `poolCpu` and `memory`. When the parent disconnects or dies, runs the `stop`
 * handler and ends the process.
 */
export const answerCalls = (handlers: Handlers): void => {
  const all: Record<string, (argument: never) => unknown> = {
    cpu: ownCpuMicros,
    mainCpu: mainCpuMicros,
    poolCpu: poolCpuMicros,
    memory: ownMemory,
    ...handlers,
  }
  process.on('message', async ({ id, name, argument }: Call) => {
    const answer: Answer = { id }
    try {
      const handler = all[name]
      if (!handler) throw new Error(`this process offers no call "${name}"`)
      answer.result = await handler(argument as never)
    } catch (error) {
      answer.error = error instanceof Error ? (error.stack ?? error.message) : String(error)
    }
    process.send?.(answer)
  })
  process.once('disconnect', async () => {
    await handlers['stop']?.(undefined as never)
    process.exit()
  })
  // Ctrl-C reaches the whole process group: the parent decides who stops when.
  process.on('SIGINT', () => {})
}
