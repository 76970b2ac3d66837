import { parentPort, workerData } from 'node:worker_threads'
import { lowerPriority } from '../../platform/lower-priority.ts'
import { loadWasmEngine, PolicyError } from '../../policies/engine/index.ts'
import type { EvaluationQuestion, EvaluationReply, EvaluationThreadStart } from './evaluation.ts'

/** The thread side of `evaluation.ts`: one policy, asked one question after another. */

/** Of several questions; the one that runs then ends by its units. */
const longestTurnMs = 3_000

lowerPriority(19)
const { prepared, units } = workerData as EvaluationThreadStart
const engine = await loadWasmEngine(prepared, { remember: false, limits: { units } })

const answer = ({ entrypoint, input }: EvaluationQuestion): EvaluationReply => {
  try {
    const result = engine.evaluate(entrypoint, input)
    return { result, units: engine.unitsTaken() }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : ''
    return { error: `${error.message}${cause}`, units: engine.unitsTaken() }
  }
}

parentPort!.on('message', (questions: readonly EvaluationQuestion[]) => {
  const end = performance.now() + longestTurnMs
  const replies: EvaluationReply[] = []
  for (const question of questions) {
    if (replies.length > 0 && performance.now() > end) break
    replies.push(answer(question))
  }
  parentPort!.postMessage(replies)
})
