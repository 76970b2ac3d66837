import { verify } from '@node-rs/argon2'

export type PasswordRound = { password: string; digest: string; times: number }

/** CPU microseconds of holding a password against its digest, two at a time. */
export const passwordMicros = async ({ password, digest, times }: PasswordRound): Promise<number> => {
  const { user, system } = process.cpuUsage()
  let left = times
  const some = async () => {
    while (left-- > 0) if (!(await verify(digest, password))) throw new Error('a password that is not of its digest')
  }
  await Promise.all([some(), some()])
  const spent = process.cpuUsage()
  return (spent.user + spent.system - user - system) / times
}

/**
 * Milliseconds that are a bar, as a multiple of what Argon2 costs by itself: they are of a processor that hashes 85
 * passwords a second, and processors differ by more than what is measured.
 */
export const ofHashing = (barMs: number): number => (barMs * 85) / 1000
