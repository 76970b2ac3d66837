import { randomBytes, randomFillSync } from 'node:crypto'

const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz'
const alphanumerics = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const randomFrom = (characters: string, length: number): string => {
  // Rejection sampling keeps every character equally likely.
  const limit = 256 - (256 % characters.length)
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length + 8)) {
      if (byte < limit && text.length < length) text += characters[byte % characters.length]
    }
  }
  return text
}

/** A record id: 21 characters of [0-9a-z] (108 bits). Users and organizations have 12 (62 bits), as existing SDKs expect. */
export const newId = (length = 21): string => randomFrom(alphabet, length)

/** `length` characters of [0-9A-Za-z], 5.95 bits each: for client secrets (43 → 256 bits), signing keys (32). */
export const randomAlphanumerics = (length: number): string => randomFrom(alphanumerics, length)

/** `bytes` random bytes in base64url, behind `prefix`. Default 32 bytes = 256 bits. */
export const randomToken = (prefix = '', bytes = 32): string => prefix + randomBytes(bytes).toString('base64url')

const uuidBytes = Buffer.alloc(16)

// Fetched for many ids at once: a call to the generator costs ~3 µs however few bytes it is for.
const randomPool = Buffer.alloc(10 * 256)
let randomUsed = randomPool.length

/** UUID version 7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random; sorts by time across processes within a millisecond. */
export const uuidv7 = (now = Date.now()): string => {
  if (randomUsed === randomPool.length) {
    randomFillSync(randomPool)
    randomUsed = 0
  }
  randomPool.copy(uuidBytes, 6, randomUsed, randomUsed + 10)
  randomUsed += 10
  uuidBytes.writeUIntBE(now, 0, 6)
  uuidBytes[6] = 0x70 | (uuidBytes[6]! & 0x0f)
  uuidBytes[8] = 0x80 | (uuidBytes[8]! & 0x3f)
  const hex = uuidBytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
