import { constants, createHmac, createSecretKey, type KeyObject, timingSafeEqual, verify } from 'node:crypto'
import type { Meter } from '../base/meter.ts'
import { decodeBase64url } from '../go/base64.ts'
import { anyToken, jsonObject, type VerificationKey, verificationKeys } from '../jwt/keys.ts'
import { asObject, asString, refuse, textOf } from '../values/operands.ts'
import { compareNumbers } from '../values/order.ts'
import { isNumber, type RegoObject, toDouble, type Value } from '../values/value.ts'
import { verificationCost } from '../x509/key-cost.ts'
import { type Builtin, type BuiltinTable, builtin, type EvaluationContext } from './builtin.ts'

// --- reading

/** The three parts as they stand (RFC 7515 §7.1); what a function does not need of them is not read. */
interface Token {
  header: string
  payload: string
  signature: string
}

const tokenOf = (text: string): Token => {
  const [header, payload, signature, ...others] = text.split('.')
  if (header === undefined || payload === undefined || signature === undefined || others.length > 0) {
    return refuse('a token has three parts')
  }
  return { header, payload, signature }
}

const bytesOf = (part: string): Buffer => decodeBase64url(part) ?? refuse('a part of the token is not base64url')

const headerOf = ({ header }: Token): RegoObject => {
  const members = jsonObject(textOf(bytesOf(header)))
  return members.has('enc') ? refuse('the token is encrypted') : members
}

const deepest = 8

const unquoted = (text: string): string => {
  let [from, to] = [0, text.length]
  const isQuote = (at: number) => text[at] === '"' || text[at] === "'"
  while (from < to && isQuote(from)) from++
  while (to > from && isQuote(to - 1)) to--
  return text.slice(from, to)
}

/** Of a token that is taken apart, for each character. */
const unitsToDecode = 5

/** A token in a token may stand in quotes here. */
const decode = (text: string, meter: Meter, depth = 0): Value => {
  meter.spend(unitsToDecode * text.length)
  const token = tokenOf(text)
  const header = headerOf(token)
  const payload = textOf(bytesOf(token.payload))
  if (header.get('cty') === 'JWT') {
    if (depth === deepest) refuse('tokens are nested too deeply')
    return decode(unquoted(payload), meter, depth + 1)
  }
  return [header, jsonObject(payload), bytesOf(token.signature).toString('hex')]
}

// --- verifying

/** Where other keys have a type. */
const secretKey = 'secret'

type Check = (key: KeyObject, signed: string, signature: Buffer) => boolean

const rsa =
  (hash: string, padding: number): Check =>
  (key, signed, signature) =>
    verify(hash, Buffer.from(signed), { key, padding, saltLength: constants.RSA_PSS_SALTLEN_AUTO }, signature)

const ecdsa =
  (hash: string): Check =>
  (key, signed, signature) =>
    verify(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }, signature)

const hmac =
  (hash: string): Check =>
  (key, signed, signature) => {
    const expected = createHmac(hash, key).update(signed).digest()
    return expected.length === signature.length && timingSafeEqual(expected, signature)
  }

/** RFC 7518 §3.1, RFC 8037: algorithms, and the kind of key that each needs. */
const algorithms = new Map<string, { keyType: string; check: Check }>()
for (const size of ['256', '384', '512']) {
  algorithms.set(`RS${size}`, { keyType: 'rsa', check: rsa(`sha${size}`, constants.RSA_PKCS1_PADDING) })
  algorithms.set(`PS${size}`, { keyType: 'rsa', check: rsa(`sha${size}`, constants.RSA_PKCS1_PSS_PADDING) })
  algorithms.set(`ES${size}`, { keyType: 'ec', check: ecdsa(`sha${size}`) })
  algorithms.set(`HS${size}`, { keyType: secretKey, check: hmac(`sha${size}`) })
}
algorithms.set('EdDSA', {
  keyType: 'ed25519',
  check: (key, signed, signature) => verify(null, Buffer.from(signed), key, signature),
})

/** Whether the key made the signature by this algorithm; one of another kind did not. */
const isSigned = (
  algorithm: string,
  key: KeyObject,
  { header, payload }: Token,
  signature: Buffer,
  { spend }: Meter,
): boolean => {
  const found = algorithms.get(algorithm)
  if (!found || found.keyType !== (key.asymmetricKeyType ?? secretKey)) return false
  spend(found.keyType === secretKey ? header.length + payload.length : verificationCost(key))
  return found.check(key, `${header}.${payload}`, signature)
}

/** What a header says that counts (RFC 7515 §4.1), each a text where it is there. */
const headerTexts = (header: RegoObject): { alg: string; kid: string; cty: string } => {
  const text = (name: string): string => asString(header.has(name) ? header.get(name) : '')
  text('typ')
  return { alg: text('alg'), kid: text('kid'), cty: text('cty') }
}

/** The key that the token names, if it is there; else all that are not meant for another algorithm. */
const candidates = (keys: readonly VerificationKey[], { alg, kid }: { alg: string; kid: string }) => {
  const named = kid === '' ? undefined : keys.find((one) => one.kid === kid)
  return named ? [named] : keys.filter((one) => one.alg === undefined || one.alg === alg)
}

const verifyMac = (algorithm: string): Builtin =>
  builtin([asString, asString], (text, secret, meter) => {
    const token = tokenOf(text)
    return isSigned(algorithm, secretOf(secret), token, bytesOf(token.signature), meter)
  })

const verifySignature = (algorithm: string): Builtin =>
  builtin([asString, asString], (text, given, meter) => {
    const token = tokenOf(text)
    const keys = verificationKeys(given, meter)
    const signature = bytesOf(token.signature)
    const header = headerOf(token)
    requireCriticalList(header)
    return candidates(keys, headerTexts(header)).some(
      ({ key }) => key.type === 'public' && isSigned(algorithm, key, token, signature, meter),
    )
  })

const secretOf = (text: string): KeyObject => createSecretKey(Buffer.from(text))

// --- decode_verify

const constraintNames = ['cert', 'secret', 'alg', 'iss', 'aud', 'time']

interface Constraints {
  keys: readonly VerificationKey[]
  /** Empty: any. */
  alg: string
  iss: string
  /** Empty: the token must name none. */
  aud: string
  /** Seconds since 1970, as a double: that is how OPA compares. */
  time: number
}

const readConstraints = (object: RegoObject, context: EvaluationContext): Constraints => {
  const texts: Record<string, string> = {}
  let time: number | undefined
  for (const [name, value] of object) {
    if (typeof name !== 'string' || !constraintNames.includes(name)) refuse('unknown constraint')
    else if (name !== 'time') texts[name] = asString(value)
    else time = isNumber(value) ? toDouble(value) / 1e9 : refuse('time must be a number')
  }
  if (time !== undefined && !(time >= 0 && Number.isFinite(time))) refuse('time is out of range')
  const { cert, secret = '', alg = '', iss = '', aud = '' } = texts
  if ((cert === undefined) === (secret === '')) refuse('one of cert and secret is needed')
  const keys = cert === undefined ? [anyToken(secretOf(secret))] : verificationKeys(cert, context)
  return { keys, alg, iss, aud, time: time ?? Number(context.nowNs()) / 1e9 }
}

const claimTime = (payload: RegoObject, name: string) => {
  const value = payload.get(name)
  return value === undefined || isNumber(value) ? value : refuse(`${name} must be a number`)
}

const holds = (payload: RegoObject, { iss, aud: wanted, time }: Constraints): boolean => {
  if (iss !== '' && payload.get('iss') !== iss) return false
  const aud = payload.has('aud') ? payload.get('aud') : ''
  if (Array.isArray(aud) ? !aud.includes(wanted) : aud !== wanted) return false
  const exp = claimTime(payload, 'exp')
  if (exp !== undefined && compareNumbers(time, exp) >= 0) return false
  const nbf = claimTime(payload, 'nbf')
  return nbf === undefined || compareNumbers(time, nbf) >= 0
}

const requireCriticalList = (header: RegoObject): void => {
  const critical = header.get('crit')
  if (header.has('crit') && !(Array.isArray(critical) && typeof critical[0] === 'string')) refuse('crit must be a list')
}

const decodeVerify = (text: string, object: RegoObject, context: EvaluationContext): Value => {
  const refused: Value = [false, new Map(), new Map()]
  const constraints = readConstraints(object, context)
  let current = text
  for (let depth = 0; depth <= deepest; depth++) {
    context.spend(unitsToDecode * current.length)
    const token = tokenOf(current)
    const header = headerOf(token)
    const { alg, kid, cty } = headerTexts(header)
    requireCriticalList(header)
    // RFC 7515 §4.1.11: what a token calls critical must be understood; nothing is.
    if (alg === '' || header.has('crit')) return refused
    if (constraints.alg !== '' && constraints.alg !== alg) return refused
    const signature = bytesOf(token.signature)
    const keys = candidates(constraints.keys, { alg, kid })
    if (!keys.some(({ key }) => isSigned(alg, key, token, signature, context))) return refused
    const payload = textOf(bytesOf(token.payload))
    if (cty.toUpperCase() !== 'JWT') {
      const claims = jsonObject(payload)
      return holds(claims, constraints) ? [true, header, claims] : refused
    }
    current = payload
  }
  return refuse('tokens are nested too deeply')
}

const verifiers = [...algorithms].map(([algorithm, { keyType }]): [string, Builtin] => [
  `io.jwt.verify_${algorithm.toLowerCase()}`,
  (keyType === secretKey ? verifyMac : verifySignature)(algorithm),
])

export const jwtBuiltins: BuiltinTable = {
  'io.jwt.decode': builtin([asString], (text, meter) => decode(text, meter)),
  'io.jwt.decode_verify': builtin([asString, asObject], decodeVerify),
  ...Object.fromEntries(verifiers),
}
