import { Buffer } from 'node:buffer'
import { createHmac, createPublicKey } from 'node:crypto'
import { generateKeyPair, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose'
import { describe, expect, test } from 'vitest'
import { JwtError } from '../../../platform/jwt/jwt-error.ts'
import { importJwks, type VerificationKey } from '../../../platform/jwt/keys.ts'
import { parseJwt } from '../../../platform/jwt/parse.ts'
import { type VerifyOptions, verifyJwt } from '../../../platform/jwt/verify.ts'
import { newSigningKey, type SigningKey } from '../../support/token-issuer.ts'

const now = new Date('2026-05-01T12:00:00Z')
const seconds = now.getTime() / 1000
const issuer = 'https://id.test/oidc'
const audience = 'https://api.test/orders'

const options: VerifyOptions = {
  issuer,
  audience: [audience],
  algorithms: ['ES256', 'EdDSA', 'RS256', 'PS256', 'ES384', 'ES512'],
  typ: ['at+jwt'],
  clockSkewSeconds: 5,
  now,
}

const goodClaims = { iss: issuer, sub: 'u1', aud: audience, iat: seconds, exp: seconds + 60 }

const signed = (key: SigningKey, claims: JWTPayload = {}, header: Partial<JWTHeaderParameters> = {}) =>
  new SignJWT({ ...goodClaims, ...claims })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header })
    .sign(key.privateKey)

const publicKey = (key: SigningKey): VerificationKey => importJwks({ keys: [key.jwk] }).get(key.kid)!

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

const reasonOf = (act: () => unknown): string => {
  try {
    act()
  } catch (error) {
    if (error instanceof JwtError) return error.reason
    throw error
  }
  return 'accepted'
}

describe('signatures of tokens made by another implementation', () => {
  test.each(['ES256', 'ES384', 'ES512', 'EdDSA', 'RS256', 'PS256'])(
    '%s verifies, and a changed byte does not',
    async (alg) => {
      const key = await newSigningKey(alg)
      const token = await signed(key, { scope: 'read:orders' })
      expect(verifyJwt(parseJwt(token), publicKey(key), options)).toMatchObject({ sub: 'u1', scope: 'read:orders' })

      const [header, claims, signature] = token.split('.')
      const changed = encode({ ...JSON.parse(Buffer.from(claims!, 'base64url').toString()), sub: 'u2' })
      expect(reasonOf(() => verifyJwt(parseJwt(`${header}.${changed}.${signature}`), publicKey(key), options))).toBe(
        'signature',
      )
      const other = await newSigningKey(alg)
      expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(other), options))).toBe('signature')
    },
  )

  test('a signature of another length, in DER for instance, is refused', async () => {
    const key = await newSigningKey()
    const [header, claims] = (await signed(key)).split('.')
    for (const length of [0, 63, 65, 72]) {
      const token = `${header}.${claims}.${Buffer.alloc(length, 1).toString('base64url')}`
      expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), options))).toBe('signature')
    }
  })
})

describe('signatures at the edges of their curve', () => {
  const order = {
    ES256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
    // RFC 8032 §5.1.7: little-endian.
    EdDSA: 2n ** 252n + 27742317777372353535851937790883648493n,
  }
  const bigEndian = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')

  test('ES256 with r or s zero, the order, or beyond it verifies nothing', async () => {
    const key = await newSigningKey()
    const [header, claims] = (await signed(key)).split('.')
    const edges = [0n, 1n, order.ES256 - 1n, order.ES256, order.ES256 + 1n, 2n ** 256n - 1n]
    for (const [r, s] of edges.flatMap((r) => edges.map((s) => [r, s] as const))) {
      const token = `${header}.${claims}.${Buffer.concat([bigEndian(r), bigEndian(s)]).toString('base64url')}`
      expect(
        reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), options)),
        `${r}, ${s}`,
      ).toBe('signature')
    }
  })

  test('Ed25519 has one spelling a signature: S plus the order is refused', async () => {
    const key = await newSigningKey('EdDSA')
    const [header, claims, signature] = (await signed(key)).split('.')
    const bytes = Buffer.from(signature!, 'base64url')
    const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString('hex')}`)
    const other = Buffer.concat([bytes.subarray(0, 32), bigEndian(s + order.EdDSA).reverse()])
    const token = `${header}.${claims}.${other.toString('base64url')}`
    expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), options))).toBe('signature')
  })
})

describe('algorithm confusion', () => {
  test('none, HS256 keyed with the public key, and an algorithm of another key are refused', async () => {
    const key = await newSigningKey('RS256')
    const pem = createPublicKey({ key: key.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
    const tokenWith = (alg: string, signature: (input: string) => string) => {
      const input = `${encode({ alg, kid: key.kid, typ: 'at+jwt' })}.${encode(goodClaims)}`
      return `${input}.${signature(input)}`
    }
    const hmac = (input: string) => createHmac('sha256', pem).update(input).digest('base64url')
    for (const token of [
      tokenWith('none', () => ''),
      tokenWith('None', () => ''),
      tokenWith('HS256', hmac),
      tokenWith('RS512', hmac),
      tokenWith('constructor', hmac),
    ]) {
      expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), options))).toBe('algorithm')
    }
    const token = await signed(key)
    const onlyEcdsa = { ...options, algorithms: ['ES256'] }
    expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), onlyEcdsa))).toBe('algorithm')
  })
})

describe('claims', () => {
  const cases: [string, JWTPayload, string][] = [
    ['another issuer', { iss: 'https://id.test/oidc/' }, 'issuer'],
    ['no issuer', { iss: undefined }, 'issuer'],
    ['another audience', { aud: 'https://api.test/orders/' }, 'audience'],
    ['one of several audiences', { aud: ['https://other.test', audience] }, 'accepted'],
    ['no audience', { aud: undefined }, 'claims'],
    ['an empty list of audiences', { aud: [] }, 'audience'],
    ['an audience that is no string', { aud: [audience, 7] as never }, 'claims'],
    ['no subject', { sub: undefined }, 'claims'],
    ['an empty subject', { sub: '' }, 'claims'],
    ['null as subject', { sub: null as never }, 'claims'],
    ['expired', { iat: seconds - 60, exp: seconds - 5 }, 'expired'],
    ['expired within the skew', { iat: seconds - 60, exp: seconds - 4 }, 'accepted'],
    ['expired before it was issued', { iat: seconds, exp: seconds }, 'claims'],
    ['expired before it is valid', { nbf: seconds + 2, exp: seconds + 1 }, 'claims'],
    ['no expiry', { exp: undefined }, 'claims'],
    ['an expiry in text', { exp: `${seconds + 60}` as never }, 'claims'],
    ['an expiry beyond all years', { exp: 1e15 }, 'claims'],
    ['no time of issue', { iat: undefined }, 'claims'],
    ['issued in the future', { iat: seconds + 6 }, 'not_yet_valid'],
    ['issued in the future within the skew', { iat: seconds + 5 }, 'accepted'],
    ['not yet valid', { nbf: seconds + 6 }, 'not_yet_valid'],
    ['nbf that is no number', { nbf: '0' as never }, 'claims'],
    ['a scope that is a list', { scope: ['a'] }, 'claims'],
    ['four actors', { act: { sub: 'a', act: { sub: 'b', act: { sub: 'c', act: { sub: 'd' } } } } }, 'accepted'],
    [
      'five actors',
      { act: { sub: 'a', act: { sub: 'b', act: { sub: 'c', act: { sub: 'd', act: { sub: 'e' } } } } } },
      'claims',
    ],
    ['an actor without name', { act: { sub: 'a', act: { iss: 'x' } } }, 'claims'],
    ['an actor that is a string', { act: 'a' }, 'claims'],
    ['null as actor', { act: null }, 'claims'],
  ]
  test.each(cases)('%s', async (_, claims, expected) => {
    const key = await newSigningKey()
    const token = await signed(key, claims)
    expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), options))).toBe(expected)
  })

  test('exp 1e400, which parses as Infinity, is refused', async () => {
    const key = await newSigningKey()
    const payload = JSON.stringify(goodClaims).replace(`"exp":${seconds + 60}`, '"exp":1e400')
    const { CompactSign } = await import('jose')
    const token = await new CompactSign(Buffer.from(payload))
      .setProtectedHeader({ alg: 'ES256', kid: key.kid, typ: 'at+jwt' })
      .sign(key.privateKey)
    expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), options))).toBe('claims')
  })
})

describe('the type of the token (RFC 9068 §4, RFC 7515 §4.1.9)', () => {
  test.each([
    ['at+jwt', ['at+jwt'], {}, 'accepted'],
    ['application/AT+JWT', ['at+jwt'], {}, 'accepted'],
    ['JWT', ['at+jwt'], {}, 'type'],
    ['logout+jwt', ['at+jwt'], {}, 'type'],
    [undefined, ['at+jwt', 'JWT'], {}, 'type'],
    ['JWT', ['JWT'], {}, 'accepted'],
    ['JWT', ['JWT'], { nonce: 'n' }, 'type'],
    ['JWT', ['JWT'], { at_hash: 'h' }, 'type'],
  ])('%s where %j is accepted, with %j', async (typ, accepted, claims, expected) => {
    const key = await newSigningKey()
    const token = await signed(key, claims, typ === undefined ? { typ: undefined as never } : { typ })
    expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), { ...options, typ: accepted }))).toBe(expected)
  })

  test('typ JWT without an audience to check is refused', async () => {
    const key = await newSigningKey()
    const token = await signed(key, {}, { typ: 'JWT' })
    const lenient = { ...options, typ: ['JWT'], audience: undefined }
    expect(reasonOf(() => verifyJwt(parseJwt(token), publicKey(key), lenient))).toBe('audience')
  })
})

describe('the form of the token', () => {
  const header = encode({ alg: 'ES256', kid: 'k', typ: 'at+jwt' })
  const claims = encode(goodClaims)
  test.each([
    ['empty', ''],
    ['two parts', `${header}.${claims}`],
    ['four parts', `${header}.${claims}.AA.AA`],
    ['five parts', `${header}.${claims}.AA.AA.AA`],
    ['an empty header', `.${claims}.AA`],
    ['empty claims', `${header}..AA`],
    ['padding', `${header}.${claims}.AA==`],
    ['unused bits that are not zero', `${header}.${claims}.AB`],
    ['standard base64', `${header}.${claims}.A+A/`],
    ['white space', `${header}.${claims}.AA `],
    ['a line break', `${header}.${claims}\n.AA`],
    ['claims that are a list', `${header}.${encode([1])}.AA`],
    ['claims that are null', `${header}.${encode('null')}.AA`],
    ['claims that are no JSON', `${header}.${encode('{')}.AA`],
    ['a byte order mark', `${header}.${encode('\ufeff{}')}.AA`],
    [
      'bytes that are not UTF-8',
      `${header}.${Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]).toString('base64url')}.AA`,
    ],
    ['a claim twice', `${header}.${encode('{"sub":"a","x":"{,","sub":"b"}')}.AA`],
    ['a claim twice, once escaped', `${header}.${encode('{"sub":"a","s\\u0075b":"b"}')}.AA`],
    ['a nested member twice', `${header}.${encode('{"act":[{"sub":"a"},{"sub":"a","sub":"b"}]}')}.AA`],
    ['an unpaired surrogate', `${header}.${encode('{"sub":"\\ud800"}')}.AA`],
    ['nesting without end', `${header}.${encode(`{"a":${'['.repeat(40)}${']'.repeat(40)}}`)}.AA`],
    ['crit', `${encode({ alg: 'ES256', kid: 'k', crit: ['x'], x: 1 })}.${claims}.AA`],
    ['an unencoded payload', `${encode({ alg: 'ES256', kid: 'k', b64: false })}.${claims}.AA`],
    ['no algorithm', `${encode({ kid: 'k' })}.${claims}.AA`],
    ['a kid that is no string', `${encode({ alg: 'ES256', kid: { $ne: 1 } })}.${claims}.AA`],
    ['more than 16 kB', `${header}.${encode({ pad: 'x'.repeat(16_384) })}.AA`],
  ])('%s is malformed', (_, token) => {
    expect(reasonOf(() => parseJwt(token))).toBe('malformed')
  })

  test('equal names in different objects, quotes and braces in strings are fine', () => {
    const text = '{"a":{"x":1,"b":[{"x":"\\"}"},{"x":"]"}]},"x":{"a":"{\\"x\\":1"},"y":["x","x"]}'
    expect(parseJwt(`${header}.${encode(text)}.AA`).claims).toEqual(JSON.parse(text))
  })
})

describe('key sets', () => {
  test('weak, private, encryption, unknown, mismatched, nameless and repeated keys are left out', async () => {
    const good = await newSigningKey('ES256', 'good')
    const twice = await newSigningKey('ES256', 'twice')
    const rsa = await newSigningKey('RS256', 'rsa')
    const weak = await generateKeyPair('RS256', { modulusLength: 2048, extractable: true })
    const { exportJWK } = await import('jose')
    const privateJwk = { ...(await exportJWK(weak.privateKey)), kid: 'private', alg: 'RS256' }
    const { generateKeyPairSync } = await import('node:crypto')
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
    const { alg: _alg, ...withoutAlg } = rsa.jwk
    const keys = importJwks({
      keys: [
        good.jwk,
        twice.jwk,
        { ...good.jwk, kid: 'twice' },
        { ...withoutAlg, kid: 'no-alg' },
        { ...good.jwk, kid: 'verifies', use: undefined, key_ops: ['verify'] },
        { ...small, kid: 'small', alg: 'RS256' },
        privateJwk,
        { ...good.jwk, kid: 'enc', use: 'enc' },
        { ...good.jwk, kid: 'wraps', key_ops: ['wrapKey'] },
        { ...good.jwk, kid: 'wrong-curve', alg: 'ES384' },
        { ...good.jwk, kid: 'wrong-type', alg: 'RS256' },
        { ...good.jwk, kid: 'broken', x: 'AA' },
        { kty: 'oct', kid: 'secret', alg: 'HS256', k: 'AAAA' },
        { ...good.jwk, kid: undefined },
        'no key',
        null,
      ],
    })
    expect([...keys].map(([kid, { alg }]) => [kid, alg])).toEqual([
      ['good', 'ES256'],
      ['no-alg', 'RS256'],
      ['verifies', 'ES256'],
    ])
  })

  test('RSA keys with an exponent that signs nothing, or takes long, are left out', async () => {
    const { jwk } = await newSigningKey('RS256', 'rsa')
    const usable = (e: Buffer) => importJwks({ keys: [{ ...jwk, e: e.toString('base64url') }] }).size === 1
    expect([[3], [1, 0, 1]].map((e) => usable(Buffer.from(e)))).toEqual([true, true])
    expect([[], [0], [1], [2], [1, 0, 2]].map((e) => usable(Buffer.from(e)))).toEqual([
      false,
      false,
      false,
      false,
      false,
    ])
    expect(usable(Buffer.alloc(250, 0xff))).toBe(false)
  })

  test.each([[null], [[]], [{}], [{ keys: {} }], ['keys']])('%j is no key set', (value) => {
    expect(() => importJwks(value)).toThrow(TypeError)
  })
})
