import { createPasswordHasher } from '../../issuer/directory/users/password.ts'
import type { PasswordDigest } from '../../issuer/directory/users/password-digests.ts'
import { answerCalls } from './calls.ts'

/** Passwords without anybody who signs in: as many at a time as an issuer verifies, one after the other, for `seconds`. */
export type HashingLoad = { password: string; digest: PasswordDigest; seconds: number }

/** Answers with how many it was. */
const run = async ({ password, digest, seconds }: HashingLoad): Promise<number> => {
  const hasher = createPasswordHasher()
  const until = performance.now() + seconds * 1_000
  let verified = 0
  const one = async (person: number): Promise<void> => {
    while (performance.now() < until) {
      await hasher.inTurn(String(person), () => hasher.verify(password, digest))
      verified++
    }
  }
  // More than may have a turn: who waits is always there.
  await Promise.all(Array.from({ length: 8 }, (_, person) => one(person)))
  await hasher.close()
  return verified
}

answerCalls({ start: () => {}, run })
