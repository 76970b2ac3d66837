/** Reads and checks JSON Web Tokens in the page: no token leaves it. */

export interface Jwt {
  header: Readonly<Record<string, unknown>>
  claims: Readonly<Record<string, unknown>>
  /** What is signed, and by what. */
  signed: string
  signature: Uint8Array<ArrayBuffer>
}

/** The tokens in any text: a header, an answer of the token endpoint, a curl command, an address. */
export const findJwts = (text: string): Jwt[] =>
  [...new Set(text.match(/ey[\w-]+\.ey[\w-]+\.[\w-]*(?![\w.-])/g))].flatMap((compact) => parse(compact) ?? [])

/** JWE (RFC 7516) has five parts, of which the second may be empty. */
export const hasEncrypted = (text: string): boolean => /ey[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+/.test(text)

const parse = (compact: string): Jwt | undefined => {
  const [header = '', payload = '', signature = ''] = compact.split('.')
  try {
    return {
      header: jsonOf(header),
      claims: jsonOf(payload),
      signed: `${header}.${payload}`,
      signature: bytesOf(signature),
    }
  } catch {
    return undefined
  }
}

const bytesOf = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))

const jsonOf = (text: string): Record<string, unknown> => JSON.parse(new TextDecoder().decode(bytesOf(text)))

export type PublishedKey = JsonWebKey & { kid?: string }

export type Verdict = 'valid' | 'broken' | 'unknown key' | 'unsigned' | 'unknown algorithm'

/** What WebCrypto calls an algorithm of RFC 7518. */
const algorithms: Readonly<Record<string, EcKeyImportParams & EcdsaParams>> = Object.fromEntries([
  ...[256, 384, 512].flatMap((bits) => [
    [`RS${bits}`, { name: 'RSASSA-PKCS1-v1_5', hash: `SHA-${bits}` }],
    [`PS${bits}`, { name: 'RSA-PSS', hash: `SHA-${bits}`, saltLength: bits / 8 }],
  ]),
  ['ES256', { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }],
  ['ES384', { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' }],
  ['EdDSA', { name: 'Ed25519' }],
  ['Ed25519', { name: 'Ed25519' }],
])

/** Whether one of these keys signed it. */
export const verify = async ({ header, signed, signature }: Jwt, keys: readonly PublishedKey[]): Promise<Verdict> => {
  if (header['alg'] === 'none' || signature.length === 0) return 'unsigned'
  const algorithm = algorithms[String(header['alg'])]
  if (!algorithm) return 'unknown algorithm'
  const jwk = keys.find(({ kid }) => kid !== undefined && kid === header['kid'])
  if (!jwk) return 'unknown key'
  const { kty, crv, n, e, x, y } = jwk
  const members = Object.fromEntries(Object.entries({ kty, crv, n, e, x, y }).filter(([, value]) => value))
  try {
    const key = await crypto.subtle.importKey('jwk', members, algorithm, false, ['verify'])
    const isValid = await crypto.subtle.verify(algorithm, key, signature, new TextEncoder().encode(signed))
    return isValid ? 'valid' : 'broken'
  } catch {
    // A key of another kind than the header says.
    return 'broken'
  }
}

/** Who acts, from the subject to whoever acts now (RFC 8693 §4.1): the outermost `act` is the latest. */
export const actorsOf = (claims: Readonly<Record<string, unknown>>): string[] => {
  const actors: string[] = []
  for (let act = claims['act']; typeof act === 'object' && act !== null && actors.length < 20; ) {
    const { sub, act: earlier } = act as { sub?: unknown; act?: unknown }
    actors.push(String(sub))
    act = earlier
  }
  return actors
}
