import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { registerKeyClient } from '../../../support/client-keys.ts'
import { type CodeFlow, callback, createCodeFlow, type Person, verifier } from '../../../support/code-flow.ts'
import type { ProofOptions } from '../../../support/dpop.ts'
import { createDpopParty, type DpopParty } from '../../../support/dpop-party.ts'
import { accessTokenType, request, startTestIssuer, type TestIssuer, tokenExchange } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** Token requests with a proof: RFC 9449 §4.3, §5, §8. */

let issuer: TestIssuer
let flow: CodeFlow
let orders: string
let machine: TestApplication
let person: Person
let party: DpopParty
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  machine = await issuer.createMachine(orders, ['read:orders'])
  person = await flow.createPerson()
  await issuer.grantUser(person.id, orders, ['read:orders'])
  party = await createDpopParty(issuer)
})
afterAll(() => issuer.close())

const forOrders = () => ({ resource: orders, scope: 'read:orders' })
const credentials = () => ({ grant_type: 'client_credentials', ...forOrders() })
const codeFor = (client: TestApplication, parameters = {}) =>
  flow.signIn(flow.browser(), client, person, {
    scope: 'openid offline_access read:orders',
    resource: orders,
    ...parameters,
  })
const redeemed = async (client: TestApplication, form = {}) =>
  party.token(client, { ...codeForm(await codeFor(client)), ...form })
const codeForm = (code: string) => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: callback,
  code_verifier: verifier,
})

test('discovery names the algorithms of proofs, and none that is symmetric', async () => {
  const { body } = await request(`${issuer.url}/oidc/.well-known/openid-configuration`)
  const algorithms: string[] = body.dpop_signing_alg_values_supported
  expect(algorithms).toEqual(expect.arrayContaining(['ES256', 'PS256', 'Ed25519']))
  expect(algorithms.filter((name) => name === 'none' || name.startsWith('HS'))).toEqual([])
})

describe('a token is bound to the key that its request proves:', () => {
  const isBound = async (answer: { status: number; body: { access_token: string; token_type: string } }) => {
    expect(answer).toMatchObject({ status: 200, body: { token_type: 'DPoP' } })
    const { cnf } = await issuer.verify(answer.body.access_token, orders)
    expect(cnf).toEqual(party.cnf)
  }

  test('client credentials', async () => {
    await isBound(await party.token(machine, credentials()))
  })

  test.each(['Native', 'SPA', 'Traditional'])(
    'a code and a refresh token of an application of type %s',
    async (type) => {
      const client = await flow.createClient({ type })
      const code = await redeemed(client, { resource: orders })
      await isBound(code)
      const refresh = { grant_type: 'refresh_token', refresh_token: code.body.refresh_token, resource: orders }
      await isBound(await party.token(client, refresh))
    },
  )

  test('a subject token and an actor', async () => {
    const app = await issuer.createApplication()
    const exchange = async (form: object) =>
      party.token(app, {
        grant_type: tokenExchange,
        subject_token: await issuer.subjectToken(person.id),
        subject_token_type: accessTokenType,
        ...form,
      })
    await isBound(await exchange(forOrders()))
    const opaque = await exchange({ scope: 'openid' })
    expect(opaque).toMatchObject({ status: 200, body: { token_type: 'DPoP' } })
    expect((await party.userinfo(opaque.body.access_token)).body).toMatchObject({ sub: person.id })
  })

  test('an opaque token, whose digest alone is stored', async () => {
    const { body } = await redeemed(await flow.createClient())
    expect(body).toMatchObject({ token_type: 'DPoP', access_token: expect.not.stringContaining('.') })
    expect((await party.userinfo(body.access_token)).status).toBe(200)
    expect(await flow.userinfo(body.access_token)).toBe(401)
  })

  test('and without a proof to none', async () => {
    const { body } = await issuer.token(machine, credentials())
    expect(body.token_type).toBe('Bearer')
    expect(decodeJwt(body.access_token)).not.toHaveProperty('cnf')
  })

  test('a script of custom claims cannot bind it to another', async () => {
    const script = `const getCustomJwtClaims = async () => ({ cnf: { jkt: 'foreign' }, kept: true })`
    const path = '/configs/jwt-customizer/client-credentials'
    expect((await issuer.api('PUT', path, { script })).status).toBeLessThan(300)
    const bound = await party.token(machine, credentials())
    const { cnf, kept } = decodeJwt(bound.body.access_token)
    expect([cnf, kept]).toEqual([party.cnf, true])
    const bearer = await issuer.token(machine, credentials())
    expect(decodeJwt(bearer.body.access_token)).toMatchObject({ kept: true })
    expect(decodeJwt(bearer.body.access_token)).not.toHaveProperty('cnf')
    expect((await issuer.api('DELETE', path)).status).toBe(204)
  })
})

describe('the nonce', () => {
  test('is asked for with 400, and one of an instance is good at the other', async () => {
    const refused = await party.token(machine, credentials(), { nonce: undefined })
    expect(refused).toMatchObject({ status: 400, body: { error: 'use_dpop_nonce' } })
    const nonce = refused.headers.get('dpop-nonce')!
    expect(nonce).toMatch(/^[\w-]{43}$/)
    const answer = await party.token(machine, credentials(), { nonce, instance: 1 })
    expect([answer.status, answer.headers.get('dpop-nonce')]).toEqual([200, null])
    expect((await party.token(machine, credentials(), { nonce: `${nonce.slice(1)}A` })).body.error).toBe(
      'use_dpop_nonce',
    )
  })

  test('that is asked for uses up neither what proves the client nor the code', async () => {
    const client = await registerKeyClient(issuer, { type: 'Traditional', metadata: { redirectUris: [callback] } })
    const form = { ...codeForm(await codeFor({ id: client.id })), ...(await client.assertion()), client_id: client.id }
    const application = { id: client.id }
    const first = await party.token(application, form, { nonce: undefined })
    expect(first.body.error).toBe('use_dpop_nonce')
    expect((await party.token(application, form)).status).toBe(200)
    const { body } = await party.token(application, form)
    expect(body.error).toBe('invalid_client')
  })
})

describe('a proof is good once,', () => {
  const proof = async () => party.proof({ method: 'POST', url: `${issuer.issuer}/token`, nonce: await party.nonce() })

  test('at the other instance too', async () => {
    const sent = await proof()
    expect((await party.token(machine, credentials(), { sent })).status).toBe(200)
    const again = await party.token(machine, credentials(), { sent, instance: 1 })
    expect(again).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
  })

  test('of twenty copies at once at two instances', async () => {
    const sent = await proof()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => party.token(machine, credentials(), { sent, instance: index % 2 })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(400)])
  })

  test('also in the other spelling of its signature', async () => {
    const sent = await proof()
    expect((await party.token(machine, credentials(), { sent })).status).toBe(200)
    const [header, payload, signature] = sent.split('.')
    const bytes = Buffer.from(signature!, 'base64url')
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
    const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
    const other = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')])
    const again = await party.token(machine, credentials(), {
      sent: `${header}.${payload}.${other.toString('base64url')}`,
    })
    expect(again.body).toMatchObject({
      error: 'invalid_dpop_proof',
      error_description: expect.stringContaining('used'),
    })
  })

  test('and is kept as a digest until it is too old', async () => {
    const sent = await proof()
    await party.token(machine, credentials(), { sent })
    const { jti } = decodeJwt(sent)
    const rows = await issuer.sql<{ text: string; seconds: number }>(
      `SELECT encode(digest, 'escape') AS text, extract(epoch FROM expires_at - now())::float8 AS seconds FROM dpop_proofs`,
    )
    expect(rows.every(({ text, seconds }) => !text.includes(jti!) && seconds > 60 && seconds < 400)).toBe(true)
  })

  test('but not used up by a client that does not prove itself', async () => {
    const sent = await proof()
    const stranger = await party.token({ ...machine, secret: 'wrong' }, credentials(), { sent })
    expect(stranger.body.error).toBe('invalid_client')
    expect((await party.token(machine, credentials(), { sent })).status).toBe(200)
  })
})

describe('hostile proofs', () => {
  const now = () => Math.floor(Date.now() / 1000)
  const claims =
    (members: object): (() => ProofOptions) =>
    () => ({ claims: members as ProofOptions['claims'] & object })
  const cases: Record<string, () => ProofOptions> = {
    'of another method': claims({ htm: 'GET' }),
    'of a method in other letters': claims({ htm: 'post' }),
    'for another address': () => ({ claims: { htu: `${issuer.issuer}/request` } }),
    'for another host': claims({ htu: 'https://evil.example.test/oidc/token' }),
    'for an address with a user name': () => ({ claims: { htu: `${issuer.issuer}/token`.replace('://', '://me@') } }),
    'for no address': claims({ htu: undefined }),
    'without jti': claims({ jti: undefined }),
    'with an empty jti': claims({ jti: '' }),
    'with a long jti': claims({ jti: 'x'.repeat(257) }),
    'made an hour ago': () => ({ claims: { iat: now() - 3600 } }),
    'made in an hour': () => ({ claims: { iat: now() + 3600 } }),
    'made 61 seconds ahead': () => ({ claims: { iat: now() + 62 } }),
    'without iat': claims({ iat: undefined }),
    'that has expired': () => ({ claims: { exp: now() - 1 } }),
    'that is not valid yet': () => ({ claims: { nbf: now() + 3600 } }),
    'of another type': () => ({ header: { typ: 'JWT' } }),
    'with the private key': () => ({ header: { jwk: { ...party.jwk, d: 'AAAA' } } }),
    'with a symmetric key': () => ({ header: { jwk: { kty: 'oct', k: 'AAAA' } as never } }),
    'without a key': () => ({ header: { jwk: undefined as never } }),
  }

  test.each(Object.entries(cases))('%s', async (_, options) => {
    const { status, body } = await party.token(machine, credentials(), options())
    expect([status, body.error]).toEqual([400, 'invalid_dpop_proof'])
  })

  test('by an algorithm that takes long, signed with another key, with none, or with a secret', async () => {
    const foreign = await createDpopParty(issuer)
    const signed = await party.token(machine, credentials(), { by: foreign.privateKey })
    const [, payload] = (
      await party.proof({ method: 'POST', url: `${issuer.issuer}/token`, nonce: await party.nonce() })
    ).split('.')
    const headers = [
      { typ: 'dpop+jwt', alg: 'none', jwk: party.jwk },
      { typ: 'dpop+jwt', alg: 'HS256', jwk: party.jwk },
    ]
    const unsigned = await Promise.all(
      headers.map((header) => {
        const text = Buffer.from(JSON.stringify(header)).toString('base64url')
        return party.token(machine, credentials(), { sent: `${text}.${payload}.` })
      }),
    )
    const slow = await (await createDpopParty(issuer, 'ES384')).token(machine, credentials(), {
      nonce: await party.nonce(),
    })
    for (const { body } of [slow, signed, ...unsigned]) expect(body.error).toBe('invalid_dpop_proof')
  })

  test('two of them, or what is none', async () => {
    const proof = () => party.proof({ method: 'POST', url: `${issuer.issuer}/token` })
    for (const sent of [`${await proof()}, ${await proof()}`, 'nonsense', '..', 'x'.repeat(9_000)])
      expect((await party.token(machine, credentials(), { sent })).body.error).toBe('invalid_dpop_proof')
  })

  test('an address in another spelling is the same one', async () => {
    const htu = `${issuer.issuer}/token`.replace('http:', 'HTTP:').replace('/token', '/%74oken?a=1#b')
    expect((await party.token(machine, credentials(), { claims: { htu } })).status).toBe(200)
  })

  test.each(['PS256', 'Ed25519', 'RS256'])('those by %s are good', async (alg) => {
    const other = await createDpopParty(issuer, alg)
    const { body } = await other.token(machine, credentials())
    expect(decodeJwt(body.access_token)['cnf']).toEqual(other.cnf)
  })

  test('nothing of a proof is logged', async () => {
    const proof = await party.proof({ method: 'POST', url: `${issuer.issuer}/token`, nonce: await party.nonce() })
    await party.token(machine, credentials(), { sent: proof })
    await party.token(machine, credentials(), { sent: proof })
    expect(issuer.logged()).not.toContain(proof.split('.')[2])
  })
})

describe('an application with dpopBoundAccessTokens', () => {
  test('gets no other tokens, and its code stays', async () => {
    const client = await flow.createClient({ custom: { dpopBoundAccessTokens: true } })
    const code = await codeFor(client)
    const refused = await flow.redeem(client, code)
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
    const good = await party.token(client, codeForm(code))
    expect(good).toMatchObject({ status: 200, body: { token_type: 'DPoP' } })
    const bearer = await flow.refresh(client, good.body.refresh_token)
    expect(bearer.body.error).toBe('invalid_dpop_proof')
    expect(
      await party.token(client, { grant_type: 'refresh_token', refresh_token: good.body.refresh_token }),
    ).toMatchObject({ status: 200 })
  })
})
