import { readPhone } from './phone.ts'

/** What a person types to say who they are, read. */
export interface Identifier {
  type: 'username' | 'email' | 'phone'
  /** Every way of writing the same thing is the same text here: trimmed, NFKC, lower case; a phone's digits (E.164). */
  canonical: string
  /** How the directory may have it. Case does not count where only one person fits. */
  spellings: readonly string[]
}

const maxLength = 256

/** Undefined for what can be nobody's. */
export const readIdentifier = (typed: string): Identifier | undefined => {
  const trimmed = typed.trim()
  if (trimmed === '' || trimmed.length > maxLength) return undefined
  const text = trimmed.normalize('NFKC').trim()
  // What letters look like is not always what they are: both are looked up, and counted as one.
  const spellings = [...new Set([trimmed, text])]
  if (text.includes('@')) return { type: 'email', canonical: text.toLowerCase(), spellings }
  const phone = phoneOf(text)
  if (phone) return { type: 'phone', ...phone }
  return { type: 'username', canonical: text.toLowerCase(), spellings }
}

/** `+49 170 1234567`, `0049 (0)170-123.45.67`: user names begin with a letter, so nothing else looks like this. */
const phoneOf = (text: string): Omit<Identifier, 'type'> | undefined => {
  if (!/^\+?[\d\s()./-]{3,}$/u.test(text)) return undefined
  const digits = text.replace(/\D/g, '').replace(/^00/, '')
  try {
    const { number, spellings } = readPhone(digits)
    return { canonical: number, spellings }
  } catch {
    return { canonical: digits, spellings: [digits] }
  }
}
