import { createHash, getHashes, pbkdf2Sync, timingSafeEqual } from 'node:crypto'
import { verifySync as verifyArgon2 } from '@node-rs/argon2'
import { verifySync as verifyBcrypt } from '@node-rs/bcrypt'
import { z } from 'zod'
import type { PasswordAlgorithm } from './user.ts'

/**
 * The digests that users may bring from elsewhere, as rows: how each is read, and how a password is held against it.
 * None of them runs for more than some seconds or takes more than 256 MB: a digest names its own cost, and whoever
 * imports one must not be able to take the machine.
 */
interface DigestKind {
  /** Of this algorithm, well-formed, and within our bounds. */
  isReadable(digest: string): boolean
  /** Only for readable ones. May take seconds: it is called in threads for that alone. */
  verify(password: string, digest: string): boolean
}

const maxArgon2MemoryKiB = 262_144
/** Memory times passes. */
const maxArgon2Work = 8 * maxArgon2MemoryKiB
/** Each step doubles it; 16 is about five seconds. */
const maxBcryptCost = 16
const maxPbkdf2Iterations = 5_000_000

const argon2 = (variant: 'i' | 'd' | 'id'): DigestKind => ({
  isReadable(digest) {
    const found =
      /^\$argon2(id|i|d)\$(?:v=(?:16|19)\$)?m=(\d{1,7}),t=(\d{1,5}),p=(\d{1,2})\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/.exec(
        digest,
      )
    if (found?.[1] !== variant) return false
    const [memory, passes, lanes] = [Number(found[2]), Number(found[3]), Number(found[4])]
    return memory <= maxArgon2MemoryKiB && memory * passes <= maxArgon2Work && lanes >= 1 && lanes <= 16
  },
  verify: (password, digest) => verifyArgon2(digest, password),
})

const bcrypt: DigestKind = {
  isReadable(digest) {
    const cost = Number(/^\$2[abxy]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(digest)?.[1] ?? 0)
    return cost >= 4 && cost <= maxBcryptCost
  },
  verify: (password, digest) => verifyBcrypt(password, digest),
}

const hexadecimal = (algorithm: string, length: number): DigestKind => ({
  isReadable: (digest) => digest.length === length && /^[0-9a-f]*$/i.test(digest),
  verify: (password, digest) => isHexOf(createHash(algorithm).update(password).digest(), digest),
})

const isHexOf = (bytes: Uint8Array, hex: string): boolean => {
  const expected = Buffer.from(hex, 'hex')
  return expected.length * 2 === hex.length && expected.length === bytes.length && timingSafeEqual(expected, bytes)
}

/** `["sha256", ["salt", "@"], "<hex>"]`: the hash of the arguments in a row, `@` being the password. */
const legacyForm = z.tuple([z.string(), z.array(z.string()).max(16), z.string().regex(/^(?:[0-9a-f]{2})+$/i)])

const hashNames = new Set(getHashes().map((name) => name.toLowerCase()))

const legacyOf = (digest: string) => {
  try {
    const { data } = legacyForm.safeParse(JSON.parse(digest))
    return data && { algorithm: data[0].toLowerCase(), parts: data[1], expected: data[2] }
  } catch {
    return undefined
  }
}

/** `["pbkdf2", ["salt", "1000", "20", "sha512", "@"], "<hex>"]` */
const pbkdf2Parameters = ([salt, iterations, length, hash, password]: readonly string[]) => {
  const numbers = { iterations: Number(iterations), length: Number(length) }
  const fits =
    salt !== undefined &&
    hash !== undefined &&
    password === '@' &&
    hashNames.has(hash.toLowerCase()) &&
    Number.isInteger(numbers.iterations) &&
    Number.isInteger(numbers.length) &&
    numbers.iterations >= 1 &&
    numbers.iterations <= maxPbkdf2Iterations &&
    numbers.length >= 1 &&
    numbers.length <= 1024
  return fits ? { salt, hash, ...numbers } : undefined
}

const legacy: DigestKind = {
  isReadable(digest) {
    const form = legacyOf(digest)
    if (form === undefined) return false
    if (form.algorithm === 'pbkdf2') return pbkdf2Parameters(form.parts) !== undefined
    // Without the password in it, every password would do.
    return hashNames.has(form.algorithm) && form.parts.includes('@')
  },
  verify(password, digest) {
    const form = legacyOf(digest)
    if (form === undefined) return false
    const { algorithm, parts, expected } = form
    if (algorithm === 'pbkdf2') {
      const parameters = pbkdf2Parameters(parts)
      if (parameters === undefined) return false
      const { salt, iterations, length, hash } = parameters
      return isHexOf(pbkdf2Sync(password, salt, iterations, length, hash), expected)
    }
    const text = parts.map((part) => (part === '@' ? password : part)).join('')
    return isHexOf(createHash(algorithm).update(text).digest(), expected)
  },
}

const kinds: Readonly<Record<PasswordAlgorithm, DigestKind>> = {
  Argon2i: argon2('i'),
  Argon2d: argon2('d'),
  Argon2id: argon2('id'),
  Bcrypt: bcrypt,
  MD5: hexadecimal('md5', 32),
  SHA1: hexadecimal('sha1', 40),
  SHA256: hexadecimal('sha256', 64),
  Legacy: legacy,
}

export interface PasswordDigest {
  digest: string
  algorithm: PasswordAlgorithm
}

/** Whether a password could ever be held against it. */
export const isReadableDigest = ({ digest, algorithm }: PasswordDigest): boolean => kinds[algorithm].isReadable(digest)

/** False also for a digest that cannot be read: nobody gets in by a record that we do not understand. */
export const matchesDigest = (password: string, { digest, algorithm }: PasswordDigest): boolean => {
  const kind = kinds[algorithm]
  if (!kind.isReadable(digest)) return false
  try {
    return kind.verify(password, digest)
  } catch {
    // The libraries throw for what is well-formed to us but not to them, such as a salt that is no base64.
    return false
  }
}

/** What a digest of ours costs whoever makes it; `memoryCost` in KiB. */
export interface Argon2Parameters {
  memoryCost: number
  timeCost: number
  parallelism: number
}

/** OWASP's second set of parameters: 19 MiB, two passes, one lane. */
export const argon2Parameters: Argon2Parameters = { memoryCost: 19_456, timeCost: 2, parallelism: 1 }
