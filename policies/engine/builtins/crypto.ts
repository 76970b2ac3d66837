import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { asString } from '../values/operands.ts'
import type { HostBuiltin } from './index.ts'

const hashOf =
  (algorithm: string): HostBuiltin =>
  ([text]) =>
    createHash(algorithm).update(asString(text)).digest('hex')

const hmacOf =
  (algorithm: string): HostBuiltin =>
  ([text, key]) =>
    createHmac(algorithm, asString(key)).update(asString(text)).digest('hex')

const isSame = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)

export const cryptoBuiltins: Record<string, HostBuiltin> = {
  'crypto.hmac.equal': ([a, b]) => isSame(Buffer.from(asString(a)), Buffer.from(asString(b))),
  'crypto.hmac.md5': hmacOf('md5'),
  'crypto.hmac.sha1': hmacOf('sha1'),
  'crypto.hmac.sha256': hmacOf('sha256'),
  'crypto.hmac.sha512': hmacOf('sha512'),
  'crypto.md5': hashOf('md5'),
  'crypto.sha1': hashOf('sha1'),
  'crypto.sha256': hashOf('sha256'),
}
