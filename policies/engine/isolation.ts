import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { moduleUrl } from '../../platform/module-url.ts'
import type { InputReads } from './input-reads.ts'
import { PolicyBusy, PolicyError } from './policy-error.ts'

/**
 * A compiled policy in threads of its own, for rules whose time is not known to be short: an evaluation that misses its deadline is
 * ended with its thread, which nothing else can do to WebAssembly, and another thread takes its place.
 */
export interface Isolation {
  /** As `PolicySet.evaluate`. Rejects with `PolicyError` when it failed or missed its deadline, with `PolicyBusy` when no thread came free. */
  evaluate(entrypoint: string, input: unknown): Promise<unknown>
  /** Lets what was asked come to its end, then stops the threads. */
  close(): Promise<void>
}

export interface IsolationOptions {
  /** Threads. Default 2: one can always serve the others while rules that run away keep one busy. */
  workers?: number
  /**
   * Of one evaluation: processor time of its thread, so that a busy or throttled machine ends nothing that would have been quick; by the
   * clock four times that, and six times for waiting for a thread. (Where Node cannot tell, before 24.6, the clock alone counts.) ms. Default 50.
   */
  deadline?: number
  /** Evaluations waiting; more are refused. Default 1 000. */
  queue?: number
  /** Evaluations handed to a thread at once, which then share one deadline and one fate. Default 1; more is cheaper. */
  batch?: number
  /** How far the threads step back where others need the processor, 0 to 19 (Linux only). Default 5: about a third of a share. */
  nice?: number
}

/** What a thread is given to begin with. Shared memory, so that starting another one costs this thread nothing, however large the documents. */
export interface WorkerStart {
  port: MessagePort
  wasm: SharedArrayBuffer
  /** The documents as JSON. */
  data: SharedArrayBuffer
  reads: Readonly<Record<string, InputReads>> | undefined
  nice: number
}

export type ToWorker = { entrypoint: string; input: string | undefined }[]
/** `answers` in the order of what was asked; `value` is JSON. `cpu`: what the thread has used so far, in µs. */
export type FromWorker =
  | { ready: true; cpu: number }
  | { failed: string }
  | { print: string }
  | { answers: ({ value: string | undefined } | { error: string })[]; cpu: number }

interface Task {
  entrypoint: string
  input: string | undefined
  /** `performance.now()` after which it is not begun any more. */
  giveUp: number
  resolve: (value: unknown) => void
  reject: (error: PolicyError) => void
}

interface Thread {
  worker: Worker
  port: MessagePort
  running: Task[] | undefined
  /** `performance.now()` at which that began. */
  begun: number
  /** Processor time used before that, in µs. */
  cpu: number
  deadline: NodeJS.Timeout | undefined
}

/** After a missed deadline an entrypoint may not take the last free thread, and pauses for as long as it ran. Milliseconds. */
const suspectFor = 10_000
const slowestRestart = 5_000
/** How many deadlines may pass by the clock. */
const patience = 4
/** The same for whoever waits for a thread: longer than one takes to be ended. */
const waitingPatience = 6
/** A thread that takes longer to be ready than this is not going to be. Milliseconds. */
const startWithin = 30_000

/** Resolves when every thread is ready; rejects with `PolicyError` when the policy cannot be started. */
export const startIsolation = async (
  options: IsolationOptions & {
    wasm: Uint8Array
    data?: unknown
    /** Instead of `data`: the JSON of it. */
    documents?: Uint8Array
    reads?: Readonly<Record<string, InputReads>> | undefined
    print?: (line: string) => void
    /** Called for each evaluation that missed its deadline. */
    onRunaway?: (entrypoint: string) => void
  },
): Promise<Isolation> => {
  const { workers = 2, deadline = 50, queue = 1_000, batch = 1, nice = 5, print, onRunaway } = options
  const wasm = shared(options.wasm)
  const data = shared(options.documents ?? new TextEncoder().encode(JSON.stringify(options.data ?? {})))

  const idle: Thread[] = []
  const threads = new Set<Thread>()
  const waiting: Task[] = []
  /** By entrypoint: when its next evaluation may begin, and until when it is watched. */
  const suspects = new Map<string, { notBefore: number; until: number }>()
  let closed = false
  let failedStarts = 0
  let timer: NodeJS.Timeout | undefined
  let drained: (() => void) | undefined

  const start = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const { port1: port, port2 } = new MessageChannel()
      const started: WorkerStart = { port: port2, wasm, data, reads: options.reads, nice }
      const worker = new Worker(moduleUrl('./isolation-worker', import.meta.url), {
        workerData: started,
        transferList: [port2],
        // Rules have no business with the environment, nor with how this process was started.
        env: {},
        execArgv: [],
        name: 'policy',
      })
      const thread: Thread = { worker, port, running: undefined, begun: 0, cpu: 0, deadline: undefined }
      threads.add(thread)
      const stop = (reason: string): void => {
        clearTimeout(late)
        if (!threads.has(thread)) return
        suspect(thread)
        leave(thread, new PolicyError(`the policy's thread stopped: ${reason}`))
        reject(new PolicyError(reason))
        restart()
      }
      const late = setTimeout(stop, startWithin, 'it did not start in time')
      const begin = (cpu: number): void => {
        clearTimeout(late)
        // From now on a thread that waits for work keeps no process alive.
        worker.unref()
        port.unref()
        failedStarts = 0
        thread.cpu = cpu
        idle.push(thread)
        resolve()
        dispatch()
      }
      const receive = (message: FromWorker): void => {
        if ('failed' in message) stop(message.failed)
        else if ('ready' in message) begin(message.cpu)
        else take(thread, message)
      }
      port.on('message', receive)
      worker.on('error', (error) => stop(error.message))
      worker.on('exit', () => {
        // Its last words may come after it.
        receiveAll(port, receive)
        stop('it ended')
      })
    })

  /** At once after an evaluation ran away; less and less often when threads do not even start. */
  const restart = (): void => {
    if (closed) return
    const pause = failedStarts === 0 ? 0 : Math.min(slowestRestart, 50 * 2 ** failedStarts)
    failedStarts++
    setTimeout(() => closed || start().catch(() => {}), pause).unref()
  }

  const suspect = ({ running = [] }: Thread): void => {
    const now = performance.now()
    for (const { entrypoint } of running) {
      suspects.set(entrypoint, { notBefore: now + deadline, until: now + suspectFor })
    }
  }

  const leave = (thread: Thread, error: PolicyError): void => {
    threads.delete(thread)
    clearTimeout(thread.deadline)
    const at = idle.indexOf(thread)
    if (at !== -1) idle.splice(at, 1)
    thread.port.close()
    void thread.worker.terminate()
    for (const task of thread.running ?? []) task.reject(error)
    thread.running = undefined
  }

  const take = (thread: Thread, message: FromWorker): void => {
    if ('print' in message) print?.(message.print)
    if (!('answers' in message) || !thread.running) return
    const tasks = thread.running
    clearTimeout(thread.deadline)
    thread.running = undefined
    thread.cpu = message.cpu
    idle.push(thread)
    for (const [index, task] of tasks.entries()) settle(task, message.answers[index]!)
    dispatch()
  }

  const onDeadline = async (thread: Thread): Promise<void> => {
    // The answer may lie there already, when it was this thread that was late.
    receiveAll(thread.port, (message) => take(thread, message))
    const tasks = thread.running
    if (!tasks) return
    const used = (await cpuOf(thread.worker, deadline)) - thread.cpu
    if (thread.running !== tasks) return
    const left = deadline - used / 1000
    const late = performance.now() - thread.begun > patience * deadline
    if (left > 0 && !late) thread.deadline = setTimeout(onDeadline, Math.max(1, left), thread)
    else endRunaway(thread, tasks)
  }

  const endRunaway = (thread: Thread, tasks: readonly Task[]): void => {
    for (const { entrypoint } of tasks) onRunaway?.(entrypoint)
    suspect(thread)
    leave(thread, new PolicyError(`the policy gave no answer within ${deadline} ms`))
    restart()
    dispatch()
  }

  const mayBegin = ({ entrypoint }: Task, now: number): boolean => {
    const suspect = suspects.get(entrypoint)
    if (!suspect) return true
    if (now > suspect.until) suspects.delete(entrypoint)
    return now >= suspect.notBefore && (idle.length > 1 || workers === 1)
  }

  const nextBatch = (now: number): Task[] => {
    const first = waiting.findIndex((task) => mayBegin(task, now))
    if (first === -1) return []
    // With a batch of more than one, suspects go alone: what they are with would share their end.
    const alone = suspects.has(waiting[first]!.entrypoint)
    let end = first + 1
    while (!alone && end - first < batch && end < waiting.length && !suspects.has(waiting[end]!.entrypoint)) end++
    return waiting.splice(first, end - first)
  }

  const dispatch = (): void => {
    const now = performance.now()
    // In the order of their limits, since all wait equally long.
    while (waiting.length > 0 && waiting[0]!.giveUp < now) waiting.shift()!.reject(busy())
    while (idle.length > 0 && waiting.length > 0) {
      const tasks = nextBatch(now)
      if (tasks.length === 0) break
      const thread = idle.pop()!
      thread.running = tasks
      thread.begun = now
      thread.deadline = setTimeout(onDeadline, deadline, thread)
      const message: ToWorker = tasks.map(({ entrypoint, input }) => ({ entrypoint, input }))
      thread.port.postMessage(message)
    }
    if (waiting.length === 0) {
      if (drained && idle.length === threads.size) drained()
    } else if (!timer) {
      timer = setTimeout(
        () => {
          timer = undefined
          dispatch()
        },
        Math.min(deadline, 10),
      )
    }
  }

  const busy = () => new PolicyBusy('no thread came free for the policy in time')

  const close = async (): Promise<void> => {
    if (closed) return
    closed = true
    if (waiting.length > 0 || idle.length < threads.size) {
      await new Promise<void>((resolve) => {
        drained = resolve
        setTimeout(resolve, 2 * patience * deadline)
      })
    }
    clearTimeout(timer)
    for (const task of waiting.splice(0)) task.reject(new PolicyBusy('the policies were replaced'))
    await Promise.all(
      [...threads].map((thread) => {
        leave(thread, new PolicyError('the policies were replaced'))
        return thread.worker.terminate()
      }),
    )
  }

  try {
    await Promise.all(Array.from({ length: workers }, start))
  } catch (error) {
    await close()
    throw error
  }
  return {
    evaluate: (entrypoint, input) =>
      new Promise((resolve, reject) => {
        if (closed || waiting.length >= queue) return reject(busy())
        const text = JSON.stringify(input)
        waiting.push({
          entrypoint,
          input: text,
          giveUp: performance.now() + waitingPatience * deadline,
          resolve,
          reject,
        })
        dispatch()
      }),
    close,
  }
}

const receiveAll = (port: MessagePort, receive: (message: FromWorker) => void): void => {
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
    receive(next.message as FromWorker)
}

/** In µs. Infinite where Node cannot tell; 0 when the thread does not get to answer: then it does not get to run either. */
const cpuOf = async (worker: Worker, atMost: number): Promise<number> => {
  if (typeof worker.cpuUsage !== 'function') return Number.POSITIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, atMost, undefined)
  })
  try {
    const usage = await Promise.race([worker.cpuUsage(), late])
    return usage ? usage.user + usage.system : 0
  } catch {
    return Number.POSITIVE_INFINITY
  } finally {
    clearTimeout(timer)
  }
}

const settle = (task: Task, answer: { value: string | undefined } | { error: string }): void => {
  if ('error' in answer) task.reject(new PolicyError(answer.error))
  else task.resolve(answer.value === undefined ? undefined : JSON.parse(answer.value))
}

const shared = (bytes: Uint8Array): SharedArrayBuffer => {
  const copy = new SharedArrayBuffer(bytes.length)
  new Uint8Array(copy).set(bytes)
  return copy
}
