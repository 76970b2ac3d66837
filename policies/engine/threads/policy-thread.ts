import { MessageChannel, type MessagePort, receiveMessageOnPort, type Worker } from 'node:worker_threads'
import { moduleUrl } from '../../../platform/module-url.ts'
import { startWorkerThread } from '../../../platform/worker-thread.ts'
import { PolicyError, type PolicyErrorCode } from '../base/policy-error.ts'
import type { EngineLimits, PreparedEngine } from '../instance/runner.ts'

/**
 * One thread of `isolation.ts`: a policy that is asked one batch after another, and ended when it misses a deadline.
 */
export interface PolicyThread {
  /** One batch at a time. */
  ask(questions: readonly Question[]): void
  /** Ends it, without `onEnd`. */
  end(): Promise<unknown>
}

export interface Question {
  /** Its number in the module. */
  entrypoint: number
  /** JSON; undefined for none. */
  input: string | undefined
  /** What it may spend. */
  units: number
}

/**
 * `text` as `resultOf` reads it. `repeatable`: the same input would be answered the same at any time. `usedUp`: so many
 * units were not enough.
 */
export type Answer =
  | { text: string; repeatable: boolean }
  | { usedUp: number }
  | { error: string; code: PolicyErrorCode }

/**
 * What a thread is given to begin with. Image and module are shared: starting another thread costs no parsing, however
 * large the documents.
 */
export interface ThreadStart {
  port: MessagePort
  prepared: PreparedEngine
  /** Of input and result. */
  limits: Partial<EngineLimits>
  nice: number
}

/** `answers` in the order of what was asked. `cpu`: what the thread has used so far, in µs. */
export type FromThread =
  | { ready: true; cpu: number }
  | { failed: string }
  | { print: string }
  | { answers: Answer[]; cpu: number }

export const missed = (deadline: number) =>
  new PolicyError(`the policy gave no answer within ${deadline} ms`, { code: 'deadline_missed' })

/** How many deadlines may pass by the clock. */
export const patience = 2
/** A thread that takes longer to be ready than this is not going to be. Milliseconds. */
const startWithin = 30_000

export const startThread = ({
  prepared,
  limits,
  nice,
  deadline,
  print,
  onReady,
  onAnswers,
  onEnd,
}: {
  prepared: PreparedEngine
  limits: Partial<EngineLimits>
  /** How far it steps back, 0 to 19. */
  nice: number
  /** Of a batch, in ms: processor time of the thread; by the clock `patience` times that. */
  deadline: number
  print?: ((line: string) => void) | undefined
  onReady: () => void
  onAnswers: (answers: readonly Answer[]) => void
  /** Once, when it ended by itself or was ended for a missed deadline (`ranAway`). */
  onEnd: (error: PolicyError, ranAway: boolean) => void
}): PolicyThread => {
  const { port1: port, port2 } = new MessageChannel()
  const { module, image } = prepared
  // Without `sharedMemory`, which is for one runner.
  const started: ThreadStart = { port: port2, prepared: { module, image }, limits, nice }
  const worker = startWorkerThread(moduleUrl('./isolation-worker', import.meta.url), {
    workerData: started,
    transferList: [port2],
    // Rules have no business with the environment.
    env: {},
    name: 'policy',
  })
  let ended = false
  /**
   * `performance.now()` at which the present batch began, and the processor time used before that, in µs.
   */
  let begun: number | undefined
  let cpu = 0
  let timer: NodeJS.Timeout | undefined = setTimeout(() => stop('it did not start in time'), startWithin)

  const end = (): Promise<unknown> => {
    ended = true
    clearTimeout(timer)
    port.close()
    return worker.terminate()
  }
  const stop = (reason: string): void => {
    if (ended) return
    void end()
    onEnd(new PolicyError(`the policy's thread stopped: ${reason}`, { code: 'failed' }), false)
  }

  const receive = (message: FromThread): void => {
    if (ended) return
    if ('failed' in message) stop(message.failed)
    else if ('print' in message) print?.(message.print)
    else {
      clearTimeout(timer)
      cpu = message.cpu
      begun = undefined
      if ('ready' in message) ready()
      else onAnswers(message.answers)
    }
  }
  const ready = (): void => {
    // From now on a thread that waits for work keeps no process alive.
    worker.unref()
    port.unref()
    onReady()
  }

  const onDeadline = async (): Promise<void> => {
    // The answer may lie there already, when it was this thread that was late.
    receiveAll(port, receive)
    const batch = begun
    if (ended || batch === undefined) return
    const used = (await cpuOf(worker, deadline)) - cpu
    if (ended || begun !== batch) return
    const left = deadline - used / 1000
    const late = performance.now() - batch > patience * deadline
    if (left > 0 && !late) {
      timer = setTimeout(onDeadline, Math.max(1, left))
      return
    }
    void end()
    onEnd(missed(deadline), true)
  }

  port.on('message', receive)
  worker.on('error', (error) => stop(error.message))
  worker.on('exit', () => {
    // Its last words may come after it.
    if (!ended) receiveAll(port, receive)
    stop('it ended')
  })
  return {
    ask(questions) {
      begun = performance.now()
      timer = setTimeout(onDeadline, deadline)
      port.postMessage(questions)
    },
    end,
  }
}

const receiveAll = (port: MessagePort, receive: (message: FromThread) => void): void => {
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) {
    receive(next.message as FromThread)
  }
}

/**
 * In µs. Infinite where Node cannot tell; 0 when the thread does not get to answer: then it does not get to run either.
 */
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
