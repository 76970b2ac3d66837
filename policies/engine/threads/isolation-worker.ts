import { Script } from 'node:vm'
import { workerData } from 'node:worker_threads'
import { lowerPriority } from '../../../platform/lower-priority.ts'
import { PolicyError } from '../base/policy-error.ts'
import type { Run } from '../instance/runner.ts'
import type { Answer, FromThread, Question, Reply, ThreadStart } from './policy-thread.ts'

/** The thread side of `policy-thread.ts`: one policy, asked for one batch after another. */

const { port, prepared, nice } = workerData as ThreadStart
const say = (message: FromThread): void => port.postMessage(message)

const start = async (): Promise<Run | undefined> => {
  try {
    // Loading code is most of a start's work: it comes after the priority is lowered, and the functions only where they
    // are used.
    const { createRunner } = await import('../instance/runner.ts')
    const needed = prepared.image.builtins
    const builtins = needed.length > 0 ? await (await import('../builtins/index.ts')).loadBuiltins(needed) : {}
    return createRunner(prepared, { builtins, print: (line) => say({ print: line }) })
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

const replyTo = (ask: Run, question: Question): Reply =>
  question.within === undefined ? answerTo(ask, question) : attempt(question.within, () => answerTo(ask, question))

const attempted = 'surrogatePolicyAttempt'
const attemptScript = new Script(`${attempted}()`)

/**
 * Only Node's `vm` ends WebAssembly and lets the thread go on. It costs some 100 µs, for another thread that watches.
 */
const attempt = (milliseconds: number, answer: () => Answer): Reply => {
  Object.assign(globalThis, { [attempted]: answer })
  const before = cpu()
  try {
    return attemptScript.runInThisContext({ timeout: milliseconds }) as Answer
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
    return { spent: before === 0 ? Number.POSITIVE_INFINITY : (cpu() - before) / 1000 }
  }
}

const answerTo = (ask: Run, { entrypoint, input }: Question): Answer => {
  try {
    return ask((instance) => ({ text: instance.evaluate(entrypoint, input), repeatable: instance.repeatable() }))
  } catch (error) {
    const cause = error instanceof PolicyError ? error.cause : undefined
    const message = error instanceof PolicyError ? error.message : 'the policy could not be evaluated'
    return { error: cause instanceof Error ? `${message}: ${cause.message}` : message }
  }
}

if (run) {
  port.on('message', (questions: Question[]) =>
    say({ replies: questions.map((question) => replyTo(run, question)), cpu: cpu() }),
  )
  say({ ready: true, cpu: cpu() })
}
