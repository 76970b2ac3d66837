import { createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { CompactSign } from 'jose'
import { describe, expect, test } from 'vitest'
import { ours, theirs } from './opa-answers.ts'

/** Tokens that `jose` signs are verified by the engine and by OPA; both must say the same. */
const second = 1_000_000_000
const now = 1_800_000_000 * second

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed = generateKeyPairSync('ed25519')
const curves = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const
const ec = Object.fromEntries(
  Object.entries(curves).map(([algorithm, namedCurve]) => [algorithm, generateKeyPairSync('ec', { namedCurve })]),
)

const keysFor = (algorithm: string): { privateKey: KeyObject; publicKey: KeyObject } => {
  if (algorithm.startsWith('ES')) return ec[algorithm]!
  return algorithm === 'EdDSA' ? ed : rsa
}

const publicAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
const secret = 'a secret of at least sixty-four characters, so that it fits HS512 too'

const sign = (payload: unknown, header: { alg: string } & Record<string, unknown>): Promise<string> => {
  const key = header.alg.startsWith('HS') ? createSecretKey(Buffer.from(secret)) : keysFor(header.alg).privateKey
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  return new CompactSign(new TextEncoder().encode(text)).setProtectedHeader(header).sign(key)
}

const pem = (key: KeyObject) => String(key.export({ type: 'spki', format: 'pem' }))
const jwk = (key: KeyObject, more: Record<string, string> = {}) => ({ ...key.export({ format: 'jwk' }), ...more })

/** The last character of a signature may hold unused bits, so another one is changed. */
const forged = (token: string): string => {
  const at = token.lastIndexOf('.') + 3
  return token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1)
}

const agree = async (expressions: readonly string[]): Promise<string[]> => {
  const [engine, opa] = [await ours(expressions), await theirs(expressions)]
  expect(engine).toEqual(opa)
  return engine
}

describe('io.jwt.verify_*', () => {
  test.each(publicAlgorithms)('%s: PEM, JWK and sets of them; forged tokens and other keys', async (algorithm) => {
    const token = await sign({ sub: 'u1' }, { alg: algorithm, kid: 'k1' })
    const { publicKey } = keysFor(algorithm)
    const other = keysFor(/^[RP]S/.test(algorithm) ? 'ES256' : 'RS256').publicKey
    const call = (name: string, text: string, keys: unknown) =>
      `io.jwt.verify_${name}(${JSON.stringify(text)}, ${JSON.stringify(typeof keys === 'string' ? keys : JSON.stringify(keys))})`
    const name = algorithm.toLowerCase()
    const answers = await agree([
      call(name, token, pem(publicKey)),
      call(name, token, jwk(publicKey)),
      call(name, token, { keys: [jwk(publicKey, { kid: 'k1' })] }),
      call(name, forged(token), pem(publicKey)),
      call(name, token, 'nothing'),
      call(name, 'a.b', pem(publicKey)),
    ])
    expect(answers.slice(0, 4).map((answer) => answer.endsWith(' = true'))).toEqual([true, true, true, false])
    const wrong = await ours([call(name, token, pem(other))])
    expect(wrong[0]).not.toContain(' = true')
  })

  test.each(['HS256', 'HS384', 'HS512'])('%s', async (algorithm) => {
    const token = await sign({ sub: 'u1' }, { alg: algorithm })
    const call = (text: string, given: string) =>
      `io.jwt.verify_${algorithm.toLowerCase()}(${JSON.stringify(text)}, ${JSON.stringify(given)})`
    const answers = await agree([call(token, secret), call(token, 'other'), call(forged(token), secret)])
    expect(answers.map((answer) => answer.split(' = ').at(-1))).toEqual(['true', 'false', 'false'])
  })
})

test('io.jwt.decode_verify: constraints, times, audiences, kids and nesting', async () => {
  const claims = {
    iss: 'https://issuer.test',
    sub: 'u1',
    aud: ['api', 'other'],
    exp: 1_800_000_100,
    nbf: 1_799_999_999,
  }
  const cert = pem(keysFor('ES256').publicKey)
  const set = JSON.stringify({
    keys: [jwk(keysFor('RS256').publicKey, { kid: 'r' }), jwk(keysFor('ES256').publicKey, { kid: 'e' })],
  })
  const token = await sign(claims, { alg: 'ES256', kid: 'e' })
  const plain = await sign({ sub: 'u1' }, { alg: 'ES256' })
  const mac = await sign(claims, { alg: 'HS256' })
  const inner = await sign({ sub: 'nested' }, { alg: 'ES256' })
  const nested = await sign(inner, { alg: 'ES256', cty: 'JWT' })
  const fractions = await sign({ exp: 1_800_000_000.5, nbf: 1_799_999_999.5 }, { alg: 'ES256' })
  const odd = await sign({ exp: 'tomorrow' }, { alg: 'ES256' })
  const call = (text: string, constraints: Record<string, unknown>) =>
    `io.jwt.decode_verify(${JSON.stringify(text)}, ${JSON.stringify(constraints)})`
  const base = { cert, time: now, aud: 'api' }
  const answers = await agree([
    call(token, base),
    call(token, { ...base, alg: 'ES256', iss: 'https://issuer.test' }),
    call(token, { ...base, cert: set }),
    call(token, { ...base, alg: 'RS256' }),
    call(token, { ...base, iss: 'https://other.test' }),
    call(token, { ...base, aud: 'nobody' }),
    call(token, { cert, time: now }),
    call(token, { ...base, time: 1_800_000_100 * second }),
    call(token, { ...base, time: 1_800_000_099 * second }),
    call(token, { ...base, time: 1_799_999_998 * second }),
    call(forged(token), base),
    call(plain, { cert, time: now }),
    call(plain, base),
    call(mac, { secret, time: now, aud: 'api' }),
    call(mac, { secret: 'other', time: now, aud: 'api' }),
    call(mac, base),
    call(token, { secret, time: now, aud: 'api' }),
    call(token, { cert, secret, time: now, aud: 'api' }),
    call(token, { time: now, aud: 'api' }),
    call(token, { ...base, unknown: 1 }),
    call(nested, { cert, time: now }),
    call(fractions, { cert, time: now }),
    call(fractions, { cert, time: now + second / 2 }),
    call(fractions, { cert, time: now - second }),
    call(odd, { cert, time: now }),
  ])
  const allowed = answers
    .map((answer, index) => (answer.includes(' = [true,') ? index : -1))
    .filter((index) => index >= 0)
  expect(allowed).toEqual([0, 1, 2, 8, 11, 13, 20, 21])
})

test('io.jwt.decode_verify: without a time the present counts, the same all along, and what is critical is not understood', async () => {
  const cert = pem(keysFor('ES256').publicKey)
  const soon = await sign({ exp: 4_000_000_000 }, { alg: 'ES256' })
  const past = await sign({ exp: 1_000_000_000 }, { alg: 'ES256' })
  const [header, ...rest] = (await sign({ sub: 'u1' }, { alg: 'HS256' })).split('.')
  const unsecured = `${Buffer.from(JSON.stringify({ alg: 'none' })).toString('base64url')}.${rest[0]}.`
  const call = (text: string) => `io.jwt.decode_verify(${JSON.stringify(text)}, ${JSON.stringify({ cert })})[0]`
  const answers = await agree([call(soon), call(past), call(unsecured), call(`${header}.${rest[0]}.`)])
  expect(answers.map((answer) => answer.split(' = ').at(-1))).toEqual(['true', 'false', 'false', 'false'])
})
