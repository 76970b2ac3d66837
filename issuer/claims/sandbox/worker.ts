import type { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../../platform/module-url.ts'
import { startWorkerThread } from '../../../platform/worker-thread.ts'
import {
  beyondCpu,
  type CallMessage,
  type CallResult,
  type FetchedAnswer,
  type FetchRequest,
  type FromThread,
  type ScriptOutcome,
  type ThreadStart,
  type ToThread,
} from './messages.ts'

/**
 * A thread of the sandbox, seen from outside: it runs one call after another. One that misses its deadline takes the
 * thread with it.
 */
export interface SandboxWorker {
  /** Rejects when the thread did not start. */
  ready: Promise<void>
  /** Its call waits for an answer: it needs no processor meanwhile. */
  isAsking(): boolean
  /** One at a time. Never rejects. */
  run(call: CallMessage): Promise<CallResult>
  /** A call under way ends with this outcome. */
  end(outcome: ScriptOutcome): Promise<unknown>
}

export interface WorkerOptions {
  start: ThreadStart
  /** Rejects with a message for the script. */
  fetch: ((request: FetchRequest) => Promise<FetchedAnswer>) | undefined
  onAsking(): void
  /** It ended by itself, with the reason, or for its call, without. */
  onEnd(reason: string | undefined): void
  /** To watch it. */
  onThread: ((worker: Worker) => void) | undefined
}

interface Running {
  deadline: NodeJS.Timeout | undefined
  check: NodeJS.Timeout | undefined
  /** Of the thread, when the call was first looked at. In ms. */
  cpuBefore: number | undefined
  resolve(result: CallResult): void
}

/** A thread that takes longer to be ready than this is not going to be, in ms. */
const startWithin = 30_000

export const startWorker = ({ start, fetch, onAsking, onEnd, onThread }: WorkerOptions): SandboxWorker => {
  const { cpuMs, wallMs } = start.limits
  const { promise: ready, resolve: isReady, reject: failStart } = Promise.withResolvers<void>()
  let running: Running | undefined
  let asking = 0
  let ended = false

  const worker = startWorkerThread(moduleUrl('./thread', import.meta.url), {
    workerData: start,
    // Scripts have no business with the environment.
    env: {},
    // Of the thread's own JavaScript; the engine's memory is limited by itself.
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
    name: 'claims',
  })
  worker.unref()

  const finish = (result: CallResult) => {
    const call = running
    running = undefined
    clearTimeout(call?.deadline)
    clearTimeout(call?.check)
    call?.resolve(result)
  }

  const end = (outcome: ScriptOutcome, cpuMs = 0) => {
    ended = true
    clearTimeout(late)
    finish({ outcome, logs: [], cpuMs })
    return worker.terminate()
  }

  const fail = (reason: string) => {
    failStart(new Error(reason))
    if (ended) return
    void end({ failed: 'stopped', message: 'Its thread ended.' })
    onEnd(reason)
  }
  const late = setTimeout(fail, startWithin, 'it did not start in time').unref()
  // Whoever does not wait for it is told by `onEnd`.
  ready.catch(() => {})

  const endFor = (call: Running, outcome: ScriptOutcome, cpuMs: number) => {
    if (running !== call) return
    void end(outcome, cpuMs)
    onEnd(undefined)
  }

  const endOverdue = (call: Running) => {
    const outcome: ScriptOutcome = { failed: 'wall', message: `It took more than ${wallMs} ms.` }
    // What the thread has said by now is heard first: it may be this one that was late. How much was processor time is
    // not known.
    setImmediate(endFor, call, outcome, wallMs)
  }

  /**
   * The engine looks at the clock between its steps; one step, such as the search of a text in another, can take for
   * ever.
   */
  const check = async (call: Running) => {
    const now = await cpuOf(worker)
    if (now === undefined || running !== call) return
    call.cpuBefore ??= now
    const used = now - call.cpuBefore
    if (used > cpuMs) endFor(call, beyondCpu(cpuMs), used)
    else call.check = setTimeout(check, cpuMs - used + 1, call)
  }

  const ask = async (request: FetchRequest): Promise<FetchedAnswer | { failed: string }> => {
    try {
      return await fetch!(request)
    } catch (error) {
      return { failed: (error as Error).message }
    }
  }

  const askFor = async ({ fetch: number, request }: Extract<FromThread, { fetch: number }>) => {
    asking++
    onAsking()
    const answer = await ask(request)
    asking--
    if (!ended) worker.postMessage({ fetched: number, answer } satisfies ToThread)
  }

  worker.on('message', (message: FromThread) => {
    if ('fetch' in message) void askFor(message)
    else if ('done' in message) finish(message.done)
    else {
      clearTimeout(late)
      onThread?.(worker)
      isReady()
    }
  })
  worker.on('error', (error) => fail(error.message))
  worker.on('exit', () => fail('it ended'))

  return {
    ready,
    isAsking: () => asking > 0,
    run: ({ script, input, environmentVariables }) =>
      new Promise((resolve) => {
        const call: Running = { deadline: undefined, check: undefined, cpuBefore: undefined, resolve }
        call.deadline = setTimeout(endOverdue, wallMs, call)
        call.check = setTimeout(check, cpuMs / 2, call)
        running = call
        worker.postMessage({ call: { script, input, environmentVariables } } satisfies ToThread)
      }),
    end: (outcome) => end(outcome),
  }
}

/** Processor time of a thread so far, in ms. Undefined when it cannot be had. */
const cpuOf = async (worker: Worker): Promise<number | undefined> => {
  try {
    const { user, system } = await worker.cpuUsage()
    return (user + system) / 1000
  } catch {
    // It has ended, or Node is older than 24.6: then the time that passes has to do.
    return undefined
  }
}
