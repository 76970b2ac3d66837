import type { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../platform/module-url.ts'
import { createSemaphore } from '../../platform/semaphore.ts'
import { startWorkerThread } from '../../platform/worker-thread.ts'
import type { PolicySet } from '../../policies/decide.ts'
import type { PreparedEngine } from '../../policies/engine/index.ts'
import { problem } from '../refusals/problems.ts'

/** Asks the policies in force what nobody has asked the gateway, in a thread that steps back behind all requests. */
export interface Evaluation {
  /** Throws `AppError`: 400 for an entrypoint that is not there, 503 when too many wait or no answer came. */
  ask(policies: PolicySet, question: EvaluationQuestion, units: number): Promise<EvaluationReply>
  /** The same of several, in one turn. There are fewer replies than questions when they take long. */
  askEach(policies: PolicySet, questions: readonly EvaluationQuestion[], units: number): Promise<EvaluationReply[]>
  close(): Promise<void>
}

export interface EvaluationQuestion {
  entrypoint: string
  input: unknown
}

/** `error`: why there is no result; a sentence of the engine for the authors of rules. */
export type EvaluationReply = { units: number } & ({ result: unknown } | { error: string })

export interface EvaluationThreadStart {
  prepared: PreparedEngine
  units: number
}

interface Place {
  policies: PolicySet
  units: number
  worker: Worker
}

/** Evaluations that wait for the one that runs; more are refused. */
const mostWaiting = 16
/** Of an evaluation and of the start of its thread, by the clock. Units end it earlier. In ms. */
const deadlineMs = 10_000
/** Without a question the thread ends. In ms. */
const idleMs = 30_000

export const createEvaluation = (): Evaluation => {
  const busy = () => problem('policy_unavailable', { headers: { 'retry-after': '1' } })
  const oneAtATime = createSemaphore({ permits: 1, maxWaiting: mostWaiting, full: busy })
  let place: Place | undefined
  let idle: NodeJS.Timeout | undefined

  const end = async () => {
    clearTimeout(idle)
    const ended = place
    place = undefined
    await ended?.worker.terminate()
  }

  const threadFor = async (policies: PolicySet, prepared: PreparedEngine, units: number): Promise<Worker> => {
    if (place?.policies === policies && place.units === units) return place.worker
    await end()
    const workerData: EvaluationThreadStart = { prepared, units }
    const worker = startWorkerThread(moduleUrl('./evaluation-thread', import.meta.url), {
      workerData,
      // Rules have no business with the environment.
      env: {},
      name: 'inspection',
    })
    worker.on('error', () => {})
    worker.unref()
    place = { policies, units, worker }
    return worker
  }

  const askEach: Evaluation['askEach'] = (policies, questions, units) =>
    oneAtATime(async () => {
      const prepared = policies.forThread?.().prepared
      if (!prepared) throw busy()
      if (questions.some(({ entrypoint }) => !Object.hasOwn(prepared.image.entrypoints, entrypoint))) {
        throw problem('invalid_request', { detail: 'The policies have no such entrypoint.' })
      }
      const worker = await threadFor(policies, prepared, units)
      clearTimeout(idle)
      try {
        return await repliesOf(worker, questions)
      } catch (cause) {
        await end()
        throw problem('policy_unavailable', { headers: { 'retry-after': '1' }, cause })
      } finally {
        idle = setTimeout(() => void end(), idleMs).unref()
      }
    })

  return {
    // The first one is always answered.
    ask: async (policies, question, units) => (await askEach(policies, [question], units))[0]!,
    askEach,
    close: end,
  }
}

const repliesOf = (worker: Worker, questions: readonly EvaluationQuestion[]): Promise<EvaluationReply[]> =>
  new Promise((resolve, reject) => {
    const settle = (act: () => void) => {
      clearTimeout(timer)
      worker.off('message', onMessage).off('exit', onExit)
      act()
    }
    const onMessage = (replies: EvaluationReply[]) => settle(() => resolve(replies))
    const onExit = () => settle(() => reject(new Error('the thread has ended')))
    const timer = setTimeout(() => settle(() => reject(new Error('no answer in time'))), deadlineMs)
    worker.on('message', onMessage).on('exit', onExit)
    worker.postMessage(questions)
  })
