import { parentPort, workerData } from 'node:worker_threads'
import { hostBuiltins } from './builtins/index.ts'
import { type Bundle, readBundle } from './bundle.ts'
import { compilePolicies } from './compile.ts'
import type { OpenAnswer, Opened, OpenTask } from './open-bundle.ts'
import { PolicyError } from './policy-error.ts'
import { prepareEngine } from './wasm-engine.ts'

/** The thread side of `open-bundle.ts`: one bundle, then it ends. */

const read = async (task: OpenTask): Promise<Bundle> =>
  'bytes' in task ? readBundle(task.bytes, task.verification) : readBundle(await compilePolicies(task))

const names = new Map(Object.entries(hostBuiltins).map(([name, builtin]) => [builtin, name]))

const open = async (): Promise<Opened> => {
  const { data, ...bundle } = await read(workerData as OpenTask)
  const { module, image } = prepareEngine({ wasm: bundle.wasm, data })
  const builtins = image.builtins.map((builtin) => names.get(builtin)!)
  return { ...bundle, documents: new TextEncoder().encode(JSON.stringify(data)), module, image: { ...image, builtins } }
}

const say = (answer: OpenAnswer): void => {
  const moved =
    'opened' in answer
      ? [answer.opened.image.bytes.buffer as ArrayBuffer, answer.opened.documents.buffer as ArrayBuffer]
      : []
  parentPort!.postMessage(answer, moved)
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
