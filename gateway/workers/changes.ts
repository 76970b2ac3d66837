import type { WorkerProcess } from './fork-worker.ts'
import type { Configuration, PolicyBundle } from './messages.ts'

/** What changes in all workers at once. */
export interface Change {
  configuration?: Configuration
  /** Asked for each worker anew: while a configuration waits for its issuers, newer rules may take over. */
  policies: () => readonly PolicyBundle[]
}

/**
 * Changes of all workers together, in three steps: all prepare what is new; all let new requests wait; all take over.
 * So whoever has seen an answer of the new can get none of the old any more, from whichever worker.
 */
export interface Changes {
  /**
   * Resolves when all have taken over. Rejects when one cannot, or when `signal` aborts: then all go on as before.
   * `onCommit` is called when nothing can fail any more.
   */
  make(change: Change, onCommit: () => void, signal?: AbortSignal): Promise<void>
  /** Brings a new worker to what is in force, and in among the others. */
  join(worker: WorkerProcess): Promise<void>
  leave(worker: WorkerProcess): void
  /** Those that serve. */
  members(): readonly WorkerProcess[]
}

/** A worker that does not swap within this time is ended: it must not go on with the old. In ms. */
const swapTimeoutMs = 5_000
/** How long a new worker waits for keys and revocations before it serves without, in ms. */
const settleMs = 10_000

export const createChanges = (options: {
  /** What is in force. */
  inForce: () => Change
  /** Accepts connections. */
  open: (worker: WorkerProcess) => Promise<void>
}): Changes => {
  const { inForce, open } = options
  const members = new Set<WorkerProcess>()
  /** Grows with each change. */
  let version = 0
  let started = false
  let last = 0
  let swapping: Promise<void> | undefined

  /** Of a worker that ends meanwhile nothing is needed: whoever takes its place begins with what is in force. */
  const unlessEnded = async (worker: WorkerProcess, asked: Promise<unknown>) => {
    try {
      await asked
    } catch (error) {
      if (!worker.alive) return
      throw error
    }
  }

  const discard = (id: number, workers: Iterable<WorkerProcess>) => {
    for (const worker of workers) worker.tell('discard', { id })
  }

  const inAll = (name: 'hold' | 'commit', id: number) =>
    Promise.all([...members].map((worker) => worker.call(name, { id }, swapTimeoutMs).catch(() => worker.kill())))

  const swap = async (id: number, onCommit: () => void) => {
    await inAll('hold', id)
    version++
    onCommit()
    await inAll('commit', id)
    swapping = undefined
  }

  const prepareAll = async (id: number, change: Change, prepared: Set<WorkerProcess>, signal?: AbortSignal) => {
    const aborted = Promise.withResolvers<never>()
    aborted.promise.catch(() => {})
    const abort = () => aborted.reject(new Error('a later change has come'))
    signal?.addEventListener('abort', abort, { once: true })
    if (signal?.aborted) abort()
    const prepare = (worker: WorkerProcess) => {
      prepared.add(worker)
      return unlessEnded(worker, worker.call('prepare', { id, ...change, policies: [...change.policies()] }))
    }
    try {
      const missing = () => [...members].filter((worker) => !prepared.has(worker))
      // Others may have joined meanwhile.
      while (missing().length > 0) await Promise.race([Promise.all(missing().map(prepare)), aborted.promise])
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  return {
    async make(change, onCommit, signal) {
      const id = ++last
      const prepared = new Set<WorkerProcess>()
      try {
        for (let done = false; !done; ) {
          await prepareAll(id, change, prepared, signal)
          await swapping
          if (swapping || [...members].some((worker) => !prepared.has(worker))) continue
          done = true
          swapping = swap(id, onCommit)
        }
      } catch (error) {
        discard(id, prepared)
        throw error
      }
      await swapping
    },
    async join(worker) {
      const bring = async (configuration: Configuration | undefined, policies: readonly PolicyBundle[]) => {
        const id = ++last
        const given = { ...(configuration && { configuration }), policies: [...policies] }
        await worker.call('prepare', { id, ...given, settle: started ? settleMs : 0 })
        await worker.call('commit', { id })
      }
      for (let isFirst = true, known = -1; swapping || known !== version; isFirst = false) {
        known = version
        const { configuration, policies } = inForce()
        await bring(configuration, policies())
        // A gateway that is built again goes on with the rules of the one before, which are older.
        if (configuration && !isFirst) await bring(undefined, policies())
        await swapping
      }
      members.add(worker)
      await open(worker)
      started = true
    },
    leave: (worker) => void members.delete(worker),
    members: () => [...members],
  }
}
