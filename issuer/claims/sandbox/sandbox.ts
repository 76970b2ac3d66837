import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism } from 'node:os'
import type { Worker } from 'node:worker_threads'
import type { CallMessage, CallResult, FetchedAnswer, FetchRequest, SandboxLimits } from './messages.ts'
import { createPenalties, slowShare, weightOf } from './penalties.ts'
import { createThreadPool, refusal, type Task, type ThreadPoolOptions } from './thread-pool.ts'
import { startWorker } from './worker.ts'

/**
 * Runs scripts in threads of their own, each call in a JavaScript engine (QuickJS in WebAssembly) made for it. A call
 * that goes beyond a limit is ended, with its thread where nothing else helps. An owner whose calls do that, or take
 * long, is penalized for a while: one call at a time, by threads that step back, and with a rest after each call that
 * had to be ended, so that it slows down nobody else.
 */
export interface ClaimsSandbox {
  /** Never rejects: what went wrong is an outcome. */
  run(call: ScriptCall): Promise<Pick<CallResult, 'outcome' | 'logs'>>
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
  /**
   * Threads for everybody; half as many, at least one, are for penalized owners and for trials. Default: one less than
   * there are processors, 2 to 4.
   */
  workers?: number | undefined
  /** Calls waiting, at most. Default 2 000. */
  queue?: number
  /** How long a call waits for its turn, in ms. Default 10 000. */
  waitTimeoutMs?: number
  limits?: Partial<SandboxLimits>
  /** Processor time from which on a call is slow, in ms. Default a quarter of what it may take. */
  slowMs?: number
  /** Absent: scripts can ask nobody. Rejects with a message for the script. */
  fetch?: ((request: FetchRequest) => Promise<FetchedAnswer>) | undefined
  /** Calls after which a thread gets a successor. Default 10 000. */
  callsPerThread?: number
  onThreadEnd?: (reason: string) => void
  /** Told of each thread when it is ready, to watch it. */
  onThread?: (worker: Worker) => void
  /** An owner is penalized from now on. */
  onPenalty?: (owner: string) => void
}

export const defaultLimits: SandboxLimits = {
  cpuMs: 100,
  wallMs: 1_000,
  heapBytes: 8 * 1024 * 1024,
  stackBytes: 256 * 1024,
  fetches: 2,
}

const callsPerInstance = 1_000
const penaltyQueue = 32
/**
 * Of 0 to 19: how far their threads step back for others that want the processor; on a busy machine this makes them
 * about ten times slower.
 */
const penaltyNice = 10
/** So their calls may take longer by the clock. */
const penaltyWallFactor = 4
/** Who tries out a script that runs away does not wait as long for the next try. */
const trialShare = 0.3
/** While calls wait for answers, other threads take their place; this many to one, at most. */
const threadsPerWorker = 4

export const createClaimsSandbox = (options: SandboxOptions = {}): ClaimsSandbox => {
  const { queue = 2_000, waitTimeoutMs = 10_000, callsPerThread = 10_000, fetch, onThread, onThreadEnd } = options
  const workers = options.workers ?? Math.min(4, Math.max(2, availableParallelism() - 1))
  const limits = {
    ...defaultLimits,
    // Its requests may take a second by themselves.
    ...(fetch && { wallMs: 2 * defaultLimits.wallMs }),
    ...options.limits,
  }
  const slowMs = options.slowMs ?? limits.cpuMs / 4
  const penalties = createPenalties({ slowMs, now: () => performance.now() })
  let module: Promise<WebAssembly.Module> | undefined

  const pool = (
    nice: number,
    limits: SandboxLimits,
    wanted: number,
    own: Pick<ThreadPoolOptions<ScriptCall>, 'queueOfOwner' | 'cooldownAfter'>,
  ) =>
    createThreadPool<ScriptCall>({
      wanted,
      most: fetch ? wanted * threadsPerWorker : wanted,
      queue,
      callsPerThread,
      async startWorker(hooks) {
        module ??= compile()
        const start = { module: await module, limits, nice, callsPerInstance, offersFetch: fetch !== undefined }
        return startWorker({ start, fetch, onThread, ...hooks })
      },
      onThreadEnd,
      ...own,
    })

  const cooldownAfter = ({ call }: Task<ScriptCall>, result: CallResult): number => {
    if (weightOf(result) === 0) return 0
    // Throwing away what it left takes time too.
    return Math.max(result.cpuMs, slowMs) / (call.isTrial ? trialShare : slowShare)
  }

  const mainPool = pool(0, limits, workers, { queueOfOwner: queue })
  const patient = { ...limits, wallMs: penaltyWallFactor * limits.wallMs }
  const penaltyPool = pool(penaltyNice, patient, Math.ceil(workers / 2), { queueOfOwner: penaltyQueue, cooldownAfter })

  const record = ({ owner, isTrial }: ScriptCall, result: CallResult) => {
    if (isTrial || !penalties.record(owner, result)) return
    options.onPenalty?.(owner)
    // What waits already goes where it will be served from now on.
    for (const task of mainPool.takeAll(owner)) penaltyPool.add(task)
  }

  return {
    start: mainPool.start,
    run: (call) =>
      new Promise((resolve) => {
        const task: Task<ScriptCall> = {
          call,
          owner: call.owner,
          size: call.script.length + (call.input?.length ?? 0),
          finish(result) {
            clearTimeout(giveUp)
            record(call, result)
            resolve(result)
          },
        }
        const giveUp = setTimeout(() => {
          if (mainPool.remove(task) || penaltyPool.remove(task)) task.finish(refusal)
        }, waitTimeoutMs)
        const into = call.isTrial || penalties.isPenalized(call.owner) ? penaltyPool : mainPool
        into.add(task)
      }),
    async close() {
      await Promise.all([mainPool.close(), penaltyPool.close()])
    },
  }
}

const compile = async (): Promise<WebAssembly.Module> =>
  WebAssembly.compile(
    await readFile(createRequire(import.meta.url).resolve('@jitl/quickjs-ng-wasmfile-release-sync/wasm')),
  )
