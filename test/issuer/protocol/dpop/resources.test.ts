import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CodeFlow, callback, createCodeFlow, type Person, verifier } from '../../../support/code-flow.ts'
import { createDpopParty, type DpopParty } from '../../../support/dpop-party.ts'
import {
  accessTokenType,
  basic,
  formOf,
  request,
  startTestIssuer,
  type TestIssuer,
  tokenExchange,
} from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** What becomes of bound tokens at the issuer itself: RFC 9449 §7, and wherever else one is shown. */

let issuer: TestIssuer
let flow: CodeFlow
let orders: string
let person: Person
let client: TestApplication
let owner: DpopParty
let thief: DpopParty
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  person = await flow.createPerson()
  await issuer.grantUser(person.id, orders, ['read:orders'])
  client = await flow.createClient({ type: 'Traditional' })
  ;[owner, thief] = await Promise.all([createDpopParty(issuer), createDpopParty(issuer)])
})
afterAll(() => issuer.close())

/** Tokens of the person, bound to the owner's key. */
const signedIn = async (parameters = {}, form = {}) => {
  const code = await flow.signIn(flow.browser(), client, person, parameters)
  const sent = { grant_type: 'authorization_code', code, redirect_uri: callback, code_verifier: verifier, ...form }
  const { status, body } = await owner.token(client, sent)
  expect([status, body.token_type]).toEqual([200, 'DPoP'])
  return body as { access_token: string; refresh_token: string }
}
const opaque = async () => (await signedIn()).access_token
const jwt = async () =>
  (await signedIn({ scope: 'openid read:orders', resource: orders }, { resource: orders })).access_token
const bearer = (token: string, init: RequestInit = {}) =>
  request(`${issuer.url}/oidc/me`, { headers: { authorization: `Bearer ${token}` }, ...init })

describe('userinfo', () => {
  test('wants the scheme and the proof of the key', async () => {
    const token = await opaque()
    expect(await owner.userinfo(token)).toMatchObject({ status: 200, body: { sub: person.id } })
    const refused = await bearer(token)
    expect(refused).toMatchObject({ status: 401, body: { error: 'invalid_token' } })
    const body = formOf({ access_token: token })
    expect((await bearer(token, { method: 'POST', headers: {}, body })).status, 'in a form').toBe(401)
    const foreign = await thief.userinfo(token)
    expect(foreign).toMatchObject({ status: 401, body: { error: 'invalid_token' } })
    expect(foreign.headers.get('www-authenticate')).toMatch(/^DPoP algs="[^"]+", error="invalid_token"/)
  })

  test('without a nonce tells one, by 401 and a challenge', async () => {
    const answer = await owner.userinfo(await opaque(), { nonce: undefined })
    expect([answer.status, answer.headers.get('dpop-nonce')]).toEqual([401, expect.any(String)])
    expect(answer.headers.get('www-authenticate')).toMatch(/^DPoP algs="ES256 [^"]*", error="use_dpop_nonce"/)
  })

  test('takes a proof once, at one instance', async () => {
    const token = await opaque()
    const sent = await owner.proof({ url: `${issuer.issuer}/me`, token, nonce: await owner.nonce() })
    const statuses = await Promise.all(
      [0, 1, 0, 1].map(async (instance) => (await owner.userinfo(token, { sent, instance })).status),
    )
    expect(statuses.sort()).toEqual([200, 401, 401, 401])
  })

  test('refuses proofs of another token, method or address, and none', async () => {
    const token = await opaque()
    const wrong = [{ ath: undefined }, { ath: 'x' }, { htm: 'POST' }, { htu: `${issuer.issuer}/token` }]
    for (const claims of wrong) {
      const answer = await owner.userinfo(token, { claims })
      expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_dpop_proof' } })
      expect(answer.headers.get('www-authenticate')).toContain('error="invalid_dpop_proof"')
    }
    const none = await request(`${issuer.url}/oidc/me`, { headers: { authorization: `DPoP ${token}` } })
    expect(none).toMatchObject({ status: 401, body: { error: 'invalid_dpop_proof' } })
  })

  test('a token that is bound to no key is not sent by that scheme', async () => {
    const code = await flow.signIn(flow.browser(), client, person)
    const { access_token: token } = (await flow.redeem(client, code)).body
    expect((await bearer(token)).status).toBe(200)
    expect(await owner.userinfo(token)).toMatchObject({ status: 401, body: { error: 'invalid_token' } })
  })

  test('the scheme is read in any case', async () => {
    const token = await opaque()
    const dpop = await owner.proof({ url: `${issuer.issuer}/me`, token, nonce: await owner.nonce() })
    const answer = await request(`${issuer.url}/oidc/me`, { headers: { authorization: `dpop ${token}`, dpop } })
    expect(answer.status).toBe(200)
  })
})

describe('the Management API', () => {
  const machine = async () => {
    const app = await issuer.createMachine(issuer.managementResource, ['users'])
    const { body } = await owner.token(app, {
      grant_type: 'client_credentials',
      resource: issuer.managementResource,
      scope: 'users',
    })
    return body.access_token as string
  }

  test('takes a bound token with its proof alone', async () => {
    const token = await machine()
    expect(await owner.api('GET', `/users/${person.id}?a=1`, token)).toMatchObject({
      status: 200,
      body: { id: person.id },
    })
    const refused = [
      await issuer.api('GET', `/users/${person.id}`, undefined, { token }),
      await thief.api('GET', `/users/${person.id}`, token),
      await owner.api('GET', `/users/${person.id}`, token, { nonce: undefined }),
      await owner.api('GET', `/users/${person.id}`, token, { claims: { htu: `${issuer.baseUrl}/api/users` } }),
    ]
    for (const answer of refused) {
      expect(answer).toMatchObject({ status: 401, body: { code: 'auth.unauthorized' } })
      expect(answer.headers.get('www-authenticate')).toMatch(/^DPoP algs=/)
    }
    expect(refused[2]!.headers.get('dpop-nonce')).toEqual(expect.any(String))
  })

  test('takes a proof once', async () => {
    const token = await machine()
    const url = `${issuer.managementResource}/users/${person.id}`
    const sent = await owner.proof({ url, token, nonce: await owner.nonce() })
    expect((await owner.api('GET', `/users/${person.id}`, token, { sent })).status).toBe(200)
    expect((await owner.api('GET', `/users/${person.id}`, token, { sent, instance: 1 })).status).toBe(401)
  })

  test('takes one that is bound to no key as a bearer token alone', async () => {
    expect((await owner.api('GET', '/users', await issuer.managementToken())).status).toBe(401)
  })
})

describe('the Account API', () => {
  test('takes a bound token with its proof alone, once', async () => {
    const { access_token: token } = await signedIn({ scope: 'openid profile' })
    const url = `${issuer.baseUrl}/api/my-account`
    const sent = await owner.proof({ url, token, nonce: await owner.nonce() })
    expect(await owner.api('GET', '/my-account', token, { sent })).toMatchObject({
      status: 200,
      body: { id: person.id },
    })
    const refused = [
      await owner.api('GET', '/my-account', token, { sent, instance: 1 }),
      await thief.api('GET', '/my-account', token),
      await issuer.api('GET', '/my-account', undefined, { token }),
    ]
    for (const answer of refused) expect(answer).toMatchObject({ status: 401, body: { code: 'auth.unauthorized' } })
  })
})

test('a bound token of whoever is to act is not shown by a backend', async () => {
  const customer = await issuer.createUser()
  const show = (actorToken: string) => issuer.api('POST', '/subject-tokens', { userId: customer.id, actorToken })
  const bound = await opaque()
  const { body } = await owner.token(client, {
    ...{ grant_type: tokenExchange, subject_token: bound, subject_token_type: accessTokenType },
    ...{ resource: orders, scope: 'openid' },
  })
  for (const token of [bound, body.access_token as string])
    expect(await show(token)).toMatchObject({ status: 400, body: { code: 'impersonation.actor_token_invalid' } })
  const code = await flow.signIn(flow.browser(), client, person)
  expect((await show((await flow.redeem(client, code)).body.access_token)).status).toBe(201)
})

describe('introspection tells what a token is bound to:', () => {
  const introspect = async (token: string) =>
    (
      await request(`${issuer.url}/oidc/token/introspection`, {
        method: 'POST',
        headers: { authorization: basic(client) },
        body: formOf({ token }),
      })
    ).body

  test.each([
    ['an opaque one', opaque],
    ['a JWT', jwt],
  ])('%s', async (_, make) => {
    expect(await introspect(await make())).toMatchObject({ active: true, token_type: 'DPoP', cnf: owner.cnf })
  })

  test('one that is bound to nothing', async () => {
    const code = await flow.signIn(flow.browser(), client, person)
    const told = await introspect((await flow.redeem(client, code)).body.access_token)
    expect(told).toMatchObject({ active: true, token_type: 'Bearer' })
    expect(told).not.toHaveProperty('cnf')
  })

  test('and that it was revoked, which needs no proof', async () => {
    const token = await opaque()
    const answer = await request(`${issuer.url}/oidc/token/revocation`, {
      method: 'POST',
      headers: { authorization: basic(client) },
      body: formOf({ token }),
    })
    expect(answer.status).toBe(200)
    expect(await introspect(token)).toEqual({ active: false })
    expect((await owner.userinfo(token)).status).toBe(401)
  })
})

describe('token exchange', () => {
  const exchange = (token: string, form = {}) => ({
    grant_type: tokenExchange,
    subject_token: token,
    subject_token_type: accessTokenType,
    resource: orders,
    scope: 'read:orders',
    ...form,
  })
  const boundSubject = { status: 400, body: { error: 'invalid_grant', reason: 'subject_token_bound' } }

  test.each([
    ['an opaque subject token', opaque],
    ['a JWT as subject token', jwt],
  ])('%s needs the key that it is bound to, and what comes of it is bound to that', async (_, make) => {
    const token = await make()
    expect(await issuer.token(client, exchange(token))).toMatchObject(boundSubject)
    expect(await thief.token(client, exchange(token))).toMatchObject(boundSubject)
    const { status, body } = await owner.token(client, exchange(token))
    expect([status, body.token_type]).toEqual([200, 'DPoP'])
    expect(decodeJwt(body.access_token)).toMatchObject({ sub: person.id, cnf: owner.cnf })
  })

  test('a subject token that is bound to no key gives one bound to the key of who exchanges it', async () => {
    const code = await flow.signIn(flow.browser(), client, person)
    const { access_token: token } = (await flow.redeem(client, code)).body
    const { body } = await thief.token(client, exchange(token))
    expect(decodeJwt(body.access_token)).toMatchObject({ sub: person.id, cnf: thief.cnf })
  })

  // Attack 69: a bound actor token without its proof.
  test.each([
    ['an opaque actor token', opaque, { act: true }],
    // It has no `openid`, which is told after the key is proven.
    ['a JWT as actor token', jwt, { reason: 'actor_token_scope' }],
  ])('%s needs its key too', async (_, make, expected) => {
    const actor = await make()
    const customer = await issuer.createUser()
    const form = async () =>
      exchange(await issuer.subjectToken(customer.id), {
        scope: '',
        actor_token: actor,
        actor_token_type: accessTokenType,
      })
    const bound = { status: 400, body: { error: 'invalid_grant', reason: 'actor_token_bound' } }
    expect(await issuer.token(client, await form())).toMatchObject(bound)
    expect(await thief.token(client, await form())).toMatchObject(bound)
    const { body } = await owner.token(client, await form())
    const isActing = body.access_token && decodeJwt(body.access_token)['act']
    expect(isActing ? { act: true } : { reason: body.reason }).toEqual(expected)
  })
})
