import { afterAll, beforeAll, expect, test } from 'vitest'
import { allScopes, startAccount, type TestAccount } from '../../support/account.ts'

/** Sessions, grants, the file and the end of an account, by the Account API. */

const scope = `${allScopes} urn:logto:scope:sessions`
let account: TestAccount
beforeAll(async () => {
  account = await startAccount()
})
afterAll(() => account.close())

test('sessions are listed and ended, one or all others; ending needs a verification', async () => {
  const person = await account.createPerson()
  const here = await account.signIn(person, { scope })
  const [second, third] = [await account.signIn(person, { scope }), await account.signIn(person, { scope })]
  const { body } = await here.get('/my-account/sessions')
  expect(body.sessions).toHaveLength(3)
  const [newest] = body.sessions
  expect((await here.get(`/my-account/sessions/${newest.payload.uid}`)).body).toEqual(newest)
  expect(await here.delete(`/my-account/sessions/${newest.payload.uid}`)).toMatchObject({
    status: 401,
    body: { code: 'verification_record.permission_denied' },
  })
  const verification = await here.verify()
  expect((await here.delete(`/my-account/sessions/${newest.payload.uid}`, { verification })).status).toBe(204)
  expect(await third.userinfo()).toBe(401)
  expect(await second.userinfo()).toBe(200)
  expect((await here.delete('/my-account/sessions?keep=current', { verification })).status).toBe(204)
  expect([await second.userinfo(), await here.userinfo()]).toEqual([401, 200])
  expect((await here.delete('/my-account/sessions', { verification })).status).toBe(204)
  expect(await here.userinfo()).toBe(401)
  const ended = (await account.eventsOf(person.id)).filter(({ type }) => type === 'Session.Ended')
  expect(ended).toHaveLength(3)
})

test("T 39: somebody else's session and grant are not there", async () => {
  const [ada, eve] = [
    await account.signIn(await account.createPerson(), { scope }),
    await account.signIn(await account.createPerson(), { scope }),
  ]
  const [session] = (await eve.get('/my-account/sessions')).body.sessions
  const [grant] = (await eve.get('/my-account/grants')).body.grants
  const verification = await ada.verify()
  expect(await ada.get(`/my-account/sessions/${session.payload.uid}`)).toMatchObject({
    status: 404,
    body: { code: 'oidc.session_not_found' },
  })
  expect(await ada.delete(`/my-account/sessions/${session.payload.uid}`, { verification })).toMatchObject({
    status: 404,
    body: { code: 'oidc.session_not_found' },
  })
  expect((await ada.delete(`/my-account/grants/${grant.id}`, { verification })).body.code).toBe('oidc.invalid_grant')
  expect(await eve.userinfo()).toBe(200)
})

test('a grant ends; without the scope nothing of it is seen', async () => {
  const person = await account.createPerson()
  const [ada, other] = [await account.signIn(person, { scope }), await account.signIn(person, { scope })]
  const { grants } = (await ada.get('/my-account/grants?appType=firstParty')).body
  expect(grants).toHaveLength(2)
  expect((await ada.get('/my-account/grants?appType=thirdParty')).body.grants).toEqual([])
  expect((await ada.delete(`/my-account/grants/${grants[0].id}`, { verification: await ada.verify() })).status).toBe(
    204,
  )
  expect(await other.userinfo()).toBe(401)
  const narrow = await account.signIn(person)
  for (const path of ['/my-account/sessions', '/my-account/grants']) expect((await narrow.get(path)).status).toBe(403)
})

test('the file has everything and no secret; a deleted account is gone, and so are its tokens', async () => {
  const person = await account.createPerson()
  const ada = await account.signIn(person, { scope })
  expect((await ada.post('/my-account/export')).status).toBe(401)
  const verification = await ada.verify()
  const { api } = account.experience.issuer
  // What pages and applications do not show is kept about the person all the same.
  await api('PATCH', '/account-center', { fields: { email: 'Off' } })
  expect((await ada.get('/my-account')).body).not.toHaveProperty('primaryEmail')
  const file = await ada.post('/my-account/export', undefined, { verification })
  expect(file).toMatchObject({
    status: 200,
    body: { user: { id: person.id, primaryEmail: person.email }, sessions: [{}], history: expect.any(Array) },
  })
  await api('PATCH', '/account-center', { fields: { email: 'Edit' } })
  expect(JSON.stringify(file.body)).not.toMatch(/argon2|digest/i)
  expect((await ada.delete('/my-account')).status).toBe(401)
  expect((await ada.delete('/my-account', { verification })).status).toBe(204)
  expect(await ada.userinfo()).toBe(401)
  expect((await account.experience.issuer.api('GET', `/users/${person.id}`)).status).toBe(404)
})

test('settings close each of them', async () => {
  const ada = await account.signIn(await account.createPerson(), { scope })
  const verification = await ada.verify()
  const { api } = account.experience.issuer
  await api('PATCH', '/account-center', { fields: { session: 'ReadOnly', export: 'Off', deletion: 'Off' } })
  expect((await ada.get('/my-account/sessions')).status).toBe(200)
  for (const [method, path] of [
    ['DELETE', '/my-account/sessions'],
    ['POST', '/my-account/export'],
    ['DELETE', '/my-account'],
  ] as const) {
    expect(await ada.call(method, path, undefined, { verification }), path).toMatchObject({
      status: 403,
      body: { code: 'account_center.field_not_editable' },
    })
  }
  await api('PATCH', '/account-center', { fields: { session: 'Off' } })
  expect((await ada.get('/my-account/grants')).body.code).toBe('account_center.field_not_enabled')
  await api('PATCH', '/account-center', { fields: { session: 'Edit', export: 'Edit', deletion: 'Edit' } })
})
