import { availableParallelism } from 'node:os'
import { type Algorithm, hash } from '@node-rs/argon2'
import { createSemaphore } from '../../../platform/semaphore.ts'
import { overloaded } from '../../base/errors/problems.ts'
import { matchesDigest, type PasswordDigest } from './password-digests.ts'

export interface PasswordHasher {
  /** Argon2id in PHC form, of the password in NFKC. Throws 503 `server.unavailable` when too many are waiting. */
  hash(password: string): Promise<PasswordDigest>
  /**
   * Holds a password against a digest of any algorithm, as it was typed and in NFKC: digests from elsewhere, and older
   * ones of ours, are of the text as it was. False when the digest cannot be read. Throws as `hash`.
   */
  verify(password: string, digest: PasswordDigest): Promise<boolean>
}

/** OWASP's second set of parameters: 19 MiB, two passes, one lane. */
const parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1, algorithm: 2 satisfies Algorithm.Argon2id }
const currentForm = `$argon2id$v=19$m=${parameters.memoryCost},t=${parameters.timeCost},p=${parameters.parallelism}$`

/**
 * False for a digest that is to be replaced as soon as its password is known: of another algorithm, or with other
 * parameters.
 */
export const isCurrentDigest = ({ digest, algorithm }: PasswordDigest): boolean =>
  algorithm === 'Argon2id' && digest.startsWith(currentForm)

/**
 * The same password, however a keyboard composes its letters: `é` is one code point or two, and a letter of full width
 * is a letter.
 */
export const normalizedPassword = (password: string): string => password.normalize('NFKC')

/** libuv's pool has four threads; one stays free for files and name look-ups. */
const poolThreads = 3

/**
 * Hashes and verifies in libuv's threads, at most `concurrency` at a time: a burst of passwords must not starve the
 * rest, nor fill the memory.
 */
export const createPasswordHasher = ({
  concurrency = Math.min(availableParallelism() * 2, poolThreads),
  maxWaiting = 500,
}: {
  concurrency?: number
  maxWaiting?: number
} = {}): PasswordHasher => {
  const withPermit = createSemaphore({ permits: concurrency, maxWaiting, full: overloaded })
  return {
    hash: (password) =>
      withPermit(async () => ({
        digest: await hash(normalizedPassword(password), parameters),
        algorithm: 'Argon2id' as const,
      })),
    async verify(password, digest) {
      const normalized = normalizedPassword(password)
      const isAsTyped = await withPermit(() => matchesDigest(password, digest))
      if (normalized === password) return isAsTyped
      // Both, whatever came of the first: the work depends on what was typed, and on nothing that is stored.
      const isNormalized = await withPermit(() => matchesDigest(normalized, digest))
      return isAsTyped || isNormalized
    },
  }
}
