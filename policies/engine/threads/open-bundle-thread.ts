import { parentPort } from 'node:worker_threads'
import { lowerPriority } from '../../../platform/lower-priority.ts'
import { PolicyError } from '../base/policy-error.ts'
import type { Bundle } from '../bundle/bundle.ts'
import { prepareForThread } from '../instance/runner.ts'
import type { FromThread, OpenAnswer, Opened, OpenTask, ToThread } from './open-bundle.ts'

/** The thread side of `open-bundle.ts`. */

// Where requests need the processor; the compiler that is started from here inherits it.
lowerPriority(10)

/** Loading code is most of a start's work: it comes after the priority is lowered, and only where it is used. */
const read = async (task: OpenTask): Promise<Bundle> => {
  if ('compiled' in task) {
    const { withNewDocuments } = await import('../compile/replace-documents.ts')
    return withNewDocuments(task.compiled, task.sources)
  }
  const { readBundle } = await import('../bundle/bundle.ts')
  if ('bytes' in task) return readBundle(task.bytes, task.verification)
  const { compilePolicies } = await import('../compile/compile.ts')
  return readBundle(await compilePolicies(task))
}

const open = async (task: OpenTask): Promise<Opened> => {
  const { data, ...bundle } = await read(task)
  const documents = new TextEncoder().encode(JSON.stringify(data))
  return { ...bundle, documents, prepared: prepareForThread(bundle.wasm, documents) }
}

const answerTo = (task: OpenTask): Promise<OpenAnswer> =>
  open(task).then(
    (opened) => ({ opened }),
    (error: unknown) => ({
      failed:
        error instanceof PolicyError
          ? { message: error.message, issues: error.issues }
          : { message: 'the bundle cannot be opened', issues: [] },
    }),
  )

parentPort?.on('message', async ({ id, task }: ToThread) => {
  const answer = await answerTo(task)
  parentPort?.postMessage(
    { id, answer } satisfies FromThread,
    'opened' in answer ? [answer.opened.documents.buffer] : [],
  )
})
