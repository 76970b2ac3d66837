import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../platform/module-url.ts'
import type {
  CallMessage,
  FetchedAnswer,
  FetchRequest,
  FromThread,
  SandboxLimits,
  ScriptFailure,
  ScriptOutcome,
  ThreadStart,
  ToThread,
} from './sandbox-messages.ts'
import { createFairQueue } from './sandbox-queue.ts'

/**
 * Runs scripts in threads of their own, each call in a JavaScript engine (QuickJS in WebAssembly) made for it. A call that goes beyond a
 * limit is ended, with its thread where nothing else helps. An owner whose calls do that is served apart for a while, by a thread that
 * steps back, so that it slows down nobody else.
 */
export interface ClaimsSandbox {
  /** Never rejects: what went wrong is an outcome. */
  run(call: ScriptCall): Promise<{ outcome: ScriptOutcome; logs: readonly string[] }>
  /** Starts the threads, unless they run; a call does so too. */
  start(): Promise<void>
  /** Ends what is under way as `stopped`. */
  close(): Promise<void>
}

export interface ScriptCall extends CallMessage {
  /** Whose calls share one turn: the client. */
  owner: string
  /** Not among those who wait for tokens: somebody tries a script out. */
  isTrial?: boolean
}

export interface SandboxOptions {
  /** Threads for everybody; one more is for those who go beyond limits and for trials. Default: one less than there are processors, 2 to 4. */
  workers?: number | undefined
  /** Calls waiting, at most. Default 2 000. */
  queue?: number
  /** How long a call waits for its turn, in ms. Default 10 000. */
  patienceMs?: number
  limits?: Partial<SandboxLimits>
  /** Absent: scripts can ask nobody. Rejects with a message for the script. */
  fetch?: ((request: FetchRequest) => Promise<FetchedAnswer>) | undefined
  /** Calls after which a thread gets a successor. Default 10 000. */
  callsPerThread?: number
  onThreadEnd?: (reason: string) => void
  /** Told of each thread when it is ready, to watch it. */
  onThread?: (worker: Worker) => void
}

export const defaultLimits: SandboxLimits = {
  cpuMs: 100,
  wallMs: 1_000,
  heapBytes: 8 * 1024 * 1024,
  stackBytes: 256 * 1024,
  fetches: 2,
}

const callsPerInstance = 1_000
/** Of the texts that wait, in characters. */
const maxWaitingSize = 64 * 1024 * 1024
const queueOfSuspect = 32
/** How long an owner is served apart after a call that went beyond a limit, in ms. */
const suspectFor = 30_000
const slowestRestart = 5_000
/** A thread that takes longer to be ready than this is not going to be, in ms. */
const startWithin = 30_000
const apartNice = 15
/** How long that thread rests after a call that went beyond a limit, so that it takes a third of a processor at most. In ms. */
const restMs = 200
/** While calls wait for answers, other threads take their place; this many to one, at most. */
const threadsPerWorker = 4

interface Task {
  call: ScriptCall
  owner: string
  size: number
  giveUp: NodeJS.Timeout | undefined
  resolve(result: { outcome: ScriptOutcome; logs: readonly string[] }): void
}

interface Thread {
  worker: Worker
  lane: Lane
  running: { task: Task; deadline: NodeJS.Timeout } | undefined
  /** Requests of its call that are under way: it needs no processor meanwhile. */
  asking: number
  calls: number
}

/** Threads, and who waits for one. */
interface Lane {
  queue: ReturnType<typeof createFairQueue<Task>>
  threads: Set<Thread>
  idle: Thread[]
  /** Threads that work. */
  wanted: number
  /** Together with those that wait for answers. */
  most: number
  nice: number
  failedStarts: number
  /** Threads are being started. */
  filling: Promise<void> | undefined
}

export const createClaimsSandbox = (options: SandboxOptions = {}): ClaimsSandbox => {
  const { queue = 2_000, patienceMs = 10_000, callsPerThread = 10_000, onThreadEnd } = options
  const workers = options.workers ?? Math.min(4, Math.max(2, availableParallelism() - 1))
  const limits = {
    ...defaultLimits,
    // Its requests may take a second by themselves.
    ...(options.fetch && { wallMs: 2 * defaultLimits.wallMs }),
    ...options.limits,
  }
  const lane = (wanted: number, nice: number, itemsOfOwner: number): Lane => ({
    queue: createFairQueue({ items: queue, itemsOfOwner, size: maxWaitingSize }),
    threads: new Set(),
    idle: [],
    wanted,
    most: options.fetch ? wanted * threadsPerWorker : wanted,
    nice,
    failedStarts: 0,
    filling: undefined,
  })
  const main = lane(workers, 0, queue)
  const apart = lane(1, apartNice, queueOfSuspect)
  const suspects = new Map<string, { level: number; until: number }>()
  let module: Promise<WebAssembly.Module> | undefined
  let closed = false

  const startThread = async (into: Lane): Promise<void> => {
    module ??= compile()
    const started: ThreadStart = {
      module: await module,
      limits,
      nice: into.nice,
      callsPerInstance,
      offersFetch: options.fetch !== undefined,
    }
    if (closed) return
    await new Promise<void>((resolve, reject) => {
      const worker = new Worker(moduleUrl('./sandbox-thread', import.meta.url), {
        workerData: started,
        // Scripts have no business with the environment, nor with how this process was started.
        env: {},
        execArgv: [],
        // Of the thread's own JavaScript; the engine's memory is limited by itself.
        resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
        name: 'claims',
      })
      const thread: Thread = { worker, lane: into, running: undefined, asking: 0, calls: 0 }
      into.threads.add(thread)
      worker.unref()
      const stop = (reason: string) => {
        clearTimeout(late)
        reject(new Error(reason))
        if (!into.threads.has(thread)) return
        onThreadEnd?.(reason)
        end(thread, { failed: 'stopped', message: 'Its thread ended.' })
        replace(into)
      }
      const late = setTimeout(stop, startWithin, 'it did not start in time').unref()
      worker.on('message', (message: FromThread) => {
        if ('fetch' in message) void askFor(thread, message)
        else if ('done' in message) take(thread, message)
        else {
          clearTimeout(late)
          into.failedStarts = 0
          options.onThread?.(worker)
          into.idle.push(thread)
          resolve()
          dispatch(into)
        }
      })
      worker.on('error', (error) => stop(error.message))
      worker.on('exit', () => stop('it ended'))
    })
  }

  /** At once after a call had to be ended; less and less often when threads do not even start. */
  const replace = (into: Lane) => {
    if (closed) return
    const pause = into.failedStarts === 0 ? 0 : Math.min(slowestRestart, 50 * 2 ** into.failedStarts)
    into.failedStarts++
    setTimeout(() => closed || fill(into).catch(() => {}), pause).unref()
  }

  /** Starts the threads that are missing. */
  const fill = (into: Lane): Promise<void> => {
    const working = [...into.threads].filter(({ asking }) => asking === 0).length
    const missing = Math.max(0, Math.min(into.wanted - working, into.most - into.threads.size))
    into.filling ??= Promise.all(Array.from({ length: missing }, () => startThread(into)))
      .then(() => {})
      .finally(() => {
        into.filling = undefined
      })
    return into.filling
  }

  const end = (thread: Thread, outcome: ScriptOutcome) => {
    const { lane } = thread
    lane.threads.delete(thread)
    const at = lane.idle.indexOf(thread)
    if (at !== -1) lane.idle.splice(at, 1)
    void thread.worker.terminate()
    finish(thread, outcome, [])
  }

  const finish = (thread: Thread, outcome: ScriptOutcome, logs: readonly string[]) => {
    if (!thread.running) return
    const { task, deadline } = thread.running
    clearTimeout(deadline)
    thread.running = undefined
    if ('failed' in outcome) suspect(task.owner, suspicions[outcome.failed] ?? 0)
    task.resolve({ outcome, logs })
  }

  const take = (thread: Thread, { done, logs }: Extract<FromThread, { done: ScriptOutcome }>) => {
    finish(thread, done, logs)
    const { lane } = thread
    const mustRest = lane === apart && 'failed' in done && (suspicions[done.failed] ?? 0) > 0
    if (mustRest) setTimeout(goOn, restMs, thread).unref()
    else goOn(thread)
  }

  const goOn = (thread: Thread) => {
    const { lane } = thread
    if (!lane.threads.has(thread)) return
    if (++thread.calls < callsPerThread) lane.idle.push(thread)
    else retire(thread)
    dispatch(lane)
  }

  /** Its successor first: there is never one less. */
  const retire = (thread: Thread) => {
    const { lane } = thread
    lane.threads.delete(thread)
    const done = () => {
      thread.calls = 0
      end(thread, { failed: 'stopped', message: 'Its thread ended.' })
    }
    fill(lane).then(done, done)
  }

  const endOverdue = (thread: Thread) => {
    const { running } = thread
    // What the thread has said by now is heard first: it may be this one that was late.
    setImmediate(() => {
      if (running !== undefined && thread.running === running) endNow(thread)
    })
  }

  const endNow = (thread: Thread) => {
    end(thread, { failed: 'wall', message: `It took more than ${limits.wallMs} ms.` })
    replace(thread.lane)
  }

  const askFor = async (thread: Thread, { fetch: number, request }: Extract<FromThread, { fetch: number }>) => {
    thread.asking++
    dispatch(thread.lane)
    const answered = await ask(request)
    thread.asking--
    if (thread.lane.threads.has(thread))
      thread.worker.postMessage({ fetched: number, answer: answered } satisfies ToThread)
  }

  const ask = async (request: FetchRequest): Promise<FetchedAnswer | { failed: string }> => {
    try {
      return await options.fetch!(request)
    } catch (error) {
      return { failed: (error as Error).message }
    }
  }

  /** What of it waits already goes where it will be served from now on. */
  const suspect = (owner: string, suspicion: number) => {
    if (suspicion === 0) return
    const now = performance.now()
    const before = suspects.get(owner)
    const level = suspicion + (before && before.until > now ? before.level : 0)
    if (suspects.size >= keptSuspects) suspects.clear()
    suspects.set(owner, { level, until: now + suspectFor })
    if (level < certain) return
    for (const task of main.queue.takeAll(owner)) enqueue(apart, task)
  }

  const laneOf = ({ owner, isTrial }: ScriptCall): Lane => {
    if (isTrial) return apart
    const suspect = suspects.get(owner)
    if (suspect && suspect.until <= performance.now()) suspects.delete(owner)
    else if (suspect && suspect.level >= certain) return apart
    return main
  }

  const enqueue = (into: Lane, task: Task) => {
    if (!into.queue.add(task)) refuse(task)
    else dispatch(into)
  }

  const refuse = (task: Task) => {
    clearTimeout(task.giveUp)
    task.resolve({ outcome: { failed: 'busy', message: 'Too many scripts wait to be run.' }, logs: [] })
  }

  const dispatch = (from: Lane) => {
    while (from.queue.length > 0) {
      // The one that was busy the longest ago has its next engine ready.
      const thread = from.idle.shift()
      if (!thread) {
        if (from.failedStarts === 0) void fill(from).catch(() => {})
        return
      }
      const task = from.queue.take()!
      clearTimeout(task.giveUp)
      const { script, input, environmentVariables } = task.call
      thread.running = { task, deadline: setTimeout(endOverdue, limits.wallMs, thread) }
      thread.worker.postMessage({ call: { script, input, environmentVariables } } satisfies ToThread)
    }
  }

  return {
    start: () => fill(main),
    run: (call) =>
      new Promise((resolve) => {
        const into = laneOf(call)
        const size = call.script.length + (call.input?.length ?? 0)
        const task: Task = { call, owner: call.owner, size, giveUp: undefined, resolve }
        if (closed) return refuse(task)
        task.giveUp = setTimeout(() => {
          if (main.queue.remove(task) || apart.queue.remove(task)) refuse(task)
        }, patienceMs)
        enqueue(into, task)
      }),
    async close() {
      closed = true
      const threads = [...main.threads, ...apart.threads]
      for (const { queue } of [main, apart]) for (let task = queue.take(); task; task = queue.take()) refuse(task)
      await Promise.all(
        threads.map((thread) => {
          end(thread, { failed: 'stopped', message: 'The issuer stops.' })
          return thread.worker.terminate()
        }),
      )
    },
  }
}

/** From here on an owner is served apart. */
const certain = 2
/** What a failure says of an owner. Time that passes may be the fault of a machine that is too busy. */
const suspicions: Partial<Record<ScriptFailure, number>> = { cpu: 2, memory: 2, wall: 1 }
/** Owners remembered, at most; then it begins anew. */
const keptSuspects = 10_000

const compile = async (): Promise<WebAssembly.Module> =>
  WebAssembly.compile(
    await readFile(createRequire(import.meta.url).resolve('@jitl/quickjs-ng-wasmfile-release-sync/wasm')),
  )
