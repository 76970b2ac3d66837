import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCodeFlow, type Person, parametersOf } from '../../support/code-flow.ts'
import { accessTokenType, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** Whoever acts for somebody opens nothing interactive with what they got: T 134 to 138. */

let issuer: TestIssuer
let desk: TestApplication
let customer: Person
let staff: Person
/** By what they are. */
let tokens: Record<string, string>
const scope = 'openid profile email identities custom_data offline_access'

beforeAll(async () => {
  issuer = await startTestIssuer()
  desk = await issuer.createApplication()
  const flow = createCodeFlow(issuer)
  customer = await flow.createPerson()
  staff = await flow.createPerson()
  await issuer.sql(`UPDATE users SET identities = '{"github": {"userId": "secret handle"}}' WHERE id = $1`, [
    customer.id,
  ])
  const orders = await issuer.createResource({ scopes: ['read:orders'] })
  const actor = { actor_token: await issuer.actorToken(desk, staff.id), actor_token_type: accessTokenType }
  const exchanged = async (form: Record<string, string>) => {
    const answer = await issuer.exchange(desk, await issuer.subjectToken(customer.id), form)
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return answer.body.access_token as string
  }
  tokens = {
    'an opaque one with act': await exchanged({ scope, ...actor }),
    'an opaque one of a subject token alone': await exchanged({ scope }),
    'a JWT with act': await exchanged({ resource: orders, scope: 'openid', ...actor }),
    'a JWT of a subject token alone': await exchanged({ resource: orders, scope: 'openid' }),
  }
})
afterAll(() => issuer?.close())

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

describe('T 134: the Account API', () => {
  test('refuses them at every operation, and changes nothing', async () => {
    const { paths } = (await request(`${issuer.url}/api/account.openapi.json`)).body as {
      paths: Record<string, Record<string, unknown>>
    }
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ method: method.toUpperCase(), path: path.replace(/\{\w+\}/g, 'x') })),
    )
    expect(operations).toEqual(
      expect.arrayContaining([
        { method: 'POST', path: '/my-account/password' },
        { method: 'POST', path: '/verifications/password' },
        { method: 'POST', path: '/my-account/impersonation-requests/x/approve' },
      ]),
    )
    const before = await issuer.sql('SELECT * FROM users WHERE id = $1', [customer.id])
    for (const [what, token] of Object.entries(tokens)) {
      for (const { method, path } of operations) {
        const answer = await request(`${issuer.url}/api${path}`, {
          method,
          headers: { ...bearer(token), 'content-type': 'application/json' },
          ...(method !== 'GET' && { body: JSON.stringify({ password: customer.password }) }),
        })
        expect(answer, `${what}: ${method} ${path}`).toMatchObject({
          status: 403,
          body: { code: 'impersonation.not_allowed' },
        })
      }
    }
    expect(await issuer.sql('SELECT * FROM users WHERE id = $1', [customer.id])).toEqual(before)
  })
})

test('T 135: no endpoint makes a session of a bearer token, nor a one-time token or a personal access token', async () => {
  const asked = [
    ['GET', '/oidc/auth'],
    ['POST', '/oidc/auth'],
    ['GET', '/oidc/session/end'],
    ['PUT', '/api/experience'],
    ['GET', '/account'],
    ['POST', '/api/one-time-tokens'],
    ['POST', `/api/users/${customer.id}/personal-access-tokens`],
    ['POST', '/api/subject-tokens'],
  ] as const
  for (const token of Object.values(tokens)) {
    for (const [method, path] of asked) {
      const answer = await request(`${issuer.url}${path}`, {
        method,
        headers: { ...bearer(token), 'content-type': 'application/json' },
        ...(method !== 'GET' && { body: JSON.stringify({ email: 'x@example.test', name: 'x', userId: customer.id }) }),
      })
      expect(answer.headers.getSetCookie().join(), `${method} ${path}`).not.toMatch(/surrogate_session=[^;]/)
      if (path.startsWith('/api/') && !path.endsWith('experience')) expect([401, 403]).toContain(answer.status)
    }
  }
  for (const table of ['sessions', 'one_time_tokens', 'personal_access_tokens'])
    expect(await issuer.sql(`SELECT FROM ${table}`), table).toEqual([])
})

test('T 136: userinfo says who acts and not how the customer signs in, with an actor or without', async () => {
  const me = async (token: string) => (await request(`${issuer.issuer}/me`, { headers: bearer(token) })).body
  const acting = await me(tokens['an opaque one with act']!)
  expect(acting).toMatchObject({ sub: customer.id, act: { sub: staff.id }, username: customer.username })
  const alone = await me(tokens['an opaque one of a subject token alone']!)
  expect(alone).toMatchObject({ sub: customer.id, username: customer.username })
  for (const answer of [acting, alone]) expect(JSON.stringify(answer)).not.toMatch(/identities|mfa|secret handle/i)
})

test('T 137: neither an ID token nor a refresh token comes of an exchange', async () => {
  for (const form of [
    {},
    { actor_token: await issuer.actorToken(desk, staff.id), actor_token_type: accessTokenType },
  ]) {
    const { body } = await issuer.exchange(desk, await issuer.subjectToken(customer.id), { scope, ...form })
    expect(body).not.toHaveProperty('id_token')
    expect(body).not.toHaveProperty('refresh_token')
  }
})

test('T 138: whoever is signed in as themselves gets no code for the customer', async () => {
  const flow = createCodeFlow(issuer)
  const client = await flow.createClient()
  const of = async (person: Person) => {
    const browser = flow.browser()
    const code = await flow.signIn(browser, client, person)
    return { browser, idToken: (await flow.redeem(client, code)).body.id_token as string }
  }
  const [his, hers] = [await of(staff), await of(customer)]
  const silent = (id_token_hint: string) =>
    flow.ask(his.browser, client, { prompt: 'none', scope: 'openid', id_token_hint })
  expect(parametersOf(await silent(hers.idToken))).toMatchObject({ error: 'login_required' })
  expect(parametersOf(await silent(his.idToken))).toHaveProperty('code')
})
