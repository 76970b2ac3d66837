import type { Worker } from 'node:worker_threads'
import { moduleUrl } from '../../../platform/module-url.ts'
import { startWorkerThread } from '../../../platform/worker-thread.ts'
import type { Argon2Parameters, PasswordDigest } from './password-digests.ts'

/** To hash a password, or to hold one against a digest. */
export type HashingTask = { password: string; digest?: PasswordDigest }

/** A thread that hashes passwords, one at a time. */
export interface HashingThread {
  /** The digest, or whether it fits. Rejects when the thread has ended, which a task does that fails. */
  run(task: HashingTask): Promise<string | boolean>
  end(): Promise<unknown>
}

/** `onEnd` is called when there is no thread any more, whatever ended it; its digests have these `parameters`. */
export const startHashingThread = (parameters: Argon2Parameters, onEnd: () => void): HashingThread => {
  const worker: Worker = startWorkerThread(moduleUrl('./hashing-worker', import.meta.url), {
    // Digests have no business with the environment.
    env: {},
    workerData: parameters,
    name: 'passwords',
  })
  let running: PromiseWithResolvers<string | boolean> | undefined
  const fail = (error: Error) => running?.reject(error)
  worker.on('message', (result: string | boolean) => running?.resolve(result))
  worker.on('error', fail)
  worker.on('exit', () => {
    onEnd()
    fail(new Error('a thread that hashes passwords has ended'))
  })
  worker.unref()

  return {
    async run(task) {
      running = Promise.withResolvers()
      // A thread that waits for work keeps no process alive; one that works does.
      worker.ref()
      try {
        worker.postMessage(task)
        return await running.promise
      } finally {
        worker.unref()
      }
    },
    end: () => worker.terminate(),
  }
}
