import { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../platform/module-url.ts'
import type {
  CallMessage,
  CallResult,
  FetchedAnswer,
  FetchRequest,
  FromThread,
  ScriptOutcome,
  ThreadStart,
  ToThread,
} from './sandbox-messages.ts'

/** A thread of the sandbox, seen from outside: it runs one call after another. One that misses its deadline takes the thread with it. */
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

/** A thread that takes longer to be ready than this is not going to be, in ms. */
const startWithin = 30_000

export const startWorker = ({ start, fetch, onAsking, onEnd, onThread }: WorkerOptions): SandboxWorker => {
  const { wallMs } = start.limits
  const { promise: ready, resolve: isReady, reject: failStart } = Promise.withResolvers<void>()
  let running: { deadline: NodeJS.Timeout; resolve(result: CallResult): void } | undefined
  let asking = 0
  let ended = false

  const worker = new Worker(moduleUrl('./sandbox-thread', import.meta.url), {
    workerData: start,
    // Scripts have no business with the environment, nor with how this process was started.
    env: {},
    execArgv: [],
    // Of the thread's own JavaScript; the engine's memory is limited by itself.
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
    name: 'claims',
  })
  worker.unref()

  const finish = (result: CallResult) => {
    const call = running
    running = undefined
    clearTimeout(call?.deadline)
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

  const endOverdue = () => {
    const overdue = running
    // What the thread has said by now is heard first: it may be this one that was late.
    setImmediate(() => {
      if (overdue === undefined || running !== overdue) return
      // How much of that was processor time nobody can tell any more.
      void end({ failed: 'wall', message: `It took more than ${wallMs} ms.` }, wallMs)
      onEnd(undefined)
    })
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
        running = { deadline: setTimeout(endOverdue, wallMs), resolve }
        worker.postMessage({ call: { script, input, environmentVariables } } satisfies ToThread)
      }),
    end: (outcome) => end(outcome),
  }
}
