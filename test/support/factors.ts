import { createHmacs } from '../../issuer/base/hmac-keys-store.ts'
import { createFactors, newTotpSecret, readTotpSecret } from '../../issuer/directory/users/factors/index.ts'
import { hotp, totpStep } from '../../issuer/directory/users/factors/totp.ts'
import type { TestSignIn } from './sign-in.ts'

/** An authenticator app. `steps`: how far its clock is off, in steps of 30 s. */
export const totpCode = (secret: string, steps = 0): string =>
  hotp(readTotpSecret(secret)!, totpStep(new Date()) + steps)

/** What somebody has to sign in with, beside a password. */
export const factorsOf = async ({ database, envelope, sql }: Pick<TestSignIn, 'database' | 'envelope' | 'sql'>) => {
  const factors = createFactors({ envelope, hmac: await createHmacs(database, envelope) })
  return {
    /** Its secret. */
    async totp(userId: string): Promise<string> {
      const secret = newTotpSecret()
      await database.transaction((trx) => factors.bindTotp(trx, { userId, secret }))
      return secret
    },
    backupCodes: (userId: string): Promise<string[]> =>
      database.transaction((trx) => factors.replaceBackupCodes(trx, userId)),
    async verifiedEmail(userId: string): Promise<void> {
      await sql('UPDATE users SET email_verified_at = now() WHERE id = $1', [userId])
    },
  }
}

/** Text of the first element with this class, without its markup. */
export const textOf = (page: { text: string }, className: string): string =>
  (new RegExp(`class="${className}"[^>]*>([\\s\\S]*?)</(?:p|ol|div)>`).exec(page.text)?.[1] ?? '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
