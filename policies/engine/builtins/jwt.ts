import {
  constants,
  createHmac,
  createPublicKey,
  type KeyObject,
  timingSafeEqual,
  verify,
  X509Certificate,
} from 'node:crypto'
import { isNumber, parseValue, type RegoObject, toDouble, type Value } from '../values.ts'
import { asObject, asString, refuse, textOf } from './arguments.ts'
import { decodeBase64url } from './encoding.ts'
import type { EvaluationContext, HostBuiltin } from './index.ts'

// --- reading

interface Token {
  header: RegoObject
  /** The payload as bytes of text: an object, or another token when `cty` says JWT. */
  payload: string
  signature: Buffer
  /** What is signed. */
  signed: string
}

const part = (text: string): Buffer => decodeBase64url(text) ?? refuse('a part of the token is not base64url')

const jsonObject = (text: string): RegoObject => {
  try {
    // Only what is JSON: `parseValue` reads sets too, and keeps numbers as they are.
    JSON.parse(text)
    return asObject(parseValue(text))
  } catch {
    return refuse('not a JSON object')
  }
}

const readToken = (text: string): Token => {
  const parts = text.split('.')
  if (parts.length !== 3) refuse('a token has three parts')
  const [header, payload, signature] = parts as [string, string, string]
  const parsed = jsonObject(textOf(part(header)))
  if (parsed.has('enc')) refuse('the token is encrypted')
  return { header: parsed, payload: textOf(part(payload)), signature: part(signature), signed: `${header}.${payload}` }
}

const isNested = ({ header }: Token): boolean => {
  const cty = header.get('cty')
  return typeof cty === 'string' && cty.toUpperCase() === 'JWT'
}

/** A token in a token is a JSON text in some, the bare token in others. */
const nestedText = (payload: string): string => (payload.startsWith('"') ? asString(parseValue(payload)) : payload)

const deepest = 8

const decode = (text: string, depth = 0): Value => {
  const token = readToken(text)
  if (isNested(token) && depth < deepest) return decode(nestedText(token.payload), depth + 1)
  return [token.header, jsonObject(token.payload), token.signature.toString('hex')]
}

// --- verifying

interface PublicKey {
  key: KeyObject
  kid?: string
}

const readKey = (read: () => KeyObject): KeyObject => {
  try {
    return read()
  } catch {
    return refuse('not a public key')
  }
}

/** PEM (certificates, public keys), a JWK, or a JWK set. */
const publicKeys = (text: string): PublicKey[] => {
  const blocks = text.match(/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?-----END [A-Z0-9 ]+-----/g)
  if (blocks) {
    return blocks.map((pem) => ({
      key: readKey(() =>
        pem.includes('BEGIN CERTIFICATE-') ? new X509Certificate(pem).publicKey : createPublicKey(pem),
      ),
    }))
  }
  const json = jsonObject(text)
  const members = json.get('keys')
  return (Array.isArray(members) ? members.map(asObject) : [json]).map((jwk) => {
    const kid = jwk.get('kid')
    const key = readKey(() => createPublicKey({ key: Object.fromEntries(jwk), format: 'jwk' }))
    return { key, ...(typeof kid === 'string' && { kid }) }
  })
}

/** Parsing a certificate costs more than a signature; policies use few of them. */
const parsedKeys = new Map<string, PublicKey[]>()
const mostParsedKeys = 100

const keysOf = (text: string): PublicKey[] => {
  const known = parsedKeys.get(text)
  if (known) return known
  const keys = publicKeys(text)
  if (parsedKeys.size >= mostParsedKeys) parsedKeys.clear()
  parsedKeys.set(text, keys)
  return keys
}

type Verify = (key: KeyObject, signed: string, signature: Buffer) => boolean

const rsa =
  (hash: string, padding: number): Verify =>
  (key, signed, signature) =>
    verify(hash, Buffer.from(signed), { key, padding, saltLength: constants.RSA_PSS_SALTLEN_AUTO }, signature)

const ecdsa =
  (hash: string): Verify =>
  (key, signed, signature) =>
    verify(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }, signature)

/** RFC 7518 §3.1, RFC 8037: signatures by the kind of key that they need. */
const signatures: Record<string, { keyType: string; check: Verify }> = {}
for (const size of ['256', '384', '512']) {
  signatures[`RS${size}`] = { keyType: 'rsa', check: rsa(`sha${size}`, constants.RSA_PKCS1_PADDING) }
  signatures[`PS${size}`] = { keyType: 'rsa', check: rsa(`sha${size}`, constants.RSA_PKCS1_PSS_PADDING) }
  signatures[`ES${size}`] = { keyType: 'ec', check: ecdsa(`sha${size}`) }
}
signatures['EdDSA'] = {
  keyType: 'ed25519',
  check: (key, signed, signature) => verify(null, Buffer.from(signed), key, signature),
}

const macs: Record<string, string> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' }

const isMac = (algorithm: string, secret: string, signed: string, signature: Buffer): boolean => {
  const expected = createHmac(macs[algorithm]!, secret).update(signed).digest()
  return expected.length === signature.length && timingSafeEqual(expected, signature)
}

/** Whether any of the keys made the signature; with a `kid` the one of that name, if there is one. Wrong kinds of keys did not. */
const isSignedBy = (keys: readonly PublicKey[], algorithm: string, token: Token): boolean => {
  const { keyType, check } = signatures[algorithm] ?? refuse('unknown algorithm')
  const kid = token.header.get('kid')
  const named = keys.filter((candidate) => typeof kid === 'string' && candidate.kid === kid)
  const fitting = (named.length > 0 ? named : keys).filter(({ key }) => key.asymmetricKeyType === keyType)
  return fitting.some(({ key }) => check(key, token.signed, token.signature))
}

const verifyWith =
  (algorithm: string): HostBuiltin =>
  ([text, secretOrKeys]) => {
    const token = readToken(asString(text))
    const given = asString(secretOrKeys)
    if (algorithm in macs) return isMac(algorithm, given, token.signed, token.signature)
    return isSignedBy(keysOf(given), algorithm, token)
  }

// --- decode_verify

const constraintNames = ['cert', 'secret', 'alg', 'iss', 'aud', 'time']

interface Constraints {
  cert?: string
  secret?: string
  alg?: string
  iss?: string
  aud?: string
  /** Seconds since 1970, as a double: that is how OPA compares. */
  time: number
}

const readConstraints = (object: RegoObject, { nowNs }: EvaluationContext): Constraints => {
  const texts: Record<string, string> = {}
  let time: number | undefined
  for (const [name, value] of object) {
    if (typeof name !== 'string' || !constraintNames.includes(name)) refuse('unknown constraint')
    else if (name !== 'time') texts[name] = asString(value)
    else time = isNumber(value) ? toDouble(value) / 1e9 : refuse('time must be a number')
  }
  if ((texts['cert'] === undefined) === (texts['secret'] === undefined)) refuse('one of cert and secret is needed')
  return { ...texts, time: time ?? Number(nowNs()) / 1e9 }
}

const isTrusted = (constraints: Constraints, algorithm: string, token: Token): boolean => {
  if (constraints.secret === undefined) {
    const keys = keysOf(constraints.cert!)
    return !(algorithm in macs) && isSignedBy(keys, algorithm, token)
  }
  return algorithm in macs && isMac(algorithm, constraints.secret, token.signed, token.signature)
}

const claimTime = (payload: RegoObject, name: string) => {
  const value = payload.get(name)
  if (value === undefined) return undefined
  return isNumber(value) ? toDouble(value) : refuse(`${name} must be a number`)
}

const isAudience = (claimed: Value | undefined, wanted: string | undefined): boolean => {
  if (claimed === undefined || wanted === undefined) return claimed === undefined && wanted === undefined
  return Array.isArray(claimed) ? claimed.includes(wanted) : claimed === wanted
}

const holds = (payload: RegoObject, { iss, aud, time }: Constraints): boolean => {
  if (iss !== undefined && iss !== '' && payload.get('iss') !== iss) return false
  if (!isAudience(payload.get('aud'), aud === '' ? undefined : aud)) return false
  const [exp, nbf] = [claimTime(payload, 'exp'), claimTime(payload, 'nbf')]
  return !(exp !== undefined && time >= exp) && !(nbf !== undefined && time < nbf)
}

const decodeVerify: HostBuiltin = ([text, object], context) => {
  const refused: Value = [false, new Map(), new Map()]
  const constraints = readConstraints(asObject(object), context)
  let current = asString(text)
  for (let depth = 0; depth <= deepest; depth++) {
    const token = readToken(current)
    const algorithm = token.header.get('alg')
    if (typeof algorithm !== 'string' || algorithm === '') return refused
    // RFC 7515 §4.1.11: what a token calls critical must be understood; nothing is.
    if (token.header.has('crit')) return refused
    if (constraints.alg !== undefined && constraints.alg !== '' && constraints.alg !== algorithm) return refused
    if (!(algorithm in macs) && !(algorithm in signatures)) return refused
    if (!isTrusted(constraints, algorithm, token)) return refused
    if (isNested(token)) {
      current = nestedText(token.payload)
      continue
    }
    const payload = jsonObject(token.payload)
    return holds(payload, constraints) ? [true, token.header, payload] : refused
  }
  return refuse('tokens are nested too deeply')
}

export const jwtBuiltins: Record<string, HostBuiltin> = {
  'io.jwt.decode': ([text]) => decode(asString(text)),
  'io.jwt.decode_verify': decodeVerify,
}
for (const algorithm of [...Object.keys(signatures), ...Object.keys(macs)]) {
  jwtBuiltins[`io.jwt.verify_${algorithm.toLowerCase()}`] = verifyWith(algorithm)
}
