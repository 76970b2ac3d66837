import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { managementScopes } from '../../../issuer/base/authorization.ts'
import {
  accessTokenType,
  type FormValues,
  request,
  startTestIssuer,
  type TestIssuer,
  tokenExchange,
} from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/**
 * Whoever acts for an owner holds a token of that person, who holds every permission of the Management API. It must
 * not become anything that lasts longer or reaches further.
 */

const personalAccessToken = 'urn:logto:token-type:personal_access_token'

let issuer: TestIssuer
let web: TestApplication
let orders: string
let owner: { id: string }
let agent: { id: string }
/** By what they are. */
let forManagement: Record<string, string>
let forOthers: Record<string, string>
let personal: string
let operations: { method: string; path: string }[]

const exchanged = async (form: FormValues) => {
  const { status, body } = await issuer.token(web, {
    grant_type: tokenExchange,
    subject_token: await issuer.subjectToken(owner.id),
    subject_token_type: accessTokenType,
    ...form,
  })
  expect(status, JSON.stringify(body)).toBe(200)
  return body
}

beforeAll(async () => {
  issuer = await startTestIssuer()
  web = await issuer.createApplication({ allowTokenExchange: true })
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  owner = await issuer.createUser()
  agent = await issuer.createUser()
  await issuer.grantUser(owner.id, orders, ['read:orders'])
  await issuer.grantUser(owner.id, issuer.managementResource, Object.keys(managementScopes))
  const { body } = await issuer.api('POST', `/users/${owner.id}/personal-access-tokens`, { name: 'laptop' })
  personal = body.value
  const acting = async () => ({
    actor_token: await issuer.actorToken(web, agent.id),
    actor_token_type: accessTokenType,
  })
  const all = { resource: issuer.managementResource, scope: Object.keys(managementScopes).join(' ') }
  const read = { resource: orders, scope: 'read:orders' }
  const tokens = {
    'acting for the owner': await exchanged({ ...all, ...(await acting()) }),
    'of a subject token': await exchanged(all),
    'of a personal access token': await exchanged({
      ...all,
      subject_token: personal,
      subject_token_type: personalAccessToken,
    }),
  }
  for (const { scope } of Object.values(tokens)) expect(scope).toBe('')
  forManagement = Object.fromEntries(Object.entries(tokens).map(([what, { access_token }]) => [what, access_token]))
  expect(decodeJwt(forManagement['acting for the owner']!)).toMatchObject({
    sub: owner.id,
    act: { sub: agent.id },
    aud: issuer.managementResource,
  })
  forOthers = {
    'an opaque one': (await exchanged({ scope: 'openid', ...(await acting()) })).access_token,
    'one for another API': (await exchanged({ ...read, ...(await acting()) })).access_token,
    'the personal access token itself': personal,
  }
  const { paths } = (await request(`${issuer.url}/api/openapi.json`)).body as {
    paths: Record<string, Record<string, { security?: unknown[] }>>
  }
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { security }]) => security?.length)
      .map(([method]) => ({ method: method.toUpperCase(), path: path.replace(/\{\w+\}/g, owner.id) })),
  )
})
afterAll(() => issuer.close())

describe('no operation of the Management API', () => {
  const statuses = async (token: string) => {
    const seen = new Map<number, string[]>()
    for (const { method, path } of operations) {
      const url = `${issuer.url}${path.startsWith('/api') ? path : `/api${path}`}`
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const body = method === 'GET' ? {} : { body: '{}' }
      const { status } = await request(url, { method, headers, ...body })
      seen.set(status, [...(seen.get(status) ?? []), `${method} ${path}`])
    }
    return Object.fromEntries(seen)
  }

  test('takes a token for it that stands for a person: whatever the person holds, 403', async () => {
    expect(operations.map(({ method, path }) => `${method} ${path}`)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^POST .*\/personal-access-tokens$/),
        expect.stringMatching(/^POST .*\/subject-tokens$/),
        expect.stringMatching(/^PATCH .*\/password$/),
        expect.stringMatching(/^POST .*\/secrets$/),
      ]),
    )
    for (const [what, token] of Object.entries(forManagement))
      expect(await statuses(token), what).toEqual({ 403: expect.arrayContaining([expect.anything()]) })
  })

  test('takes another token of the person: 401', async () => {
    for (const [what, token] of Object.entries(forOthers))
      expect(await statuses(token), what).toEqual({ 401: expect.arrayContaining([expect.anything()]) })
  })
})

describe('an exchange', () => {
  test('of what acts for the owner is refused, whatever it is asked for', async () => {
    const kinds = [accessTokenType, 'urn:logto:token-type:impersonation_token', personalAccessToken]
    const wanted = [
      { resource: orders, scope: 'read:orders' },
      { scope: 'openid' },
      { resource: issuer.managementResource },
    ]
    for (const token of [
      ...Object.values(forManagement),
      forOthers['an opaque one']!,
      forOthers['one for another API']!,
    ]) {
      for (const form of wanted) {
        for (const subject_token_type of kinds) {
          const answer = await issuer.exchange(web, token, { ...form, subject_token_type })
          expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
        }
        expect(await issuer.exchange(web, token, form)).toMatchObject({ body: { reason: 'subject_token_bound' } })
      }
    }
  })

  test('gives access tokens only: no personal access token, ID token or refresh token', async () => {
    const types = [
      personalAccessToken,
      'urn:logto:token-type:impersonation_token',
      'urn:ietf:params:oauth:token-type:id_token',
      'urn:ietf:params:oauth:token-type:refresh_token',
    ]
    for (const requested_token_type of types) {
      const answer = await issuer.exchange(web, await issuer.subjectToken(owner.id), {
        scope: 'openid',
        requested_token_type,
      })
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
    }
    const actor_token = await issuer.actorToken(web, agent.id)
    const body = await exchanged({ scope: 'openid offline_access', actor_token, actor_token_type: accessTokenType })
    expect(Object.keys(body).toSorted()).toEqual([
      'access_token',
      'expires_in',
      'issued_token_type',
      'scope',
      'token_type',
    ])
    expect(body.issued_token_type).toBe(accessTokenType)
  })
})

test('nothing of all that was stored: the owner has one personal access token, and no way to sign in', async () => {
  const count = async (table: string) =>
    (await issuer.sql(`SELECT FROM ${table} WHERE user_id = $1`, [owner.id])).length
  expect(await count('personal_access_tokens')).toBe(1)
  expect(await count('sessions')).toBe(0)
  expect(await count('authorizations')).toBe(0)
  expect(await issuer.sql('SELECT password_digest FROM users WHERE id = $1', [owner.id])).toEqual([
    { password_digest: null },
  ])
  expect(await issuer.sql('SELECT FROM subject_tokens WHERE creator_id IN ($1, $2)', [owner.id, agent.id])).toEqual([])
})

test('userinfo says who acts, and answers no token that is for an API', async () => {
  const me = (token: string) => request(`${issuer.url}/oidc/me`, { headers: { authorization: `Bearer ${token}` } })
  const { 'an opaque one': opaque = '', ...others } = forOthers
  expect(await me(opaque)).toMatchObject({ status: 200, body: { sub: owner.id, act: { sub: agent.id } } })
  for (const token of [...Object.values(forManagement), ...Object.values(others)])
    expect((await me(token)).status).toBe(401)
})
