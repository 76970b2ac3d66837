import { workerData } from 'node:worker_threads'
import { PolicyError } from './policy-error.ts'
import type { FromThread, Question, Reply, ThreadStart } from './policy-thread.ts'
import { stepBack } from './step-back.ts'
import type { WasmEngine } from './wasm-engine.ts'

/** The thread side of `policy-thread.ts`: one engine, asked for one batch after another. */

const { port, prepared, nice } = workerData as ThreadStart
const say = (message: FromThread): void => port.postMessage(message)

const start = async (): Promise<WasmEngine | undefined> => {
  try {
    // Loading the engine is most of a start's work, so it comes after stepping back.
    const { loadWasmEngine } = await import('./wasm-engine.ts')
    return await loadWasmEngine(prepared, { print: (line) => say({ print: line }) })
  } catch (error) {
    say({ failed: (error as Error).message })
    return undefined
  }
}

stepBack(nice)
const engine = await start()

/** In µs; 0 before Node 23.9. */
const cpu = (): number => {
  if (typeof process.threadCpuUsage !== 'function') return 0
  const { user, system } = process.threadCpuUsage()
  return user + system
}

const replyTo = ({ entrypoint, input }: Question): Reply => {
  try {
    return engine!.answer(entrypoint, input)
  } catch (error) {
    const cause = error instanceof PolicyError ? error.cause : undefined
    const message = error instanceof PolicyError ? error.message : 'the policy could not be evaluated'
    return { error: cause instanceof Error ? `${message}: ${cause.message}` : message }
  }
}

if (engine) {
  port.on('message', (questions: Question[]) => say({ replies: questions.map(replyTo), cpu: cpu() }))
  say({ ready: true, cpu: cpu() })
}
