import { createPrivateKey, createPublicKey, createSecretKey, type KeyObject, X509Certificate } from 'node:crypto'
import { memoized } from '../base/memoized.ts'
import type { Meter } from '../base/meter.ts'
import { decodeBase64url } from '../go/base64.ts'
import { decodePem } from '../go/pem.ts'
import { asObject, asString, refuse } from '../values/operands.ts'
import { parseValue } from '../values/text.ts'
import type { RegoObject } from '../values/value.ts'

/** A key that may verify tokens. `alg` and `kid` are those of a JWK; a secret one has no type and fits no signature. */
export interface VerificationKey {
  key: KeyObject
  alg: string | undefined
  /** Empty for none. */
  kid: string
}

// Parsing a certificate costs more than a signature; policies use few of them.
const known = memoized(100, (text: string): VerificationKey[] => readKeys(text))

/** For each character that keys are written with. */
const unitsToRead = 20

/**
 * One PEM block (a certificate or a public key), a JWK, or a JWK set. Refuses, as OPA does, a PEM text with anything
 * behind its block: who appends a second certificate would otherwise be trusted too.
 */
export const verificationKeys = (text: string, { spendOnce }: Meter): VerificationKey[] => {
  spendOnce(`keys ${text}`, unitsToRead * text.length)
  return known(text)
}

const readKeys = (text: string): VerificationKey[] => {
  const block = decodePem(text)
  if (!block) return jwks(text).flatMap(jwkKey)
  const { type, bytes, rest } = block
  if (rest !== '') refuse('there is more behind the first PEM block')
  const read = pemReaders.get(type) ?? refuse('neither a certificate nor a public key')
  return [anyToken(readKey(() => read(bytes)))]
}

const pemReaders = new Map<string, (der: Buffer) => KeyObject>([
  ['CERTIFICATE', (der) => new X509Certificate(der).publicKey],
  ['PUBLIC KEY', (der) => createPublicKey({ key: der, format: 'der', type: 'spki' })],
])

/** A key that says nothing of the tokens it is for. */
export const anyToken = (key: KeyObject): VerificationKey => ({ key, alg: undefined, kid: '' })

const readKey = (read: () => KeyObject): KeyObject => {
  try {
    return read()
  } catch {
    return refuse('not a key that can verify')
  }
}

const jwks = (text: string): RegoObject[] => {
  const json = jsonObject(text)
  const members = json.get('keys')
  return Array.isArray(members) ? members.map(asObject) : [json]
}

/**
 * RFC 7517 §4.4: a key verifies only what it is meant for, so keys of algorithms that sign no tokens are passed over.
 */
const jwkKey = (jwk: RegoObject): VerificationKey[] => {
  const alg = jwk.has('alg') ? asString(jwk.get('alg')) : undefined
  const kid = asString(jwk.get('kid') ?? '')
  if (alg !== undefined && !tokenAlgorithms.has(alg) && !otherAlgorithms.test(alg)) refuse('an algorithm nobody knows')
  const key = readKey(() => keyOf(jwk))
  return alg === undefined || tokenAlgorithms.has(alg) ? [{ key, alg, kid }] : []
}

const keyOf = (jwk: RegoObject): KeyObject => {
  const key = Object.fromEntries(jwk)
  if (key.kty === 'oct') return createSecretKey(octets(asString(key.k)))
  return 'd' in key ? createPrivateKey({ key, format: 'jwk' }) : createPublicKey({ key, format: 'jwk' })
}

const octets = (text: string): Buffer => {
  const bytes = decodeBase64url(text)
  return bytes && bytes.length > 0 ? bytes : refuse('not a secret')
}

const tokenAlgorithms = new Set([
  ...['RS', 'PS', 'ES', 'HS'].flatMap((family) => ['256', '384', '512'].map((size) => family + size)),
  'EdDSA',
])
/** RFC 7518 §3.1, §4.1 and §5.1, RFC 8812 §3.2, RFC 9864: registered for other uses. */
const otherAlgorithms =
  /^(?:none|ES256K|Ed25519|A(?:128|192|256)GCM|A(?:128CBC-HS256|192CBC-HS384|256CBC-HS512)|dir|RSA1_5|RSA-OAEP(?:-(?:256|384|512))?|A(?:128|192|256)(?:GCM)?KW|ECDH-ES(?:\+A(?:128|192|256)KW)?|PBES2-HS(?:256\+A128|384\+A192|512\+A256)KW)$/

/** Only what is JSON: `parseValue` reads sets too, and keeps numbers as they are. */
export const jsonObject = (text: string): RegoObject => {
  try {
    JSON.parse(text)
    return asObject(parseValue(text))
  } catch {
    return refuse('not a JSON object')
  }
}
