import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Answer,
  accessTokenType,
  formOf,
  request,
  startTestIssuer,
  type TestIssuer,
} from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

let issuer: TestIssuer
let client: TestApplication
let user: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer()
  client = await issuer.createApplication()
  const created = await issuer.api('POST', '/users', {
    username: 'ada',
    primaryEmail: 'ada@example.test',
    primaryPhone: '4930123456',
    name: 'Ada Lovelace',
    avatar: 'https://example.test/ada.png',
    customData: { plan: 'gold' },
    profile: { givenName: 'Ada', familyName: 'Lovelace', address: { locality: 'London', streetAddress: '12 Square' } },
  })
  user = created.body
})
afterAll(() => issuer.close())

const tokenFor = async (scope: string, userId = user.id): Promise<string> => {
  const answer = await issuer.exchange(client, await issuer.subjectToken(userId), { scope })
  expect(answer).toMatchObject({ status: 200 })
  return answer.body.access_token
}
const me = (token: string | undefined, init: RequestInit = {}) =>
  request(`${issuer.url}/oidc/me`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    ...init,
  })

describe('each scope tells its claims and no other:', () => {
  const profile = {
    name: 'Ada Lovelace',
    given_name: 'Ada',
    family_name: 'Lovelace',
    username: 'ada',
    preferred_username: 'ada',
    picture: 'https://example.test/ada.png',
    created_at: expect.any(Number),
    updated_at: expect.any(Number),
  }
  const email = { email: 'ada@example.test', email_verified: true }
  const cases: Record<string, object> = {
    openid: {},
    'openid profile': profile,
    'openid email': email,
    'openid phone': { phone_number: '4930123456', phone_number_verified: true },
    'openid address': { address: { locality: 'London', street_address: '12 Square' } },
    'openid custom_data': { custom_data: { plan: 'gold' } },
    // Of somebody that an application acts for, what is elsewhere is not told.
    'openid identities': {},
    'openid roles': { roles: [] },
    'openid profile email': { ...profile, ...email },
  }
  test.each(Object.entries(cases))('%s', async (scope, claims) => {
    const answer = await me(await tokenFor(scope))
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ sub: user.id, ...claims })
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })
})

test('times are seconds, and what is not known is left out', async () => {
  const unknown = await issuer.createUser({ name: 'Nobody' })
  const { body } = await me(await tokenFor('openid profile email phone address', unknown.id))
  expect(Object.keys(body).toSorted()).toEqual(['created_at', 'name', 'sub', 'updated_at'])
  expect(Math.abs(body.created_at - Date.now() / 1000)).toBeLessThan(600)
})

test('an address counts as verified when it is known to be the user’s, and again when the Management API changes it', async () => {
  const { id } = (await issuer.api('POST', '/users', { primaryEmail: 'bob@example.test', primaryPhone: '4930654321' }))
    .body
  const token = await tokenFor('openid email phone', id)
  const verified = async () => {
    const { email_verified: email, phone_number_verified: phone } = (await me(token)).body
    return { email, phone }
  }
  expect(await verified()).toEqual({ email: true, phone: true })
  await issuer.sql('UPDATE users SET email_verified_at = NULL, phone_verified_at = NULL WHERE id = $1', [id])
  expect(await verified()).toEqual({ email: false, phone: false })
  await issuer.api('PATCH', `/users/${id}`, { name: 'Bob', primaryEmail: 'bob@example.test' })
  expect(await verified()).toEqual({ email: false, phone: false })
  await issuer.api('PATCH', `/users/${id}`, { primaryEmail: 'robert@example.test' })
  expect(await verified()).toEqual({ email: true, phone: false })
  await issuer.api('PATCH', `/users/${id}`, { primaryPhone: '4930654322' })
  expect(await verified()).toEqual({ email: true, phone: true })
  await issuer.api('PATCH', `/users/${id}`, { primaryEmail: null })
  expect(await verified()).toEqual({ email: undefined, phone: true })
})

test('roles are those of this moment', async () => {
  const resource = await issuer.createResource({ scopes: ['a'] })
  const token = await tokenFor('openid roles')
  await issuer.grantUser(user.id, resource, ['a'], 'Support')
  expect((await me(token)).body.roles).toEqual(['Support'])
  await issuer.sql('DELETE FROM user_roles WHERE user_id = $1', [user.id])
  expect((await me(token)).body.roles).toEqual([])
})

test('the token may stand in the header of a POST or in its form, and only once', async () => {
  const token = await tokenFor('openid')
  expect((await me(token, { method: 'POST' })).body).toEqual({ sub: user.id })
  const inForm = { method: 'POST', body: formOf({ access_token: token }) }
  expect((await me(undefined, inForm)).body).toEqual({ sub: user.id })
  const twice = await request(`${issuer.url}/oidc/me`, { ...inForm, headers: { authorization: `Bearer ${token}` } })
  expect(twice).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  // RFC 6750 §2.3: not in the URL, where logs keep it.
  expect((await request(`${issuer.url}/oidc/me?access_token=${token}`)).status).toBe(401)
})

const expectInvalidToken = (answer: Answer) => {
  expect(answer).toMatchObject({ status: 401, body: { error: 'invalid_token', code: 'oidc.invalid_token' } })
  expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="surrogate", error="invalid_token"/)
}

describe('nobody is told for', () => {
  test('no token: the challenge names no error (RFC 6750 §3.1)', async () => {
    const answer = await me(undefined)
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm="surrogate", DPoP algs="ES256 [^"]+"$/)
  })

  test('a JWT, even with openid: it is for the API it names', async () => {
    const resource = await issuer.createResource()
    const answer = await issuer.exchange(client, await issuer.subjectToken(user.id), { scope: 'openid', resource })
    expectInvalidToken(await me(answer.body.access_token))
    expectInvalidToken(await me(await issuer.managementToken()))
  })

  test('a subject token, a secret, nonsense', async () => {
    for (const token of [await issuer.subjectToken(user.id), client.secret!, 'nonsense', 'a b'])
      expectInvalidToken(await me(token))
  })

  test('a token without openid', async () => {
    const answer = await me(await tokenFor('profile'))
    expect(answer).toMatchObject({ status: 403, body: { error: 'insufficient_scope' } })
    expect(answer.headers.get('www-authenticate')).toContain('error="insufficient_scope"')
    expect(answer.headers.get('www-authenticate')).toContain('scope="openid"')
  })

  test('a token that expired or was revoked', async () => {
    const expired = await tokenFor('openid')
    await issuer.sql(`UPDATE opaque_tokens SET expires_at = now() - interval '1 second'`)
    expectInvalidToken(await me(expired))
    const revoked = await tokenFor('openid')
    await request(`${issuer.url}/oidc/token/revocation`, {
      method: 'POST',
      body: formOf({ client_id: client.id, client_secret: client.secret, token: revoked }),
    })
    expectInvalidToken(await me(revoked))
  })

  test('a user who was suspended or deleted', async () => {
    const other = (await issuer.api('POST', '/users', { username: 'grace' })).body
    const suspended = await tokenFor('openid', other.id)
    await issuer.api('PATCH', `/users/${other.id}/is-suspended`, { isSuspended: true })
    expectInvalidToken(await me(suspended))
    await issuer.api('PATCH', `/users/${other.id}/is-suspended`, { isSuspended: false })
    const deleted = await tokenFor('openid', other.id)
    await issuer.api('DELETE', `/users/${other.id}`)
    expectInvalidToken(await me(deleted))
  })
})

test('other methods are refused', async () => {
  const answer = await me(undefined, { method: 'DELETE' })
  expect(answer.status).toBe(405)
  expect(answer.headers.get('allow')).toBe('GET, POST, OPTIONS')
})

test("whoever acts for the user is told, and the user's other identities are not", async () => {
  const agent = await issuer.createUser()
  const actor = { actor_token: await issuer.actorToken(client, agent.id), actor_token_type: accessTokenType }
  const exchanged = await issuer.exchange(client, await issuer.subjectToken(user.id), {
    scope: 'openid identities',
    ...actor,
  })
  expect(exchanged.status).toBe(200)
  expect((await me(exchanged.body.access_token)).body).toEqual({ sub: user.id, act: { sub: agent.id } })
})
