import { createHmac, createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject, sign } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { orders, startTestGateway, type TestGateway, takenEverywhere } from '../../support/gateway.ts'
import { newSigningKey, startTokenIssuer, type TokenIssuer } from '../../support/token-issuer.ts'
import { until } from '../../support/until.ts'

/** Tokens that must not get through, each by what it tries; made by hand where no library makes them. */

const cleanup: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of cleanup.splice(0).reverse()) await close()
})

let gateway: TestGateway
let issuer: TokenIssuer
let pair: { publicKey: KeyObject; privateKey: KeyObject }
beforeAll(async () => {
  pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  issuer = await startTokenIssuer()
  issuer.published.push({ ...(await exportJWK(pair.publicKey)), kid: 'hand', alg: 'ES256', use: 'sig' })
  gateway = await startTestGateway({ config: () => ({ issuers: [{ issuer: issuer.issuer }] }) })
  await until(async () => expect((await gateway.health.ready()).ok).toBe(true))
})
afterAll(async () => {
  await gateway.close()
  await issuer.close()
})
beforeEach(() => {
  gateway.upstream.seen.length = 0
})

const encode = (text: string | Buffer) => Buffer.from(text).toString('base64url')
const seconds = () => Math.floor(Date.now() / 1000)

const claims = (): Record<string, unknown> => ({
  iss: issuer.issuer,
  sub: 'u1',
  aud: orders,
  scope: 'read:orders',
  iat: seconds(),
  exp: seconds() + 300,
})
const header = { alg: 'ES256', typ: 'at+jwt', kid: 'hand' }

/** Signed with the good key, whatever stands in it. */
const tokenOf = (payload: unknown = claims(), head: unknown = header, key: KeyObject = pair.privateKey): string => {
  const text = (part: unknown) => (typeof part === 'string' ? part : JSON.stringify(part))
  const input = `${encode(text(head))}.${encode(text(payload))}`
  return `${input}.${encode(sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' }))}`
}

const statusOf = async (token: string, at: TestGateway = gateway) => {
  const response = await at.call('/orders', { token })
  await response.body?.cancel()
  return response.status
}

test('the token that all of these begin with is good', async () => {
  expect(await statusOf(tokenOf())).toBe(200)
})

describe('signatures', () => {
  const unsigned = (alg: unknown) =>
    `${encode(JSON.stringify({ ...header, alg }))}.${encode(JSON.stringify(claims()))}.`
  test.each(['none', 'None', 'NONE', '', null, ['ES256'], 'ES256K', 'HS256'])('alg %j opens nothing', async (alg) => {
    expect(await statusOf(unsigned(alg))).toBe(401)
    expect(await statusOf(`${unsigned(alg)}AA`)).toBe(401)
  })

  test('HS256 keyed with the public key opens nothing, in whatever form the key is taken', async () => {
    const forms = [
      pair.publicKey.export({ type: 'spki', format: 'pem' }),
      pair.publicKey.export({ type: 'spki', format: 'der' }),
      JSON.stringify(pair.publicKey.export({ format: 'jwk' })),
    ]
    for (const form of forms) {
      const input = `${encode(JSON.stringify({ ...header, alg: 'HS256' }))}.${encode(JSON.stringify(claims()))}`
      expect(await statusOf(`${input}.${createHmac('sha256', form).update(input).digest('base64url')}`)).toBe(401)
    }
  })

  test.each<[string, (x: bigint) => bigint]>([
    ['r = s = 0 (CVE-2022-21449)', () => 0n],
    ['r = s = n', () => 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n],
    ['r = s = 1', () => 1n],
  ])('%s is no signature', async (_, value) => {
    const [head, payload] = tokenOf().split('.')
    const half = value(0n).toString(16).padStart(64, '0')
    expect(await statusOf(`${head}.${payload}.${encode(Buffer.from(half + half, 'hex'))}`)).toBe(401)
  })

  test('a signature in DER, cut short, or with something behind it is none', async () => {
    const [head, payload, signature = ''] = tokenOf().split('.')
    const raw = Buffer.from(signature, 'base64url')
    const der = sign('sha256', Buffer.from(`${head}.${payload}`), pair.privateKey)
    for (const other of [der, raw.subarray(0, 63), Buffer.concat([raw, Buffer.from([0])]), Buffer.alloc(0)]) {
      expect(await statusOf(`${head}.${payload}.${encode(other)}`)).toBe(401)
    }
  })

  test('the key that a token brings along is never used: jwk, jku, x5u, x5c', async () => {
    const asked: string[] = []
    const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const jwk = { ...own.publicKey.export({ format: 'jwk' }), kid: 'hand', alg: 'ES256' }
    const server = createServer((request, response) => {
      asked.push(request.url!)
      response.end(JSON.stringify({ keys: [jwk] }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanup.push(() => new Promise((resolve) => server.close(resolve)))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`
    for (const brought of [{ jwk }, { jku: url }, { x5u: url }, { x5c: ['AA=='] }]) {
      expect(await statusOf(tokenOf(claims(), { ...header, ...brought }, own.privateKey))).toBe(401)
    }
    expect(asked).toEqual([])
  })

  test('a kid is a name, not a path, a query or a member of an object', async () => {
    for (const kid of ['../../dev/null', "x' OR 1=1", '__proto__', 'constructor', '', 'x'.repeat(5_000), 7, null, {}]) {
      expect([401, 503]).toContain(await statusOf(tokenOf(claims(), { ...header, kid })))
    }
    expect(gateway.upstream.seen).toEqual([])
  })
})

describe('what a token is', () => {
  test.each<[string, unknown]>([
    ['an ID token', { typ: 'JWT' }],
    ['a logout token', { typ: 'logout+jwt' }],
    ['a client assertion', { typ: 'client-authentication+jwt' }],
    ['a DPoP proof', { typ: 'dpop+jwt' }],
    ['an identity assertion of a gateway', { typ: 'surrogate-identity+jwt' }],
    ['of no type', { typ: undefined }],
    ['of a type that is no text', { typ: ['at+jwt'] }],
    ['one with extensions it says we must know', { crit: ['exp'] }],
    ['one with an empty list of them', { crit: [] }],
    ['one whose payload is not encoded', { b64: false, crit: ['b64'] }],
  ])('%s is no access token', async (_, change) => {
    expect(await statusOf(tokenOf(claims(), { ...header, ...(change as object) }))).toBe(401)
  })

  test('an encrypted token (five parts) is none', async () => {
    expect(await statusOf(`${encode('{"alg":"dir","enc":"A256GCM"}')}..AA.AA.AA`)).toBe(401)
  })
})

describe('what stands in a token', () => {
  test.each<[string, Record<string, unknown>]>([
    ['without exp', { exp: undefined }],
    ['with exp in text', { exp: String(seconds() + 300) }],
    ['with exp null', { exp: null }],
    ['with a negative exp', { exp: -1 }],
    ['that expires before it was issued', { iat: seconds() + 3, exp: seconds() + 2 }],
    ['from the future', { iat: seconds() + 60, exp: seconds() + 300 }],
    ['that is not valid yet', { nbf: seconds() + 60 }],
    ['with nbf in text', { nbf: '0' }],
    ['of nobody', { sub: undefined }],
    ['of null', { sub: null }],
    ['of a list of people', { sub: ['u1'] }],
    ['of a person named nothing', { sub: '' }],
    ['for nobody', { aud: undefined }],
    ['for an empty list', { aud: [] }],
    ['for an object', { aud: { [orders]: true } }],
    ['for a list with a number (T-21)', { aud: [orders, 1] }],
    ['for an audience that begins the same', { aud: `${orders}/more` }],
    ['for an audience in another case', { aud: orders.toUpperCase() }],
    ['from the issuer with a slash behind', { iss: 'SLASH' }],
    ['from no issuer', { iss: undefined }],
    ['from a list of issuers', { iss: 'LIST' }],
    ['with scopes in a list', { scope: ['read:orders'] }],
    ['with a scope that is a number', { scope: 1 }],
    ['with an actor that is text', { act: 's1' }],
    ['with an actor without a name', { act: {} }],
    [
      'with more actors than four',
      { act: { sub: 'a', act: { sub: 'b', act: { sub: 'c', act: { sub: 'd', act: { sub: 'e' } } } } } },
    ],
    ['with a session that is an object', { sid: {} }],
    ['with a client that is a list', { client_id: ['c'] }],
  ])('a token %s is refused, and the gateway stays up', async (_, change) => {
    const made = { ...claims(), ...change }
    if (made['iss'] === 'SLASH') made['iss'] = `${issuer.issuer}/`
    if (made['iss'] === 'LIST') made['iss'] = [issuer.issuer]
    expect(await statusOf(tokenOf(made))).toBe(401)
    expect(gateway.upstream.seen).toEqual([])
  })

  const json = () => JSON.stringify(claims()).slice(0, -1)
  test.each<[string, () => string]>([
    ['a member twice', () => `${json()},"sub":"admin"}`],
    ['a member twice, once escaped', () => `${json()},"s\\u0075b":"admin"}`],
    ['an expiry beyond all numbers', () => `${json().replace(/"exp":\d+/, '"exp":1e400')}}`],
    ['something behind it', () => `${json()}}{}`],
    ['a comment', () => `${json()}/**/}`],
    ['a byte order mark', () => `\ufeff${json()}}`],
    ['a list around it', () => `[${json()}}]`],
    ['nesting without end', () => `${json()},"x":${'['.repeat(60)}${']'.repeat(60)}}`],
    ['__proto__ twice', () => `${json()},"__proto__":{},"__proto__":{"scope":"x"}}`],
  ])('claims with %s are refused', async (_, text) => {
    expect(await statusOf(tokenOf(text()))).toBe(401)
  })

  test('a member named __proto__ gives nobody anything', async () => {
    const { scope: _, ...rest } = claims()
    expect(await statusOf(tokenOf(`${JSON.stringify(rest).slice(0, -1)},"__proto__":{"scope":"read:orders"}}`))).toBe(
      401,
    )
  })

  test('times within the skew of 5 s are good', async () => {
    expect(await statusOf(tokenOf({ ...claims(), iat: seconds() + 3 }))).toBe(200)
    expect(await statusOf(tokenOf({ ...claims(), nbf: seconds() + 3 }))).toBe(200)
    expect(await statusOf(tokenOf({ ...claims(), iat: seconds() - 60, exp: seconds() - 2 }))).toBe(200)
  })
})

describe('a token that was accepted before', () => {
  test('is asked about anew on a route with other scopes (CVE-2021-32701)', async () => {
    const token = tokenOf()
    expect(await statusOf(token)).toBe(200)
    expect((await gateway.call('/orders', { token, method: 'POST', body: 'x' })).status).toBe(401)
  })

  test('does not vouch for one that differs in a byte', async () => {
    const token = tokenOf()
    expect(await statusOf(token)).toBe(200)
    const last = token.at(-2)!
    for (const other of [
      `${token}A`,
      token.slice(0, -1),
      `${token.slice(0, -2)}${last === 'A' ? 'B' : 'A'}${token.at(-1)}`,
    ]) {
      expect(await statusOf(other)).toBe(401)
    }
  })
})

describe('several issuers', () => {
  const two = async (config: (one: TokenIssuer, other: TokenIssuer) => Record<string, unknown>) => {
    const one = await startTokenIssuer()
    const other = await startTokenIssuer({ alg: 'RS256' })
    cleanup.push(one.close, other.close)
    const at = await startTestGateway({ config: () => config(one, other) })
    cleanup.push(at.close)
    await until(async () => expect((await at.health.ready()).ok).toBe(true))
    return { one, other, at }
  }

  test('a key of one under the same kid does not sign for the other', async () => {
    const shared = await newSigningKey('ES256', 'shared')
    const { one, other, at } = await two((a, b) => {
      a.published.push(shared.jwk)
      return takenEverywhere({ issuer: a.issuer }, { issuer: b.issuer })
    })
    const scope = 'read:orders'
    expect(await statusOf(await one.sign({ scope }, {}, shared), at)).toBe(200)
    expect(await statusOf(await other.sign({ scope }), at)).toBe(200)
    const borrowed = await newSigningKey('ES256', other.key.kid)
    expect(await statusOf(await other.sign({ scope }, {}, borrowed), at)).toBe(401)
    expect([401, 503]).toContain(await statusOf(await other.sign({ scope }, {}, shared), at))
  })

  test('each has its own algorithms, whatever keys it publishes', async () => {
    const { one, other, at } = await two((a, b) => ({
      ...takenEverywhere({ issuer: a.issuer, algorithms: ['ES256'] }, { issuer: b.issuer, algorithms: ['ES256'] }),
    }))
    expect(await statusOf(await one.sign({ scope: 'read:orders' }), at)).toBe(200)
    expect(await statusOf(await other.sign({ scope: 'read:orders' }), at), 'RS256').toBe(401)
  })

  test('one that is down takes nothing from the other', async () => {
    const down = await startTokenIssuer()
    down.answer = { status: 500 }
    const up = await startTokenIssuer()
    cleanup.push(down.close, up.close)
    const at = await startTestGateway({ config: () => takenEverywhere({ issuer: down.issuer }, { issuer: up.issuer }) })
    cleanup.push(at.close)
    await until(async () => expect(await statusOf(await up.sign({ scope: 'read:orders' }), at)).toBe(200))
    expect(await statusOf(await down.sign({ scope: 'read:orders' }), at)).toBe(503)
  })
})

describe('keys that are published but not usable', () => {
  const rsa = (bits: number) => generateKeyPairSync('rsa', { modulusLength: bits })
  const publish = async (jwk: (good: JsonWebKey) => object, alg = 'ES256') => {
    const issuer = await startTokenIssuer({ alg })
    cleanup.push(issuer.close)
    const [good] = issuer.published.splice(0)
    issuer.published.push(jwk(good as JsonWebKey) as never, (await newSigningKey()).jwk)
    const at = await startTestGateway({ config: () => ({ issuers: [{ issuer: issuer.issuer }] }) })
    cleanup.push(at.close)
    await until(async () => expect((await at.health.ready()).ok).toBe(true))
    return statusOf(await issuer.sign({ scope: 'read:orders' }), at)
  }

  test.each<[string, (good: JsonWebKey) => object]>([
    ['for encryption', (good) => ({ ...good, use: 'enc' })],
    ['for wrapping keys', (good) => ({ ...good, use: undefined, key_ops: ['wrapKey'] })],
    ['of another algorithm', (good) => ({ ...good, alg: 'ES384' })],
    ['with its private part', (good) => ({ ...good, d: 'AA' })],
    ['with a coordinate that is not on the curve', (good) => ({ ...good, x: good['y'] })],
    ['without kid', (good) => ({ ...good, kid: undefined })],
  ])('%s: refused', async (_, jwk) => {
    expect([401, 503]).toContain(await publish(jwk))
  })

  test('a 1024-bit RSA key signs for nobody', async () => {
    const weak = rsa(1024)
    const issuer = await startTokenIssuer({ alg: 'RS256' })
    cleanup.push(issuer.close)
    const jwk = { ...createPublicKey(weak.privateKey).export({ format: 'jwk' }), kid: 'weak', alg: 'RS256', use: 'sig' }
    issuer.published.push(jwk as never)
    const at = await startTestGateway({ config: () => ({ issuers: [{ issuer: issuer.issuer }] }) })
    cleanup.push(at.close)
    await until(async () => expect((await at.health.ready()).ok).toBe(true))
    const input = `${encode(JSON.stringify({ alg: 'RS256', typ: 'at+jwt', kid: 'weak' }))}.${encode(
      JSON.stringify({ ...claims(), iss: issuer.issuer }),
    )}`
    const token = `${input}.${encode(sign('sha256', Buffer.from(input), weak.privateKey))}`
    expect([401, 503]).toContain(await statusOf(token, at))
  })

  test('the untouched key works', async () => {
    expect(await publish((good) => good)).toBe(200)
  })
})
