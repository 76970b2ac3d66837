import { randomBytes, randomFillSync } from 'node:crypto'

const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz'
const alphanumerics = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

// Drawn ahead: a call to the generator costs ~3 µs however few bytes it is for. Every byte is used once and then
// overwritten.
const pool = Buffer.alloc(4_096)
let poolUsed = pool.length

/** Where `bytes` fresh ones begin; whoever reads them overwrites them. */
const draw = (bytes: number): number => {
  if (poolUsed + bytes > pool.length) {
    randomFillSync(pool)
    poolUsed = 0
  }
  const start = poolUsed
  poolUsed += bytes
  return start
}

const randomByte = (): number => {
  const start = draw(1)
  const byte = pool[start]!
  pool[start] = 0
  return byte
}

const randomFrom = (characters: string, length: number): string => {
  // Rejection sampling keeps every character equally likely.
  const limit = 256 - (256 % characters.length)
  let text = ''
  while (text.length < length) {
    const byte = randomByte()
    if (byte < limit) text += characters[byte % characters.length]
  }
  return text
}

/**
 * A record id: 21 characters of [0-9a-z] (108 bits). Users and organizations have 12 (62 bits), as existing SDKs
 * expect.
 */
export const newId = (length = 21): string => randomFrom(alphabet, length)

/** `length` characters of [0-9A-Za-z], 5.95 bits each: for client secrets (43 → 256 bits), signing keys (32). */
export const randomAlphanumerics = (length: number): string => randomFrom(alphanumerics, length)

/** `bytes` random bytes (4 096 at most) in base64url, behind `prefix`. Default 32 bytes = 256 bits. */
export const randomToken = (prefix = '', bytes = 32): string => {
  const start = draw(bytes)
  const token = prefix + pool.toString('base64url', start, start + bytes)
  pool.fill(0, start, start + bytes)
  return token
}

let hexDigits = ''
let hexDigitsUsed = 0

/** `bytes` random bytes (64 at most) in hexadecimal: ids of traces (16) and spans (8), which are no secrets. */
export const randomHex = (bytes: number): string => {
  if (hexDigitsUsed + 2 * bytes > hexDigits.length) {
    hexDigits = randomBytes(4_096).toString('hex')
    hexDigitsUsed = 0
  }
  hexDigitsUsed += 2 * bytes
  return hexDigits.slice(hexDigitsUsed - 2 * bytes, hexDigitsUsed)
}

// The last 10 bytes of many ids at once: a call to the generator costs ~3 µs however few bytes it is for.
const tails = Buffer.alloc(10 * 256)
let tailDigits = ''
let tailsUsed = 0

const refillTails = () => {
  randomFillSync(tails)
  for (let start = 0; start < tails.length; start += 10) {
    // Version and variant, RFC 9562 §4.1 and §4.2.
    tails[start] = 0x70 | (tails[start]! & 0x0f)
    tails[start + 2] = 0x80 | (tails[start + 2]! & 0x3f)
  }
  tailDigits = tails.toString('hex')
  tailsUsed = 0
}

let headTime = Number.NaN
let head = ''

/** The 48 bits of the time: the same for all ids of a millisecond. */
const headOf = (now: number): string => {
  if (now === headTime) return head
  headTime = now
  const digits = now.toString(16).padStart(12, '0')
  head = `${digits.slice(0, 8)}-${digits.slice(8)}`
  return head
}

/**
 * UUID version 7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random; sorts by time across processes within a
 * millisecond.
 */
export const uuidv7 = (now = Date.now()): string => {
  if (tailsUsed === tailDigits.length) refillTails()
  const start = tailsUsed
  tailsUsed += 20
  const tail = tailDigits
  return `${headOf(now)}-${tail.slice(start, start + 4)}-${tail.slice(start + 4, start + 8)}-${tail.slice(start + 8, start + 20)}`
}
