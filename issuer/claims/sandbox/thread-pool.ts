import { backOffMs } from '../../../platform/back-off.ts'
import { createFairQueue } from './fair-queue.ts'
import type { CallMessage, CallResult, ScriptOutcome } from './messages.ts'
import type { SandboxWorker, WorkerOptions } from './worker.ts'

/** Threads, and the calls that wait for one. */
export interface ThreadPool<Call extends CallMessage> {
  /** Starts the threads, unless they run; a call does so too. */
  start(): Promise<void>
  add(task: Task<Call>): void
  /** Those of one owner that wait, which do not wait here any more. */
  takeAll(owner: string): Task<Call>[]
  /** False when it does not wait here. */
  remove(task: Task<Call>): boolean
  close(): Promise<void>
}

export interface Task<Call extends CallMessage> {
  call: Call
  owner: string
  /** Of its texts, in characters. */
  size: number
  /** Once only. */
  finish(result: CallResult): void
}

export interface ThreadPoolOptions<Call extends CallMessage> {
  /** Threads that work. */
  wanted: number
  /** Together with those whose calls wait for answers. */
  most: number
  /** Calls waiting, at most, and of one owner. */
  queue: number
  queueOfOwner: number
  /** Calls after which a thread gets a successor. */
  callsPerThread: number
  /** Absent: the calls of an owner run beside each other. Else one at a time, this long after one another, in ms. */
  cooldownAfter?: (task: Task<Call>, result: CallResult) => number
  startWorker(hooks: Pick<WorkerOptions, 'onAsking' | 'onEnd'>): Promise<SandboxWorker>
  onThreadEnd: ((reason: string) => void) | undefined
}

/** Of the texts that wait, in characters. */
const maxWaitingSize = 64 * 1024 * 1024
const slowestRestart = 5_000

const stopped = (message: string): ScriptOutcome => ({ failed: 'stopped', message })

export const createThreadPool = <Call extends CallMessage>(options: ThreadPoolOptions<Call>): ThreadPool<Call> => {
  const { wanted, most, callsPerThread, cooldownAfter, onThreadEnd } = options
  interface Thread {
    worker: SandboxWorker
    calls: number
  }
  const queue = createFairQueue<Task<Call>>({
    items: options.queue,
    itemsOfOwner: options.queueOfOwner,
    size: maxWaitingSize,
  })
  const threads = new Set<Thread>()
  // The one that was busy the longest ago comes first: it has its next engine ready.
  const idle: Thread[] = []
  let failedStarts = 0
  let filling: Promise<void> | undefined
  let closed = false

  const dispatch = () => {
    while (queue.isReady) {
      const thread = idle.shift()
      if (thread) void run(thread, queue.take()!)
      else if (failedStarts === 0) return void fill().catch(() => {})
      else return
    }
  }

  const run = async (thread: Thread, task: Task<Call>) => {
    if (cooldownAfter) queue.pause(task.owner)
    const result = await thread.worker.run(task.call)
    task.finish(result)
    if (cooldownAfter) rest(task, cooldownAfter(task, result))
    if (!threads.has(thread)) return
    if (++thread.calls < callsPerThread) idle.push(thread)
    else retire(thread)
    dispatch()
  }

  const rest = ({ owner }: Task<Call>, milliseconds: number) => {
    if (milliseconds === 0) return queue.resume(owner)
    const goOn = () => {
      queue.resume(owner)
      dispatch()
    }
    setTimeout(goOn, milliseconds).unref()
  }

  /** Starts the threads that are missing. */
  const fill = (): Promise<void> => {
    const working = [...threads].filter(({ worker }) => !worker.isAsking()).length
    const missing = Math.max(0, Math.min(wanted - working, most - threads.size))
    filling ??= Promise.all(Array.from({ length: missing }, startThread))
      .then(() => {})
      .finally(() => {
        filling = undefined
      })
    return filling
  }

  const startThread = async (): Promise<void> => {
    if (closed) return
    const onEnd = (reason: string | undefined) => {
      leave(thread)
      if (reason !== undefined) onThreadEnd?.(reason)
      replace()
    }
    const thread: Thread = { worker: await options.startWorker({ onAsking: dispatch, onEnd }), calls: 0 }
    threads.add(thread)
    if (closed) await thread.worker.end(stopped('The issuer stops.'))
    await thread.worker.ready
    if (!threads.has(thread)) return
    failedStarts = 0
    idle.push(thread)
    dispatch()
  }

  const leave = (thread: Thread) => {
    threads.delete(thread)
    const at = idle.indexOf(thread)
    if (at !== -1) idle.splice(at, 1)
  }

  /** At once after a call had to be ended; less and less often when threads do not even start. */
  const replace = () => {
    const pause = backOffMs(failedStarts++, { longest: slowestRestart })
    setTimeout(() => closed || fill().catch(() => {}), pause).unref()
  }

  /** Its successor first: there is never one less. */
  const retire = (thread: Thread) => {
    threads.delete(thread)
    const end = () => void thread.worker.end(stopped('Its thread ended.'))
    fill().then(end, end)
  }

  const refuse = (task: Task<Call>) => task.finish(refusal)

  return {
    start: fill,
    add(task) {
      if (closed || !queue.add(task)) refuse(task)
      else dispatch()
    },
    takeAll: queue.takeAll,
    remove: queue.remove,
    async close() {
      closed = true
      for (const task of queue.drain()) refuse(task)
      await Promise.all([...threads].map(({ worker }) => worker.end(stopped('The issuer stops.'))))
    },
  }
}

/** Of a call that was not begun. */
export const refusal: CallResult = {
  outcome: { failed: 'busy', message: 'Too many scripts wait to be run.' },
  logs: [],
  cpuMs: 0,
}
