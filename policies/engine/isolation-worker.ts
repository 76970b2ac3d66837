import { setPriority } from 'node:os'
import { workerData } from 'node:worker_threads'
import type { FromWorker, ToWorker, WorkerStart } from './isolation.ts'
import { PolicyError } from './policy-error.ts'
import type { WasmEngine } from './wasm-engine.ts'

/** The thread side of `isolation.ts`: one engine, asked for one batch after another. */

const { port, wasm, data, reads, nice } = workerData as WorkerStart
const say = (message: FromWorker): void => port.postMessage(message)

const copyOf = (memory: SharedArrayBuffer): Uint8Array<ArrayBuffer> => new Uint8Array(new Uint8Array(memory))

/** On Linux that is of this thread alone, elsewhere of the whole process. Best effort: a sandbox may not allow it. */
const stepBack = (): void => {
  try {
    if (process.platform === 'linux' && nice > 0) setPriority(nice)
  } catch {}
}

const start = async (): Promise<WasmEngine | undefined> => {
  try {
    // Loading the engine is most of a start's work, so it comes after stepping back.
    const { createWasmEngine } = await import('./wasm-engine.ts')
    return createWasmEngine({
      wasm: copyOf(wasm),
      data: JSON.parse(new TextDecoder().decode(copyOf(data))),
      reads,
      print: (line) => say({ print: line }),
    })
  } catch (error) {
    say({ failed: (error as Error).message })
    return undefined
  }
}

stepBack()
const engine = await start()

/** In µs; 0 before Node 23.9. */
const cpu = (): number => {
  if (typeof process.threadCpuUsage !== 'function') return 0
  const { user, system } = process.threadCpuUsage()
  return user + system
}

const answerTo = ({ entrypoint, input }: ToWorker[number]): { value: string | undefined } | { error: string } => {
  try {
    return { value: JSON.stringify(engine!.evaluate(entrypoint, input === undefined ? undefined : JSON.parse(input))) }
  } catch (error) {
    const cause = error instanceof PolicyError ? error.cause : undefined
    const message = error instanceof PolicyError ? error.message : 'the policy could not be evaluated'
    return { error: cause instanceof Error ? `${message}: ${cause.message}` : message }
  }
}

if (engine) {
  port.on('message', (batch: ToWorker) => {
    const answers = batch.map(answerTo)
    say({ answers, cpu: cpu() })
  })
  say({ ready: true, cpu: cpu() })
}
