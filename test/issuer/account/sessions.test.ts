import { afterAll, beforeAll, expect, test } from 'vitest'
import { allScopes, startAccount, type TestAccount } from '../../support/account.ts'

let account: TestAccount

beforeAll(async () => {
  account = await startAccount()
})
afterAll(() => account.close())

const scope = `${allScopes} urn:logto:scope:sessions`

test('T 39: the session of somebody else is 404, and goes on', async () => {
  const [ada, eve] = [await account.createPerson(), await account.createPerson()]
  const [hers, mine] = [await account.signIn(ada, { scope }), await account.signIn(eve, { scope })]
  const { uid } = (await hers.get('/my-account/sessions')).body.sessions[0].payload
  const verification = await mine.verify()
  const notFound = { status: 404, body: { code: 'oidc.session_not_found' } }
  expect(await mine.get(`/my-account/sessions/${uid}`)).toMatchObject(notFound)
  expect(await mine.delete(`/my-account/sessions/${uid}`, { verification })).toMatchObject(notFound)
  expect((await hers.get('/my-account')).status).toBe(200)
  // And her grants.
  const { id } = (await hers.get('/my-account/grants')).body.grants[0]
  expect(await mine.delete(`/my-account/grants/${id}`, { verification })).toMatchObject({ status: 404 })
  expect(await hers.userinfo()).toBe(200)
})

test('all other sessions are ended with a verification; this one goes on', async () => {
  const ada = await account.createPerson()
  const [here, there] = [await account.signIn(ada, { scope }), await account.signIn(ada, { scope })]
  expect(await here.delete('/my-account/sessions?keep=current')).toMatchObject({ status: 401 })
  const verification = await here.verify()
  expect((await here.delete('/my-account/sessions?keep=current', { verification })).status).toBe(204)
  expect([await here.userinfo(), await there.userinfo()]).toEqual([200, 401])
  expect((await here.get('/my-account/sessions')).body.sessions).toHaveLength(1)
})
