import { availableParallelism } from 'node:os'
import { type Algorithm, hash } from '@node-rs/argon2'
import { AppError } from '../../platform/problem.ts'
import type { PasswordAlgorithm } from './user.ts'

export interface PasswordDigest {
  digest: string
  algorithm: PasswordAlgorithm
}

export interface PasswordHasher {
  /** Argon2id in PHC form. Throws 503 `server.unavailable` when too many are waiting. */
  hash(password: string): Promise<PasswordDigest>
}

/** OWASP's second set of parameters: 19 MiB, two passes, one lane. */
const parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1, algorithm: 2 satisfies Algorithm.Argon2id }

/** libuv's pool has four threads; one stays free for files and name look-ups. */
const poolThreads = 3

/** Hashes in libuv's threads, at most `concurrency` at a time: a burst of passwords must not starve the rest, nor fill the memory. */
export const createPasswordHasher = ({
  concurrency = Math.min(availableParallelism() * 2, poolThreads),
  maxWaiting = 500,
}: {
  concurrency?: number
  maxWaiting?: number
} = {}): PasswordHasher => {
  let running = 0
  const waiting: (() => void)[] = []

  const enter = async () => {
    if (running < concurrency) {
      running++
      return
    }
    if (waiting.length >= maxWaiting) throw new AppError('server.unavailable', { headers: { 'Retry-After': '5' } })
    // Whoever leaves hands over its place, so `running` stays.
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  const leave = () => {
    const next = waiting.shift()
    if (next) next()
    else running--
  }

  return {
    async hash(password) {
      await enter()
      try {
        return { digest: await hash(password, parameters), algorithm: 'Argon2id' }
      } finally {
        leave()
      }
    },
  }
}
