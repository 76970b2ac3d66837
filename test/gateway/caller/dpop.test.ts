import { createHash, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK, type JWTPayload } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { proofAlgorithms } from '../../../platform/jwt/algorithms.ts'
import { type DpopClient, newDpopClient, type ProofOptions } from '../../support/dpop.ts'
import { orders, sendRaw, startTestGateway, type TestGateway } from '../../support/gateway.ts'

/** The checks of RFC 9449, one by one. */

const route = { audience: [orders], upstream: 'orders' }
const routes = [
  { ...route, id: 'required', path: '/required/**', dpop: 'required' },
  { ...route, id: 'accepted', path: '/accepted/**', dpop: 'accepted', scopes: ['read:orders'] },
  { ...route, id: 'hidden', path: '/hidden', dpop: 'required', forwardAuthorization: false },
  { ...route, id: 'plain', path: '/plain' },
  { id: 'public', path: '/public/**', auth: 'none', upstream: 'orders' },
]
const algs = `algs="${proofAlgorithms.join(' ')}"`
const metadata = 'resource_metadata="https://api.test/.well-known/oauth-protected-resource/orders"'

let gateway: TestGateway
let client: DpopClient
let nonce: string
/** The next one may have come meanwhile. */
const anyNonce = expect.stringMatching(/^[\w-]{43}$/)
beforeAll(async () => {
  gateway = await startTestGateway({ config: () => ({ routes, resourceMetadata: true }) })
  client = await newDpopClient()
  nonce = (await ask('/required/1')).nonce!
})
afterAll(() => gateway.close())

const tokenOf = (claims: JWTPayload = {}) => gateway.issuer.sign({ scope: 'read:orders', cnf: client.cnf, ...claims })

const send = async (path: string, headers: Record<string, string>, init: RequestInit = {}) => {
  const response = await fetch(gateway.url + path, { headers, ...init })
  const body = (await response.json()) as { code?: string; detail?: string; headers?: Record<string, string> }
  return {
    status: response.status,
    code: body.code,
    detail: body.detail,
    challenge: response.headers.get('www-authenticate'),
    nonce: response.headers.get('dpop-nonce') ?? undefined,
    seen: body.headers,
  }
}

/** With a good token and a good proof, as far as `options` say nothing else. */
const ask = async (path: string, options: ProofOptions & { token?: string; by?: never } = {}) => {
  const { token = await tokenOf(), ...more } = options
  return send(path, await client.fields({ url: gateway.url + path, token, nonce }, more))
}

test('a proof for this request, token, key and nonce passes, and goes upstream with its token', async () => {
  const token = await tokenOf()
  const fields = await client.fields({ url: `${gateway.url}/required/1`, token, nonce })
  const { status, seen, challenge } = await send('/required/1?page=2', fields)
  expect([status, challenge]).toEqual([200, null])
  expect(seen).toMatchObject({ authorization: `DPoP ${token}`, dpop: fields.dpop, 'x-auth-sub': 'u1' })
})

test('the upstream gets neither where the route keeps tokens from it', async () => {
  const { status, seen } = await ask('/hidden')
  expect(status).toBe(200)
  expect(Object.keys(seen!)).not.toEqual(expect.arrayContaining(['authorization']))
  expect(Object.keys(seen!)).not.toEqual(expect.arrayContaining(['dpop']))
})

test('a field for whoever is behind a public route passes as before', async () => {
  expect((await send('/public/token', { dpop: 'for the issuer' })).seen).toMatchObject({ dpop: 'for the issuer' })
})

test('every algorithm that the challenge names signs proofs', async () => {
  for (const alg of proofAlgorithms) {
    const one = await newDpopClient(alg)
    const token = await tokenOf({ cnf: one.cnf })
    const url = `${gateway.url}/required/1`
    const { status, detail } = await send('/required/1', await one.fields({ url, token, nonce }))
    expect([alg, status, detail]).toEqual([alg, 200, undefined])
  }
})

describe('hostile proofs', () => {
  const now = () => Math.floor(Date.now() / 1000)
  const { x, y, ...incomplete } = { x: '', y: '', kty: 'EC', crv: 'P-256' }
  const other = 'The DPoP proof is of another key than the one that the token is bound to.'
  const noKey = 'The DPoP proof has no public key for an algorithm that is accepted.'
  const elsewhere = 'The DPoP proof is for another address.'
  const notNow = 'The DPoP proof was not made just now, or the clock of the client is wrong.'
  const unreadable = 'The DPoP proof cannot be read as a JWT.'
  const noJti = 'The DPoP proof has no jti of up to 256 characters.'

  const cases: [string, () => ProofOptions | Promise<ProofOptions>, string][] = [
    ['another type', () => ({ header: { typ: 'JWT' } }), 'The DPoP proof is not of the type dpop+jwt.'],
    ['the type of a token', () => ({ header: { typ: 'at+jwt' } }), 'The DPoP proof is not of the type dpop+jwt.'],
    ['no type', () => ({ header: { typ: undefined } as never }), 'The DPoP proof is not of the type dpop+jwt.'],
    ['no key', () => ({ header: { jwk: undefined } as never }), noKey],
    ['half a key', () => ({ header: { jwk: incomplete } as never }), noKey],
    ['a private key', async () => ({ header: { jwk: await exportJWK(client.privateKey) } as never }), noKey],
    ['a key for encryption', () => ({ header: { jwk: { ...client.jwk, use: 'enc' } } as never }), noKey],
    ['a key that may only sign', () => ({ header: { jwk: { ...client.jwk, key_ops: ['sign'] } } as never }), noKey],
    ['a key for another algorithm', () => ({ header: { jwk: { ...client.jwk, alg: 'ES384' } } as never }), noKey],
    ['a key that is no object', () => ({ header: { jwk: [client.jwk] } as never }), noKey],
    ['a key of another type', () => ({ header: { jwk: { ...client.jwk, kty: 'RSA' } } as never }), noKey],
    ['a secret', () => ({ header: { jwk: { kty: 'oct', k: 'c2VjcmV0' } } as never }), noKey],
    ['a place off the curve', () => ({ header: { jwk: { ...client.jwk, y: client.jwk.x } } as never }), other],
    ['a stranger with a key of its own', async () => stranger(), other],
    [
      'a stranger with the key of the client',
      async () => ({ by: (await newDpopClient()).privateKey }),
      'The signature of the DPoP proof is not valid.',
    ],
    ['another method', () => ({ claims: { htm: 'POST' } }), 'The DPoP proof is for another method.'],
    ['a method in small letters', () => ({ claims: { htm: 'get' } }), 'The DPoP proof is for another method.'],
    ['no method', () => ({ claims: { htm: undefined } }), 'The DPoP proof is for another method.'],
    ['another path', () => ({ claims: { htu: `${gateway.url}/required/2` } }), elsewhere],
    ['another host', () => ({ claims: { htu: 'http://api.test/required/1' } }), elsewhere],
    ['another scheme', () => ({ claims: { htu: `${gateway.url.replace('http', 'https')}/required/1` } }), elsewhere],
    ['no address', () => ({ claims: { htu: undefined } }), elsewhere],
    ['several addresses', () => ({ claims: { htu: [`${gateway.url}/required/1`] } }), elsewhere],
    ['no time', () => ({ claims: { iat: undefined } }), notNow],
    ['a time that is text', () => ({ claims: { iat: String(now()) } as never }), notNow],
    ['a time of 62 s ago', () => ({ claims: { iat: now() - 62 } }), notNow],
    ['a time in 62 s', () => ({ claims: { iat: now() + 62 } }), notNow],
    ['an end that has come', () => ({ claims: { exp: now() - 1 } }), 'The DPoP proof has expired.'],
    ['a beginning in an hour', () => ({ claims: { nbf: now() + 3_600 } }), 'The DPoP proof is not valid yet.'],
    ['no id', () => ({ claims: { jti: undefined } }), noJti],
    ['an empty id', () => ({ claims: { jti: '' } }), noJti],
    ['an id that is a number', () => ({ claims: { jti: 7 } as never }), noJti],
    ['an id without end', () => ({ claims: { jti: 'x'.repeat(257) } }), noJti],
    ['no token', () => ({ claims: { ath: undefined } }), 'The DPoP proof is for another token.'],
    [
      'another token',
      () => ({ claims: { ath: createHash('sha256').update('x').digest('base64url') } }),
      'The DPoP proof is for another token.',
    ],
    ['too much of everything', () => ({ claims: { more: 'x'.repeat(8_192) } }), 'The DPoP proof is too long.'],
  ]
  const stranger = async (): Promise<ProofOptions> => {
    const { jwk, privateKey } = await newDpopClient()
    return { header: { jwk }, by: privateKey }
  }

  test.each(cases)('%s', async (_, options, detail) => {
    const token = await tokenOf()
    const about = { url: `${gateway.url}/required/1`, token, nonce }
    const refused = await send('/required/1', await client.fields(about, await options()))
    expect(refused).toMatchObject({
      status: 401,
      code: 'invalid_dpop_proof',
      detail,
      challenge: `DPoP error="invalid_dpop_proof", error_description="${detail}", ${algs}, ${metadata}`,
      nonce: anyNonce,
    })
  })

  test('what is a proof in every other respect passes at the edge of its time', async () => {
    expect((await ask('/required/1', { claims: { iat: now() - 58 } })).status).toBe(200)
    expect((await ask('/required/1', { claims: { iat: now() + 58 } })).status).toBe(200)
    expect((await ask('/required/1', { claims: { exp: now() + 30, nbf: now() } })).status).toBe(200)
  })

  /** The JWS of these JSON texts. */
  const signed = async (header: string, claims: string) => {
    const input = [header, claims].map((text) => Buffer.from(text).toString('base64url')).join('.')
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' }
    const signature = await crypto.subtle.sign(algorithm, client.privateKey, Buffer.from(input))
    return `${input}.${Buffer.from(signature).toString('base64url')}`
  }
  const parts = async (token: string) => {
    const proof = await client.proof({ url: `${gateway.url}/required/1`, token, nonce })
    return proof.split('.').map((part) => Buffer.from(part, 'base64url').toString()) as [string, string, string]
  }

  test.each<[string, (header: string) => string, (claims: string) => string]>([
    ['a member twice', (header) => header, (claims) => claims.replace('{', '{"htm":"POST",')],
    ['a member twice in the header', (header) => header.replace('{', '{"alg":"none",'), (claims) => claims],
    ['a member twice in the key', (header) => header.replace('"kty"', '"crv":"P-384","kty"'), (claims) => claims],
    ['an extension', (header) => header.replace('{', '{"crit":["x"],"x":1,'), (claims) => claims],
  ])('%s', async (_, changeHeader, changeClaims) => {
    const token = await tokenOf()
    const [header, claims] = await parts(token)
    const fields = { authorization: `DPoP ${token}`, dpop: await signed(changeHeader(header), changeClaims(claims)) }
    expect(await send('/required/1', fields)).toMatchObject({ code: 'invalid_dpop_proof', detail: unreadable })
    const same = { ...fields, dpop: await signed(header, claims) }
    expect((await send('/required/1', same)).status, 'the same without it').toBe(200)
  })

  test.each(['none', 'HS256', 'ES384', 'RS256', 'EdDSA', 'constructor'])('the algorithm %s', async (alg) => {
    const token = await tokenOf()
    const [header, claims] = await parts(token)
    const dpop = await signed(header.replace('ES256', alg), claims)
    expect(await send('/required/1', { authorization: `DPoP ${token}`, dpop })).toMatchObject({
      code: 'invalid_dpop_proof',
      detail: noKey,
    })
  })

  test.each(['', 'a', 'a.b.c', 'a.b.c.d', '..', '{}'])('no proof at all: "%s"', async (dpop) => {
    const fields = { authorization: `DPoP ${await tokenOf()}`, dpop }
    expect(await send('/required/1', fields)).toMatchObject({ code: 'invalid_dpop_proof', detail: unreadable })
  })

  test('two proofs', async () => {
    const token = await tokenOf()
    const one = await client.proof({ url: `${gateway.url}/required/1`, token, nonce })
    const two = await client.proof({ url: `${gateway.url}/required/1`, token, nonce })
    const head = `GET /required/1 HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: DPoP ${token}\r\n`
    const answer = await sendRaw(gateway.port, `${head}DPoP: ${one}\r\ndpop: ${two}\r\nConnection: close\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 400 .*\r\n/)
    const joined = { authorization: `DPoP ${token}`, dpop: `${one}, ${two}` }
    expect(await send('/required/1', joined)).toMatchObject({ code: 'invalid_dpop_proof' })
  })

  test('keys of RSA that are too small, or so large that a verification takes long', async () => {
    const token = (cnf: object) => tokenOf({ cnf })
    const url = `${gateway.url}/required/1`
    const large = await newDpopClient('RS256', { modulusLength: 4096 })
    const largest = { url, token: await token(large.cnf), nonce }
    expect((await send('/required/1', await large.fields(largest))).status).toBe(200)
    const larger = await newDpopClient('PS256', { modulusLength: 5120 })
    const tooLarge = { url, token: await token(larger.cnf), nonce }
    expect(await send('/required/1', await larger.fields(tooLarge))).toMatchObject({ detail: noKey })
    const exponent = { ...large.jwk, e: 'AQAAAAAAAAAAAQ' }
    expect(await send('/required/1', await large.fields(largest, { header: { jwk: exponent } }))).toMatchObject({
      detail: noKey,
    })
  })

  test.each(['ES384', 'ES512'])('%s, of which one verification takes a millisecond and more', async (alg) => {
    const slow = await newDpopClient(alg)
    const token = await tokenOf({ cnf: slow.cnf })
    const fields = await slow.fields({ url: `${gateway.url}/required/1`, token, nonce })
    expect(await send('/required/1', fields)).toMatchObject({ status: 401, detail: noKey })
  })

  test('a place off the curve, which the token is bound to', async () => {
    const jwk = { ...client.jwk, y: client.jwk.x } as JWK
    const token = await tokenOf({ cnf: { jkt: await calculateJwkThumbprint(jwk) } })
    const fields = await client.fields({ url: `${gateway.url}/required/1`, token, nonce }, { header: { jwk } })
    expect(await send('/required/1', fields)).toMatchObject({
      code: 'invalid_dpop_proof',
      detail: 'The signature of the DPoP proof is not valid.',
    })
  })

  test('the second spelling of a signature is no second proof', async () => {
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
    const token = await tokenOf()
    const proof = await client.proof({ url: `${gateway.url}/required/1`, token, nonce })
    const [header, claims, signature = ''] = proof.split('.')
    const raw = Buffer.from(signature, 'base64url')
    const s = order - BigInt(`0x${raw.subarray(32).toString('hex')}`)
    raw.set(Buffer.from(s.toString(16).padStart(64, '0'), 'hex'), 32)
    const twin = `${header}.${claims}.${raw.toString('base64url')}`
    const authorization = `DPoP ${token}`
    expect((await send('/required/1', { authorization, dpop: twin })).status).toBe(200)
    expect(await send('/required/1', { authorization, dpop: proof })).toMatchObject({
      detail: 'The DPoP proof was used before.',
    })
  })
})

describe('the nonce', () => {
  test.each<[string, () => string | undefined]>([
    ['none', () => undefined],
    ['of somebody else', () => createHash('sha256').update('x').digest('base64url')],
    ['cut off', () => nonce.slice(0, -1)],
    ['empty', () => ''],
  ])('%s: the client is given one', async (_, given) => {
    const token = await tokenOf()
    const url = `${gateway.url}/required/1`
    const refused = await send('/required/1', await client.fields({ url, token, nonce: given() }))
    expect(refused).toMatchObject({ status: 401, code: 'use_dpop_nonce' })
    expect(refused.challenge).toMatch(/^DPoP error="use_dpop_nonce", [^D]*algs="/)
    const retried = await client.fields({ url, token, nonce: refused.nonce })
    expect((await send('/required/1', retried)).status).toBe(200)
  })

  test('ends after four minutes, and the next one comes on answers for two before', async () => {
    let ahead = 0
    const clock = () => Date.now() + ahead
    const other = await startTestGateway({ config: () => ({ routes }), now: () => new Date(clock()) })
    try {
      const call = async (given: string) => {
        const seconds = Math.floor(clock() / 1000)
        const token = await other.issuer.sign({ cnf: client.cnf, iat: seconds, exp: seconds + 300 })
        const about = { url: `${other.url}/required/1`, token, nonce: given }
        const fields = await client.fields(about, { claims: { iat: seconds } })
        const response = await fetch(`${other.url}/required/1`, { headers: fields })
        return [response.status, response.headers.get('dpop-nonce') ?? undefined] as const
      }
      // From the beginning of a slice of time on.
      ahead = 120_000 - (Date.now() % 120_000)
      const [, first] = await call('none')
      expect(await call(first!)).toEqual([200, undefined])
      ahead += 120_000
      const [status, second] = await call(first!)
      expect([status, second]).toEqual([200, expect.any(String)])
      expect(second).not.toBe(first)
      expect(await call(second!)).toEqual([200, undefined])
      ahead += 120_000
      expect(await call(first!)).toEqual([401, expect.any(String)])
      expect((await call(second!))[0]).toBe(200)
    } finally {
      await other.close()
    }
  })

  test('of before a restart is old: so is every proof of before', async () => {
    const start = () => startTestGateway({ config: () => ({ routes }) })
    const before = await start()
    const token = await before.issuer.sign({ cnf: client.cnf })
    const answer = await fetch(`${before.url}/required/1`, {
      headers: await client.fields({ url: `${before.url}/required/1`, token, nonce: 'none' }),
    })
    const old = answer.headers.get('dpop-nonce')!
    await before.close()
    const after = await start()
    try {
      const again = await after.issuer.sign({ cnf: client.cnf })
      const fields = await client.fields({ url: `${after.url}/required/1`, token: again, nonce: old })
      const refused = await fetch(`${after.url}/required/1`, { headers: fields })
      expect([refused.status, await refused.json()]).toEqual([401, expect.objectContaining({ code: 'use_dpop_nonce' })])
    } finally {
      await after.close()
    }
  })
})

test('of copies of a request that race, one passes', async () => {
  const token = await tokenOf()
  const fields = await client.fields({ url: `${gateway.url}/required/1`, token, nonce })
  const answers = await Promise.all(Array.from({ length: 20 }, () => send('/required/1', fields)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(answers.filter(({ detail }) => detail === 'The DPoP proof was used before.')).toHaveLength(19)
})

test('two clients may choose the same id', async () => {
  const jti = randomUUID()
  const second = await newDpopClient()
  const url = `${gateway.url}/required/1`
  expect((await ask('/required/1', { claims: { jti } })).status).toBe(200)
  const theirs = { url, token: await tokenOf({ cnf: second.cnf }), nonce }
  expect((await send('/required/1', await second.fields(theirs, { claims: { jti } }))).status).toBe(200)
})

describe('which tokens a route takes', () => {
  const missing = { status: 401, code: 'token_missing' }
  const challenges = {
    '/required/1': `DPoP ${algs}, ${metadata}`,
    '/accepted/1': `Bearer ${metadata}, DPoP ${algs}, ${metadata}`,
    '/plain': `Bearer ${metadata}`,
  }

  test.each(Object.entries(challenges))('%s asks for what it takes', async (path, challenge) => {
    expect(await send(path, {})).toMatchObject({ ...missing, challenge })
  })

  test('a bearer token', async () => {
    const authorization = `Bearer ${await tokenOf({ cnf: undefined })}`
    expect(await send('/required/1', { authorization })).toMatchObject({
      ...missing,
      challenge: challenges['/required/1'],
    })
    expect((await send('/accepted/1', { authorization })).status).toBe(200)
    expect((await send('/plain', { authorization })).status).toBe(200)
  })

  test('a token of a key without a proof is good nowhere, by whatever scheme', async () => {
    const token = await tokenOf()
    const bound = { status: 401, code: 'invalid_token', detail: 'The token is bound to a key, and no bearer token.' }
    const proof = await client.proof({ url: `${gateway.url}/accepted/1`, token, nonce })
    for (const path of ['/accepted/1', '/plain']) {
      expect(await send(path, { authorization: `Bearer ${token}` })).toMatchObject(bound)
      expect(await send(path, { authorization: `Bearer ${token}`, dpop: proof })).toMatchObject(bound)
    }
    expect(await send('/required/1', { authorization: `Bearer ${token}` })).toMatchObject(missing)
    expect(await send('/plain', { authorization: `DPoP ${token}`, dpop: proof })).toMatchObject(missing)
    const without = { code: 'invalid_dpop_proof', detail: 'The request has no DPoP proof.', nonce: anyNonce }
    expect(await send('/required/1', { authorization: `DPoP ${token}` })).toMatchObject(without)
    expect(await send('/accepted/1', { authorization: `dpop ${token}` })).toMatchObject(without)
  })

  test('a token without a key is none for the scheme DPoP', async () => {
    const token = await tokenOf({ cnf: undefined })
    for (const path of ['/required/1', '/accepted/1'])
      expect(await ask(path, { token })).toMatchObject({
        status: 401,
        code: 'invalid_token',
        challenge: expect.stringMatching(/^DPoP error="invalid_token"/),
      })
  })

  test.each<[string, unknown]>([
    ['a key in full', { jwk: { kty: 'EC' } }],
    ['a name of a key', { kid: 'k1' }],
    ['nothing', {}],
    ['null', null],
    ['text', 'x'],
    ['a list', [{ jkt: 'x' }]],
    ['a thumbprint that is none', { jkt: 7 }],
  ])('bound to %s: refused on every route', async (_, cnf) => {
    const token = await tokenOf({ cnf } as never)
    const refused = {
      status: 401,
      code: 'invalid_token',
      detail: 'The token is bound to something that cannot be verified here.',
    }
    for (const path of ['/accepted/1', '/plain'])
      expect(await send(path, { authorization: `Bearer ${token}` })).toMatchObject(refused)
    expect(await ask('/required/1', { token })).toMatchObject(refused)
  })

  test('bound to a certificate: refused on a connection without', async () => {
    const token = await tokenOf({ cnf: { 'x5t#S256': 'x' } })
    expect(await send('/plain', { authorization: `Bearer ${token}` })).toMatchObject({
      status: 401,
      detail: 'The token is bound to a client certificate, which the connection does not have.',
    })
    const both = await tokenOf({ cnf: { ...client.cnf, 'x5t#S256': 'x' } })
    expect(await ask('/required/1', { token: both })).toMatchObject({ status: 401, code: 'invalid_token' })
  })

  test('later refusals are told by the scheme that was used', async () => {
    const token = await tokenOf({ scope: '' })
    const scope = 'error="insufficient_scope", scope="read:orders"'
    expect(await ask('/accepted/1', { token })).toMatchObject({
      code: 'insufficient_scope',
      challenge: `DPoP ${scope}, ${algs}, ${metadata}`,
    })
    const bearer = { authorization: `Bearer ${await tokenOf({ scope: '', cnf: undefined })}` }
    expect(await send('/accepted/1', bearer)).toMatchObject({
      challenge: `Bearer ${scope}, ${metadata}, DPoP ${algs}, ${metadata}`,
    })
  })
})

test('a refused signature costs no place among the remembered, and good proofs are counted', async () => {
  const sizeOf = async () =>
    Number(/^surrogate_gateway_dpop_proofs (\d+)$/m.exec((await gateway.metrics.render()).text)?.[1])
  const before = await sizeOf()
  const { privateKey } = await generateKeyPair('ES256')
  const url = `${gateway.url}/required/1`
  await send('/required/1', await client.fields({ url, token: await tokenOf(), nonce }, { by: privateKey }))
  expect(await sizeOf()).toBe(before)
  await ask('/required/1')
  expect(await sizeOf()).toBe(before + 1)
})
