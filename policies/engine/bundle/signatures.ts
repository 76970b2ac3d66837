import { createHash, type KeyObject, sign } from 'node:crypto'
import { z } from 'zod'
import { parseJsonObject } from '../../../platform/jwt/json-object.ts'
import { verifySignature } from '../../../platform/jwt/verify.ts'
import { PolicyError } from '../base/policy-error.ts'

/**
 * Signatures of OPA bundles: `.signatures.json` holds one JWS whose payload lists a digest of every other file. What
 * OPA signs is verified here, and what is signed here OPA verifies.
 * https://www.openpolicyagent.org/docs/management-bundles#signing
 */
export const signaturesFile = '.signatures.json'

/** Whose signature a bundle needs. */
export interface Verification {
  /** By the id that the signature names (`keyid` of its payload; OPA's default is `default`). */
  keys: ReadonlyMap<string, BundleKey>
  /** The scope that the signature must name; without one it must name none. */
  scope?: string | undefined
}

export interface BundleKey {
  /** The only algorithm that the key may verify; the header of a signature does not choose. */
  algorithm: SignatureAlgorithm
  key: KeyObject
}

export const signatureAlgorithms = ['ES256', 'RS256'] as const
export type SignatureAlgorithm = (typeof signatureAlgorithms)[number]

const digests: Record<string, string> = { 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' }

const signaturesSchema = z.object({ signatures: z.tuple([z.string()]) })
const payloadSchema = z.looseObject({
  keyid: z.string().optional(),
  scope: z.string().optional(),
  files: z.array(z.looseObject({ name: z.string(), hash: z.string(), algorithm: z.string() })),
})

/**
 * Throws `PolicyError` unless the bundle is signed with one of the keys, and the signature names exactly the files that
 * are there.
 */
export const verifyBundle = (files: ReadonlyMap<string, Uint8Array>, { keys, scope }: Verification): void => {
  const content = files.get(signaturesFile)
  if (!content) throw new PolicyError('the bundle is not signed, and a key is configured')
  const { payload, kid, ...jws } = readJws(content)
  const id = payload.keyid ?? kid
  const found = id === undefined ? undefined : keys.get(id)
  if (!found) throw new PolicyError(`the bundle is signed with the key ${JSON.stringify(id)}, which is not configured`)
  if (jws.alg !== found.algorithm) {
    throw new PolicyError(`the bundle is signed with ${jws.alg}; the key ${id} is for ${found.algorithm}`)
  }
  const valid = verifySignature(jws, { kid: '', alg: found.algorithm, key: found.key })
  if (!valid) throw new PolicyError('the signature of the bundle is not valid')
  // An empty scope and none are the same to OPA.
  if ((payload.scope ?? '') !== (scope ?? '')) throw new PolicyError('the bundle is signed for another scope')

  const listed = new Map(payload.files.map((file) => [file.name.replace(/^\/+/, ''), file]))
  for (const [name, bytes] of files) {
    if (name === signaturesFile) continue
    const file = listed.get(name)
    if (!file) throw new PolicyError(`the signature of the bundle does not cover ${name}`)
    const algorithm = digests[file.algorithm]
    if (algorithm === undefined) throw new PolicyError(`the digest ${file.algorithm} of ${name} is not supported`)
    if (!hasDigest(name, bytes, algorithm, file.hash.toLowerCase())) {
      throw new PolicyError(`${name} in the bundle is not the file that was signed`)
    }
    listed.delete(name)
  }
  for (const name of listed.keys()) throw new PolicyError(`${name} was signed but is missing in the bundle`)
}

/** The content of `.signatures.json` for these files. */
export const signatureOf = (
  files: ReadonlyMap<string, Uint8Array>,
  options: { keyId: string; algorithm: SignatureAlgorithm; key: KeyObject; scope?: string | undefined },
): Uint8Array => {
  const { keyId, algorithm, key, scope } = options
  const listed = [...files]
    .filter(([name]) => name !== signaturesFile)
    .map(([name, bytes]) => ({ name, hash: digestOf(name, bytes, 'sha256'), algorithm: 'SHA-256' }))
  const header = { alg: algorithm, kid: keyId, typ: 'JWT' }
  const payload = { files: listed, keyid: keyId, ...(scope !== undefined && { scope }) }
  const input = [header, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })
  return Buffer.from(`${JSON.stringify({ signatures: [`${input}.${signature.toString('base64url')}`] }, null, 2)}\n`)
}

/** Not by `parseJwt`: that is for access tokens, which are shorter than a list of many files. */
const readJws = (content: Uint8Array) => {
  try {
    const { signatures } = signaturesSchema.parse(JSON.parse(Buffer.from(content).toString()))
    const [head = '', body = '', signature, ...others] = signatures[0].split('.')
    const [header, claims] = [head, body].map((part) => parseJsonObject(Buffer.from(part, 'base64url').toString()))
    if (!header || !claims || signature === undefined || others.length > 0 || 'crit' in header) {
      throw new TypeError('not a JWS')
    }
    return {
      header: { ...header, alg: String(header['alg']) },
      alg: String(header['alg']),
      kid: typeof header['kid'] === 'string' ? header['kid'] : undefined,
      claims,
      payload: payloadSchema.parse(claims),
      signingInput: `${head}.${body}`,
      signature: Buffer.from(signature, 'base64url'),
    }
  } catch (cause) {
    throw new PolicyError(`${signaturesFile} in the bundle cannot be read`, { cause })
  }
}

/** Files whose digest is that of their meaning: members sorted, no white space, numbers as they are written. */
const isDocument = (name: string): boolean => /(?:^|\/)(?:data\.json|\.manifest)$/.test(name)

const hasDigest = (name: string, bytes: Uint8Array, algorithm: string, expected: string): boolean =>
  // Compilers write documents in that form already, mostly: then nothing has to be parsed.
  hashOf(bytes, algorithm) === expected || (isDocument(name) && digestOf(name, bytes, algorithm) === expected)

const digestOf = (name: string, bytes: Uint8Array, algorithm: string): string => {
  if (!isDocument(name)) return hashOf(bytes, algorithm)
  try {
    return hashOf(canonicalJson(Buffer.from(bytes).toString()), algorithm)
  } catch (cause) {
    throw new PolicyError(`${name} in the bundle is not valid JSON`, { cause })
  }
}

const hashOf = (content: Uint8Array | string, algorithm: string): string =>
  createHash(algorithm).update(content).digest('hex')

/** V8 has them; TypeScript's library does not yet. */
const { rawJSON, isRawJSON, parse } = JSON as unknown as {
  rawJSON(text: string): object
  isRawJSON(value: unknown): value is { rawJSON: string }
  parse(text: string, reviver: (key: string, value: unknown, context: { source: string }) => unknown): unknown
}

const canonicalJson = (text: string): string => {
  const parts: string[] = []
  const write = (value: unknown): void => {
    if (isRawJSON(value)) parts.push(value.rawJSON)
    else if (typeof value === 'string') parts.push(goString(value))
    else if (Array.isArray(value)) writeAll('[', value, ']', write)
    else if (typeof value === 'object' && value !== null) {
      const members = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      writeAll('{', members, '}', ([key, member]) => {
        parts.push(goString(key), ':')
        write(member)
      })
    } else parts.push(String(value))
  }
  const writeAll = <Item>(open: string, items: readonly Item[], close: string, each: (item: Item) => void): void => {
    parts.push(open)
    for (const [index, item] of items.entries()) {
      if (index > 0) parts.push(',')
      each(item)
    }
    parts.push(close)
  }
  write(parse(text, (_key, value, { source }) => (typeof value === 'number' ? rawJSON(source) : value)))
  return parts.join('')
}

/** Go's encoder escapes the two separators that JavaScript once took for line ends. */
const goString = (text: string): string =>
  JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
