import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

/** Who users are elsewhere, and what else can be asked for with a user. */

let api: ManagementTest
let ada: string
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())
beforeEach(async () => {
  ada = (await api.expect(200, 'POST', '/users', { name: 'Ada' })).id
  await api.events()
})

test('an identity is linked, read, replaced and ended, each change an event', async () => {
  const octocat = { userId: '583231', details: { name: 'The Octocat' } }
  expect(await api.expect(200, 'PUT', `/users/${ada}/identities/github`, octocat)).toEqual({ github: octocat })
  expect(await api.expect(200, 'GET', `/users/${ada}/identities/github`)).toEqual({ identity: octocat })
  expect(await api.expect(200, 'PUT', `/users/${ada}/identities/google`, { userId: '1' })).toEqual({
    github: octocat,
    google: { userId: '1' },
  })
  // The same again changes nothing.
  await api.expect(200, 'PUT', `/users/${ada}/identities/google`, { userId: '1' })
  expect(await api.expect(200, 'GET', `/users/${ada}/all-identities`)).toEqual({
    socialIdentities: [
      { target: 'github', identity: octocat },
      { target: 'google', identity: { userId: '1' } },
    ],
    ssoIdentities: [],
  })
  expect(await api.expect(200, 'DELETE', `/users/${ada}/identities/github`)).toMatchObject({
    id: ada,
    identities: { google: { userId: '1' } },
  })
  expect((await api.events()).map(({ event, version }) => `${event} ${version}`)).toEqual([
    'User.Data.Updated 2',
    'User.Data.Updated 3',
    'User.Data.Updated 4',
  ])
})

test('an identity belongs to one user, also when two ask for it at once', async () => {
  const grace = (await api.expect(200, 'POST', '/users', { name: 'Grace' })).id
  const link = (user: string, userId: string) => api.call('PUT', `/users/${user}/identities/gitlab`, { userId })
  const answers = await Promise.all([link(ada, '7'), link(grace, '7')])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
  expect(answers.find(({ status }) => status === 422)!.body).toMatchObject({ code: 'user.identity_already_in_use' })
  expect((await link(ada, '8')).status).toBe(200)
  expect((await link(grace, '7')).status).toBe(200)
})

test.each(['github', 'constructor', '__proto__'])('who has no identity at %s gets 404', async (target) => {
  const unknown = { status: 404, body: { code: 'user.identity_not_exist' } }
  expect(await api.call('GET', `/users/${ada}/identities/${target}`)).toMatchObject(unknown)
  expect(await api.call('DELETE', `/users/${ada}/identities/${target}`)).toMatchObject(unknown)
})

test('nobody is linked at a target that JSON objects cannot have as any other', async () => {
  const answer = await api.call('PUT', `/users/${ada}/identities/__proto__`, { userId: '1' })
  expect(answer).toMatchObject({
    status: 400,
    body: { code: 'guard.invalid_input', details: 'target: cannot be the name of a target' },
  })
  expect(await api.expect(200, 'PUT', `/users/${ada}/identities/constructor`, { userId: '1' })).toEqual({
    constructor: { userId: '1' },
  })
})

test('the digest of a password is shown to those who may manage users, when they ask', async () => {
  const passwordDigest = '5f4dcc3b5aa765d61d8327deb882cf99'
  const { id } = await api.expect(200, 'POST', '/users', { passwordDigest, passwordAlgorithm: 'MD5' })
  expect(await api.expect(200, 'GET', `/users/${id}`)).not.toHaveProperty('passwordDigest')
  const path = `/users/${id}?includePasswordHash=true&includeSsoIdentities=true`
  expect(await api.expect(200, 'GET', path)).toMatchObject({
    id,
    passwordDigest,
    passwordAlgorithm: 'MD5',
    ssoIdentities: [],
  })
  expect(await api.expect(200, 'GET', `/users/${ada}?includePasswordHash=true`)).toMatchObject({ passwordDigest: null })
  const list = `/users?search.id=${id}&search.id=${ada}&includePasswordHash=1`
  const rows = await api.expect(200, 'GET', list)
  expect(rows).toEqual([
    { ...(await api.expect(200, 'GET', `/users/${id}`)), passwordDigest, passwordAlgorithm: 'MD5' },
    { ...(await api.expect(200, 'GET', `/users/${ada}`)), passwordDigest: null, passwordAlgorithm: null },
  ])
  for (const row of await api.expect(200, 'GET', '/users?includePasswordHash=false'))
    expect(row).not.toHaveProperty('passwordDigest')

  for (const address of [path, list]) {
    expect((await api.call('GET', address, undefined, { token: api.token({ scope: 'users' }) })).status).toBe(200)
    expect(await api.call('GET', address, undefined, { token: api.token({ scope: 'read' }) })).toMatchObject({
      status: 403,
      body: { code: 'auth.forbidden' },
    })
  }
})
