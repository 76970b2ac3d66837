import { availableParallelism } from 'node:os'
import { createSemaphore, createSemaphores, type WithPermitOf } from '../../../platform/semaphore.ts'
import { overloaded } from '../../base/errors/problems.ts'
import { type HashingTask, type HashingThread, startHashingThread } from './hashing-thread.ts'
import { type Argon2Parameters, argon2Parameters, type PasswordDigest } from './password-digests.ts'

export interface PasswordHasher {
  /** Argon2id in PHC form, of the password in NFKC. Throws 503 `server.unavailable` when too many are waiting. */
  hash(password: string): Promise<PasswordDigest>
  /**
   * Holds a password against a digest of any algorithm, as it was typed and in NFKC: digests from elsewhere, and older
   * ones of ours, are of the text as it was. False when the digest cannot be read. Throws as `hash`.
   */
  verify(password: string, digest: PasswordDigest): Promise<boolean>
  /**
   * False for a digest that is to be replaced as soon as its password is known: of another algorithm, or with other
   * parameters.
   */
  isCurrent(digest: PasswordDigest): boolean
  /**
   * Runs `work`, of which hashing is a part, when it is its turn: as much at a time as there are threads. So of a
   * burst, who waits has taken nothing else either. `key` is what the work is about: of the same, which can only wait
   * for each other, one has a turn, and the others keep nobody else from theirs. Work that is going to wait for
   * somebody outside releases its turn before. Throws as `hash`.
   */
  inTurn: WithPermitOf
}

/**
 * The same password, however a keyboard composes its letters: `é` is one code point or two, and a letter of full width
 * is a letter.
 */
export const normalizedPassword = (password: string): string => password.normalize('NFKC')

/** More than the thread that JavaScript runs in can keep busy. */
const mostThreads = 4

/**
 * While one waits for the database, another hashes. With more at once everybody else waits behind them, for the thread
 * of JavaScript and for the database.
 */
const turnsFor = (threads: number): number => Math.max(2, threads)

/**
 * Hashes and verifies in threads of its own, one for each processor, that let everybody else go first: whatever else
 * the machine has to do is not held up by a burst of passwords, nor is the memory filled. They are started when they
 * are needed.
 */
export const createPasswordHasher = ({
  threads = Math.min(availableParallelism(), mostThreads),
  maxWaiting = 500,
  parameters = argon2Parameters,
}: {
  threads?: number
  maxWaiting?: number
  /** Of new digests. Cheaper ones are for tests. */
  parameters?: Argon2Parameters
} = {}): PasswordHasher & {
  /** Ends what is under way; nothing is hashed after that. */
  close(): Promise<void>
} => {
  const withPermit = createSemaphore({ permits: threads, maxWaiting, full: overloaded })
  const turns = createSemaphore({ permits: turnsFor(threads), maxWaiting, full: overloaded })
  const oneOfEach = createSemaphores({ permits: 1 })
  const started = new Set<HashingThread>()
  const idle = new Set<HashingThread>()
  let isClosed = false

  const start = () => {
    const thread = startHashingThread(parameters, () => {
      started.delete(thread)
      idle.delete(thread)
    })
    started.add(thread)
    return thread
  }
  const run = (task: HashingTask) =>
    withPermit(async () => {
      if (isClosed) throw overloaded()
      const [thread = start()] = idle
      idle.delete(thread)
      const result = await thread.run(task)
      idle.add(thread)
      return result
    })
  const { memoryCost, timeCost, parallelism } = parameters
  const currentForm = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$`
  const matches = async (password: string, digest: PasswordDigest) => (await run({ password, digest })) === true

  return {
    hash: async (password) => ({
      digest: String(await run({ password: normalizedPassword(password) })),
      algorithm: 'Argon2id',
    }),
    async verify(password, digest) {
      const normalized = normalizedPassword(password)
      const isAsTyped = await matches(password, digest)
      if (normalized === password) return isAsTyped
      // Both, whatever came of the first: the work depends on what was typed, and on nothing that is stored.
      const isNormalized = await matches(normalized, digest)
      return isAsTyped || isNormalized
    },
    isCurrent: ({ digest, algorithm }) => algorithm === 'Argon2id' && digest.startsWith(currentForm),
    inTurn: (key, work) => oneOfEach(key, () => turns(work)),
    async close() {
      isClosed = true
      await Promise.all([...started].map((thread) => thread.end()))
    },
  }
}
