import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startAccount, type TestAccount } from '../../support/account.ts'
import { parametersOf } from '../../support/code-flow.ts'
import type { ExperiencePerson } from '../../support/experience.ts'
import { request } from '../../support/issuer.ts'

let account: TestAccount
let ada: ExperiencePerson

beforeAll(async () => {
  account = await startAccount()
  ada = await account.createPerson()
})
afterAll(() => account.close())

const ask = (token: string | undefined, path = '/my-account', headers: Record<string, string> = {}) =>
  request(`${account.experience.issuer.url}/api${path}`, {
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
  })

const notAllowed = { status: 403, body: { code: 'impersonation.not_allowed' } }
const forbidden = { status: 403, body: { code: 'auth.forbidden' } }

test('the opaque token of a first-party application opens the account', async () => {
  const shop = await account.signIn(ada)
  const answer = await shop.get('/my-account')
  expect(answer).toMatchObject({ status: 200, body: { id: ada.id, username: ada.username, primaryEmail: ada.email } })
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

test('without a token, with one that nobody issued, and with a JWT it is 401, as RFC 6750 says it', async () => {
  const { issuer } = account.experience
  expect(await ask(undefined)).toMatchObject({ status: 401, body: { code: 'auth.authorization_header_missing' } })
  const resource = await issuer.createResource({ scopes: ['read'] })
  const machine = await issuer.createMachine(resource, ['read'])
  const jwt = await issuer.clientToken(machine, resource, 'read')
  for (const token of ['nobody-issued-this', jwt, `${jwt.slice(0, -4)}AAAA`, await issuer.managementToken()]) {
    const answer = await ask(token)
    expect(answer).toMatchObject({ status: 401, body: { code: 'auth.unauthorized' } })
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
  }
})

test('a token without openid is told which scope it lacks', async () => {
  const shop = await account.signIn(ada, { scope: 'openid offline_access email' })
  const answer = await account.experience.flow.refresh(account.experience.client, shop.refreshToken!, 0, {
    scope: 'email',
  })
  const asked = await ask(answer.body.access_token)
  expect(asked).toMatchObject(forbidden)
  expect(asked.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="openid"')
})

test('the token of a third-party application is 403', async () => {
  const { flow } = account.experience
  const client = await flow.createClient({ isThirdParty: true, type: 'Traditional' })
  const browser = flow.browser()
  const consent = await browser.submit(await flow.ask(browser, client, { scope: 'openid' }), flow.credentials(ada))
  const { code } = parametersOf(await browser.submit(consent, { choice: 'allow' }))
  const { body } = await flow.redeem(client, code!)
  expect(await ask(body.access_token)).toMatchObject(forbidden)
  expect(await account.experience.flow.userinfo(body.access_token)).toBe(200)
})

describe('T 134: who acts for somebody is not that somebody', () => {
  test('an opaque token from a subject token, with and without an actor', async () => {
    const { issuer } = account.experience
    const client = await issuer.createApplication({ allowTokenExchange: true })
    const opaque = await issuer.exchange(client, await issuer.subjectToken(ada.id), { scope: 'openid profile' })
    expect(opaque.status).toBe(200)
    const actor = await issuer.createUser()
    const acting = await issuer.exchange(client, await issuer.subjectToken(ada.id), {
      scope: 'openid profile',
      actor_token: await issuer.actorToken(client, actor.id),
      actor_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    })
    expect(acting.status).toBe(200)
    for (const { body } of [opaque, acting]) {
      expect(await ask(body.access_token)).toMatchObject(notAllowed)
      expect(
        await request(`${issuer.url}/api/verifications/password`, {
          method: 'POST',
          headers: { authorization: `Bearer ${body.access_token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ password: ada.password }),
        }),
      ).toMatchObject(notAllowed)
    }
  })

  test('a JWT from a subject token', async () => {
    const { issuer } = account.experience
    const resource = await issuer.createResource({ scopes: ['read'] })
    await issuer.grantUser(ada.id, resource, ['read'])
    const client = await issuer.createApplication({ allowTokenExchange: true })
    const { body } = await issuer.exchange(client, await issuer.subjectToken(ada.id), { resource, scope: 'read' })
    expect(body.access_token).toContain('.')
    expect(await ask(body.access_token)).toMatchObject(notAllowed)
  })
})

test('what comes of an exchange opens nothing: a service cannot turn the token it was sent into the account', async () => {
  const { issuer, flow } = account.experience
  const resource = await issuer.createResource({ scopes: ['read'] })
  await issuer.grantUser(ada.id, resource, ['read'])
  const client = await flow.createClient({ type: 'Traditional', custom: { allowTokenExchange: true } })
  const browser = flow.browser()
  const parameters = { scope: 'openid offline_access read', resource }
  const code = await flow.signIn(browser, client, ada, parameters)
  const { body } = await flow.redeem(client, code, 0, { resource })
  expect(body.access_token).toContain('.')
  for (const exchanging of [client, await issuer.createApplication({ allowTokenExchange: true })]) {
    const exchanged = await issuer.exchange(exchanging, body.access_token, { scope: 'openid profile' })
    expect(exchanged.body).toMatchObject({ token_type: 'Bearer' })
    expect(await flow.userinfo(exchanged.body.access_token)).toBe(200)
    expect(await ask(exchanged.body.access_token)).toMatchObject(forbidden)
  }
})

test('a token ends at once with its session, and with the suspension of its owner', async () => {
  const person = await account.createPerson()
  const [one, other] = [await account.signIn(person), await account.signIn(person)]
  const { issuer } = account.experience
  const { body } = await issuer.api('GET', `/users/${person.id}/sessions`)
  await issuer.api('DELETE', `/users/${person.id}/sessions/${body.sessions[0].payload.uid}`)
  const statuses = [await one.get('/my-account'), await other.get('/my-account')].map(({ status }) => status)
  expect(statuses.sort()).toEqual([200, 401])
  await issuer.suspend(person.id)
  expect([(await one.get('/my-account')).status, (await other.get('/my-account')).status]).toEqual([401, 401])
})

test('scopes say what of the account is told', async () => {
  const bare = await account.signIn(ada, { scope: 'openid' })
  expect((await bare.get('/my-account')).body).toEqual({ id: ada.id })
  const mail = await account.signIn(ada, { scope: 'openid email' })
  expect((await mail.get('/my-account')).body).toEqual({ id: ada.id, primaryEmail: ada.email })
  expect(await mail.patch('/my-account', { name: 'Ada' })).toMatchObject({
    ...forbidden,
    body: { data: { scopes: ['profile'] } },
  })
  expect(await mail.get('/my-account/mfa-verifications')).toMatchObject(forbidden)
})

test('pages of registered origins may call it, with the header of verifications; others may not read it', async () => {
  const { url } = account.experience.issuer
  const preflight = (origin: string) =>
    fetch(`${url}/api/my-account/password`, { method: 'OPTIONS', headers: { origin } })
  const allowed = await preflight('https://shop.example.test')
  expect(allowed.status).toBe(204)
  expect(allowed.headers.get('access-control-allow-headers')).toContain('logto-verification-id')
  expect(allowed.headers.get('access-control-allow-methods')).toContain('PATCH')
  expect((await preflight('https://elsewhere.test')).headers.get('access-control-allow-origin')).toBeNull()
  const { token } = await account.signIn(ada)
  const read = await ask(token, '/my-account', { origin: 'https://shop.example.test' })
  expect(read.headers.get('access-control-allow-origin')).toBe('https://shop.example.test')
})

test('the document says what is served, and every answer of these tests is held against it', async () => {
  const { status, body } = await ask(undefined, '/account.openapi.json')
  expect(status).toBe(200)
  expect(Object.keys(body.paths)).toEqual(
    expect.arrayContaining(['/my-account', '/my-account/password', '/verifications/verification-code/verify']),
  )
  const headers = body.paths['/my-account/password'].post.parameters
  expect(headers).toEqual([{ $ref: '#/components/parameters/logto-verification-id' }])
})
