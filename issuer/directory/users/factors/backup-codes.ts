import { randomBytes } from 'node:crypto'
import { asCrockford, toCrockford } from './base32.ts'

const count = 10
/** Of 5 bits each: 50 together. */
const length = 10

/** Ten codes in two groups, as `4WJ7K-Q2M9X`. They are shown once; the database has HMACs. */
export const newBackupCodes = (): string[] => {
  const codes = new Set<string>()
  while (codes.size < count) codes.add(toCrockford(randomBytes(7)).slice(0, length))
  return [...codes].map((code) => `${code.slice(0, length / 2)}-${code.slice(length / 2)}`)
}

/** What somebody typed as digests know it, in any case, with or without blanks. Undefined when it can be no code. */
export const readBackupCode = (typed: string): string | undefined => {
  const code = typed.length > 64 ? '' : asCrockford(typed)
  return /^[0-9A-HJKMNP-TV-Z]{10}$/.test(code) ? code : undefined
}
