import { parentPort, workerData } from 'node:worker_threads'
import { type Algorithm, hashSync } from '@node-rs/argon2'
import { lowerPriority } from '../../../platform/lower-priority.ts'
import type { HashingTask } from './hashing-thread.ts'
import { type Argon2Parameters, matchesDigest } from './password-digests.ts'

/** The thread side of `hashing-thread.ts`. */

if (!parentPort) throw new Error('This file is the beginning of a thread.')
const port = parentPort
const parameters = workerData as Argon2Parameters

// About a third of a share where others want the processor. With much less nobody gets in on a busy machine.
lowerPriority(5)

port.on('message', ({ password, digest }: HashingTask) => {
  const result =
    digest === undefined
      ? hashSync(password, { ...parameters, algorithm: 2 satisfies Algorithm.Argon2id })
      : matchesDigest(password, digest)
  port.postMessage(result)
})
