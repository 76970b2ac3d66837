import { moduleUrl } from '../../platform/module-url.ts'
import { createSemaphore } from '../../platform/semaphore.ts'
import { startWorkerThread } from '../../platform/worker-thread.ts'
import type { PolicySet } from '../../policies/decide.ts'
import { CompilerMissing, findOpa } from '../../policies/engine/index.ts'
import type { PortablePolicies } from '../../policies/policy-set.ts'
import type { GatewayConfig } from '../config/load.ts'
import type { Mask } from '../config/settings/logs.ts'
import { problem } from '../refusals/problems.ts'
import type { EvaluationQuestion } from './evaluation.ts'
import { mostExplained } from './rules.ts'

/**
 * Tries candidate rules: compiles and tests them, asks them, and compares them with the policies in force. Nobody has
 * looked at such rules yet, so all of it happens in a thread and in processes that step back behind requests, one trial
 * at a time, each part with bounds for time, memory and units.
 */
export interface Trial {
  /**
   * Runs `work` while nobody else tries or saves. Throws `AppError` 503 when too many wait, `policy_unavailable` when
   * there is no answer in time.
   */
  alone<Result>(work: (run: RunTrial) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** Gives a `TryAnswer` as JSON. */
export type RunTrial = (trial: WantedTrial) => Promise<Buffer>

export interface WantedTrial {
  config: GatewayConfig
  policies: PolicySet
  files: Readonly<Record<string, string | null>>
  question?: EvaluationQuestion | undefined
  /** JSON, newest first. */
  records?: readonly Uint8Array[] | undefined
  masks: readonly Mask[]
}

/** What the thread is given. */
export interface TrialTask {
  folder: string
  /** The program. */
  opa: string
  files: Readonly<Record<string, string | null>>
  /** Entrypoints. */
  needed: readonly string[]
  /** Of one evaluation. */
  units: number
  mostExplained: number
  question: EvaluationQuestion | undefined
  recorded:
    | { records: readonly Uint8Array[]; inForce: Pick<PortablePolicies, 'prepared' | 'reads' | 'paths'> }
    | undefined
  masks: readonly Mask[]
}

const mostWaiting = 4
/** Of all parts together, by the clock; each has bounds of its own. In ms. */
const deadlineMs = 55_000
/** For the thread to take its folders away. In ms. */
const lastChanceMs = 2_000
/** Of the JavaScript in the thread; what the rules use is bounded by the engine. */
const resourceLimits = { maxOldGenerationSizeMb: 256 }

export const createTrial = ({ opaBin }: { opaBin: string | undefined }): Trial => {
  const busy = () => problem('policy_unavailable', { headers: { 'retry-after': '5' } })
  const oneAtATime = createSemaphore({ permits: 1, maxWaiting: mostWaiting, full: busy })
  let stop: (() => Promise<void>) | undefined
  let closed = false

  const run: RunTrial = async (wanted) => {
    const task = await taskOf(wanted, opaBin)
    if (closed) throw busy()
    const worker = startWorkerThread(moduleUrl('./trial-thread', import.meta.url), {
      workerData: task,
      name: 'trial',
      resourceLimits,
    })
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    const end = async () => {
      worker.postMessage('stop')
      const last = setTimeout(() => void worker.terminate(), lastChanceMs).unref()
      await ended
      clearTimeout(last)
    }
    stop = end
    const timer = setTimeout(() => void end(), deadlineMs).unref()
    try {
      return await new Promise<Buffer>((resolve, reject) => {
        worker.once('message', (bytes: Uint8Array) =>
          resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)),
        )
        worker.once('error', reject)
        worker.once('exit', () => reject(new Error('the thread has ended')))
      })
    } catch (cause) {
      throw problem('policy_unavailable', { headers: { 'retry-after': '5' }, cause })
    } finally {
      clearTimeout(timer)
      stop = undefined
    }
  }

  return {
    alone: (work) => oneAtATime(() => work(run)),
    async close() {
      closed = true
      await stop?.()
    },
  }
}

const taskOf = async (wanted: WantedTrial, opaBin: string | undefined): Promise<TrialTask> => {
  const { config, policies, files, question, records, masks } = wanted
  const inForce = records && policies.forThread?.()
  return {
    folder: config.policies.path,
    opa: await compilerOf(opaBin),
    files,
    needed: [...new Set(config.routes.map(({ entrypoint }) => entrypoint))],
    units: config.policies.units,
    mostExplained,
    question,
    recorded: records && inForce && { records, inForce },
    masks,
  }
}

/** Throws `AppError` 503 where there is none. */
const compilerOf = (opaBin: string | undefined): Promise<string> =>
  findOpa({ opaBin }).catch((error: unknown) => {
    if (!(error instanceof CompilerMissing)) throw error
    throw problem('server.unavailable', { detail: 'There is no compiler where the gateway runs.', cause: error })
  })
