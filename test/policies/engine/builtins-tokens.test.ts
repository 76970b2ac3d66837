import { createHmac, createSecretKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
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

describe('what OPA refuses is not trusted here either', () => {
  const verifying = (name: string, token: string, keys: unknown) =>
    `io.jwt.verify_${name}(${JSON.stringify(token)}, ${JSON.stringify(typeof keys === 'string' ? keys : JSON.stringify(keys))})`
  const decoding = (token: string, constraints: Record<string, unknown>) =>
    `io.jwt.decode_verify(${JSON.stringify(token)}, ${JSON.stringify(constraints)})[0]`
  const answerOf = (line: string) => line.split(' = ').at(-1)

  test('a JWK for another algorithm or another kid, a private key, a secret', async () => {
    const { publicKey, privateKey } = rsa
    const other = keysFor('ES256').publicKey
    const octets = { kty: 'oct', k: Buffer.from(secret).toString('base64url') }
    const sets: unknown[] = [
      jwk(publicKey, { alg: 'RS256' }),
      jwk(publicKey, { alg: 'PS256' }),
      jwk(publicKey, { alg: 'RSA-OAEP' }),
      ...['nonsense', '', 'Ed25519', 'A256GCM', 'none', 'ES256K', 'dir'].map((alg) => jwk(publicKey, { alg })),
      { ...jwk(publicKey), alg: 5 },
      { ...jwk(publicKey), kid: null },
      { ...jwk(publicKey), kid: 5 },
      { keys: [jwk(publicKey, { kid: 'k1', alg: 'PS256' })] },
      { keys: [jwk(other, { kid: 'k1' }), jwk(publicKey)] },
      { keys: [jwk(other, { kid: 'k1' }), jwk(publicKey, { kid: 'k1' })] },
      { keys: [jwk(publicKey, { alg: 'RSA-OAEP' }), jwk(publicKey)] },
      { keys: [octets, jwk(publicKey)] },
      { keys: [{ kty: 'RSA', n: 'x' }, jwk(publicKey)] },
      { keys: [] },
      jwk(privateKey),
      octets,
      { ...octets, k: '' },
    ]
    const [plain, named, mac] = await Promise.all([
      sign({ sub: 'u1' }, { alg: 'RS256' }),
      sign({ sub: 'u1' }, { alg: 'RS256', kid: 'k1' }),
      sign({ sub: 'u1' }, { alg: 'HS256' }),
    ])
    await agree(
      sets.flatMap((set) => [
        verifying('rs256', plain, set),
        verifying('rs256', named, set),
        decoding(plain, { cert: JSON.stringify(set) }),
        decoding(named, { cert: JSON.stringify(set) }),
        decoding(mac, { cert: JSON.stringify(set) }),
      ]),
    )
    const [meant, notMeant] = await ours([verifying('rs256', plain, sets[0]), verifying('rs256', plain, sets[1])])
    expect([meant, notMeant].map((line) => answerOf(line!))).toEqual(['true', 'false'])
  })

  const raw = (header: unknown, payload: unknown = { sub: 'u1' }): string => {
    const parts = [header, payload].map((part) =>
      Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url'),
    )
    return `${parts.join('.')}.${createHmac('sha256', secret).update(parts.join('.')).digest('base64url')}`
  }
  const macExpressions = (token: string) => [
    verifying('hs256', token, secret),
    decoding(token, { secret }),
    `io.jwt.decode(${JSON.stringify(token)})[1]`,
  ]

  test('headers of other types, nested and critical ones', async () => {
    const headers: unknown[] = [
      ...['kid', 'typ', 'alg'].flatMap((name) => [null, 5].map((value) => ({ alg: 'HS256', [name]: value }))),
      ...[null, 'x', [], [5], [5, 'x']].map((crit) => ({ alg: 'HS256', crit })),
      { alg: 'HS256', crit: ['x'], x: 1 },
      { alg: 'HS256', enc: null },
      ...['', 'none', 'hs256', 'constructor', '__proto__', 'RS256'].map((alg) => ({ alg })),
      {},
      '[]',
      'null',
      '{"alg":"HS256"}x',
      '{"alg":"RS256","alg":"HS256"}',
    ]
    const inner = raw({ alg: 'HS256' })
    const nested = ['JWT', 'jwt', 'JWS'].flatMap((cty) =>
      [inner, `"${inner}"`, `'"${inner}"'`, ` ${inner}`].map((payload) => raw({ alg: 'HS256', cty }, payload)),
    )
    await agree([...headers.map((header) => raw(header)), ...nested].flatMap(macExpressions))
    // OPA takes a token whose critical member is missing (RFC 7515 §4.1.11: it is not valid), and fails at these two.
    const stricter = [raw({ alg: 'HS256', crit: ['x'] }), raw({ alg: 'HS256', cty: 5 })]
    const [, critical, , , cty] = await ours(stricter.flatMap(macExpressions))
    expect([critical, cty].map((line) => answerOf(line!))).toEqual(['false', 'undefined'])
    const [iss] = await ours([decoding(raw({ alg: 'HS256' }, { iss: 5 }), { secret, iss: 'x' })])
    expect(answerOf(iss!)).toBe('false')
  })

  test('parts that are not base64url to the letter', async () => {
    const token = raw({ alg: 'HS256' })
    const [header, payload, signature] = token.split('.')
    const spellings = [
      ...['=', '==', ' ', '\n', '.', 'A'].flatMap((behind) => [
        token + behind,
        `${header}${behind}.${payload}.${signature}`,
        `${header}.${payload}${behind}.${signature}`,
      ]),
      ` ${token}`,
      token.slice(0, -1),
      `${header}.${payload}.`,
      `${header}.${payload}`,
      token.replaceAll('_', '/').replaceAll('-', '+'),
    ]
    await agree(spellings.flatMap(macExpressions))
  })

  test('constraints: an empty secret, times that are none, audiences that are empty', async () => {
    const token = raw({ alg: 'HS256' })
    const times = ['0', '-1', '1.5', '1e400', '1e308'].map(
      (time) =>
        `io.jwt.decode_verify(${JSON.stringify(token)}, {"secret": ${JSON.stringify(secret)}, "time": ${time}})[0]`,
    )
    const audiences = ['', 'x', [''], ['x', ''], [], null, {}, 5].flatMap((aud) =>
      [{}, { aud: '' }, { aud: 'x' }].map((wanted) => decoding(raw({ alg: 'HS256' }, { aud }), { secret, ...wanted })),
    )
    const bounds = ['1800000000', '1800000000.0000000001', '1e400', '-1e400', '18e8'].flatMap((bound) =>
      ['exp', 'nbf'].map((name) => decoding(raw({ alg: 'HS256' }, `{"${name}":${bound}}`), { secret, time: now })),
    )
    await agree([decoding(token, { secret: '' }), ...times, ...audiences, ...bounds])
  })
})

test('half a surrogate pair in a token is read as Go reads it, and does not end the evaluation', async () => {
  const token = [{ alg: 'HS256' }, { sub: 'x\ud800' }].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  )
  await agree([`io.jwt.decode(${JSON.stringify(`${token.join('.')}.c2ln`)})`])
})
