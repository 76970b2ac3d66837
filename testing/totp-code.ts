import { hotp, readTotpSecret, totpStep } from '../issuer/directory/users/factors/totp.ts'

/** The code that an authenticator app shows at a time (RFC 6238). Throws for what is no secret in base32. */
export const totpCode = (secret: string, now: Date = new Date()): string => {
  const bytes = readTotpSecret(secret)
  if (!bytes) throw new Error('The secret of an authenticator app is 16 to 64 bytes in base32.')
  return hotp(bytes, totpStep(now))
}
