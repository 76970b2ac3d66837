import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createClaimsSandbox } from '../../issuer/claims/sandbox/sandbox.ts'
import { answerCalls } from '../harness/calls.ts'

export type SandboxRound = { script: string; input: string; workers: number; seconds: number }

/** Calls a second of our sandbox, kept busy. */
const ours = async ({ script, input, workers, seconds }: SandboxRound): Promise<number> => {
  const sandbox = createClaimsSandbox({ workers })
  await sandbox.start()
  const run = async (milliseconds: number) => {
    const end = performance.now() + milliseconds
    let calls = 0
    const drive = async () => {
      for (; performance.now() < end; calls++) {
        const { outcome } = await sandbox.run({ script, input, environmentVariables: {}, owner: 'bench' })
        if (!('returned' in outcome)) throw new Error(`the script failed: ${JSON.stringify(outcome)}`)
      }
    }
    await Promise.all(Array.from({ length: 4 * workers }, drive))
    return calls
  }
  await run(500)
  const calls = await run(seconds * 1_000)
  await sandbox.close()
  return calls / seconds
}

/** Calls a second of as many bare threads. */
const bare = async ({ workers, ...workerData }: SandboxRound): Promise<number> => {
  const threads = Array.from(
    { length: workers },
    () => new Worker(new URL('../peers/bare-quickjs.ts', import.meta.url), { workerData }),
  )
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  const counts = threads.map((thread) => once(thread, 'message'))
  for (const thread of threads) thread.postMessage('go')
  const calls = (await Promise.all(counts)).reduce((sum, [count]) => sum + count, 0)
  await Promise.all(threads.map((thread) => thread.terminate()))
  return calls / workerData.seconds
}

answerCalls({ start: async () => undefined, ours, bare })
