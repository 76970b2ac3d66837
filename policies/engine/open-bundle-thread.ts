import { parentPort, workerData } from 'node:worker_threads'
import { type Bundle, readBundle } from './bundle.ts'
import { compilePolicies } from './compile.ts'
import type { OpenAnswer, Opened, OpenTask } from './open-bundle.ts'
import { PolicyError } from './policy-error.ts'
import { stepBack } from './step-back.ts'
import { prepareEngine } from './wasm-engine.ts'

/** The thread side of `open-bundle.ts`: one bundle, then it ends. */

const read = async (task: OpenTask): Promise<Bundle> =>
  'bytes' in task ? readBundle(task.bytes, task.verification) : readBundle(await compilePolicies(task))

const open = async (): Promise<Opened> => {
  const { data, ...bundle } = await read(workerData as OpenTask)
  const prepared = prepareEngine({ wasm: bundle.wasm, data })
  return { ...bundle, documents: new TextEncoder().encode(JSON.stringify(data)), prepared }
}

// A tenth of a share where requests need the processor; the compiler that is started from here inherits it.
stepBack(10)

const say = (answer: OpenAnswer): void => {
  parentPort!.postMessage(answer, 'opened' in answer ? [answer.opened.documents.buffer] : [])
}

open().then(
  (opened) => say({ opened }),
  (error: unknown) =>
    say({
      failed:
        error instanceof PolicyError
          ? { message: error.message, issues: error.issues }
          : { message: 'the bundle cannot be opened', issues: [] },
    }),
)
