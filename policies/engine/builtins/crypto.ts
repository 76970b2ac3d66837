import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { asString } from '../values/operands.ts'
import { type Builtin, type BuiltinTable, builtin } from './builtin.ts'

const hashOf = (algorithm: string): Builtin =>
  builtin([asString], (text) => createHash(algorithm).update(text).digest('hex'))

const hmacOf = (algorithm: string): Builtin =>
  builtin([asString, asString], (text, key) => createHmac(algorithm, key).update(text).digest('hex'))

const isSame = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b)

export const cryptoBuiltins: BuiltinTable = {
  'crypto.hmac.equal': builtin([asString, asString], (a, b) => isSame(Buffer.from(a), Buffer.from(b))),
  'crypto.hmac.md5': hmacOf('md5'),
  'crypto.hmac.sha1': hmacOf('sha1'),
  'crypto.hmac.sha256': hmacOf('sha256'),
  'crypto.hmac.sha512': hmacOf('sha512'),
  'crypto.md5': hashOf('md5'),
  'crypto.sha1': hashOf('sha1'),
  'crypto.sha256': hashOf('sha256'),
}
