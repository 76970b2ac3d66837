import { workerData } from 'node:worker_threads'
import { lowerPriority } from '../../../platform/lower-priority.ts'
import { PolicyError, UnitsUsedUp } from '../base/policy-error.ts'
import type { Run } from '../instance/runner.ts'
import type { Answer, FromThread, Question, ThreadStart } from './policy-thread.ts'

/** The thread side of `policy-thread.ts`: one policy, asked for one batch after another. */

const { port, prepared, limits, nice } = workerData as ThreadStart
/** Of memory, for one evaluation: as much as there may be. Its growth is spent units. */
const room = Number.POSITIVE_INFINITY
const say = (message: FromThread): void => port.postMessage(message)

const start = async (): Promise<Run | undefined> => {
  try {
    // Loading code is most of a start's work: it comes after the priority is lowered, and the functions only where they
    // are used.
    const { createRunner } = await import('../instance/runner.ts')
    const needed = prepared.image.builtins
    const builtins = needed.length > 0 ? await (await import('../builtins/index.ts')).loadBuiltins(needed) : {}
    return createRunner(prepared, { builtins, limits: { ...limits, room }, print: (line) => say({ print: line }) })
  } catch (error) {
    say({ failed: (error as Error).message })
    return undefined
  }
}

lowerPriority(nice)
const run = await start()

/** In µs; 0 before Node 23.9, which cannot tell. */
const cpu = (): number => {
  if (typeof process.threadCpuUsage !== 'function') return 0
  const { user, system } = process.threadCpuUsage()
  return user + system
}

const answerTo = (ask: Run, { entrypoint, input, units }: Question): Answer => {
  try {
    return ask(({ evaluate, repeatable }) => ({
      text: evaluate(entrypoint, input, { units }),
      repeatable: repeatable(),
    }))
  } catch (error) {
    if (error instanceof UnitsUsedUp) return { usedUp: units }
    const cause = error instanceof PolicyError ? error.cause : undefined
    const { message, code } =
      error instanceof PolicyError ? error : new PolicyError('the policy could not be evaluated', { code: 'failed' })
    return { error: cause instanceof Error ? `${message}: ${cause.message}` : message, code }
  }
}

if (run) {
  port.on('message', (questions: Question[]) =>
    say({ answers: questions.map((question) => answerTo(run, question)), cpu: cpu() }),
  )
  say({ ready: true, cpu: cpu() })
}
