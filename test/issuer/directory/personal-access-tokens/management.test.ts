import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

let userId: string
let path: string
beforeEach(async () => {
  userId = (await api.expect(200, 'POST', '/users', {})).id
  path = `/users/${userId}/personal-access-tokens`
  await api.events()
})

test('a personal access token is made, listed without its value, renamed and deleted', async () => {
  const expiresAt = Date.now() + 3_600_000
  const made = await api.expect(201, 'POST', path, { name: 'CI', expiresAt, scopes: ['read:orders', 'read:orders'] })
  expect(made).toEqual({
    tenantId: 'default',
    userId,
    name: 'CI',
    // 256 bits in base64url.
    value: expect.stringMatching(/^pat_[\w-]{43}$/),
    scopes: ['read:orders'],
    createdAt: expect.any(Number),
    expiresAt,
    lastUsedAt: null,
  })
  const { value: _, ...shown } = made
  const plain = { ...shown, name: 'Laptop', scopes: null, expiresAt: null, createdAt: expect.any(Number) }
  expect(await api.expect(201, 'POST', path, { name: 'Laptop' })).toMatchObject(plain)
  expect(await api.expect(200, 'GET', path)).toEqual([shown, plain])

  const renamed = { ...shown, name: 'Pipeline' }
  expect(await api.expect(200, 'PATCH', path, { currentName: 'CI', name: 'Pipeline' })).toEqual(renamed)
  await api.expect(204, 'POST', `${path}/delete`, { name: 'Laptop' })
  expect(await api.expect(200, 'GET', path)).toEqual([renamed])
  expect(await api.events()).toEqual([])
})

test('older clients name it in the path', async () => {
  await api.expect(201, 'POST', path, { name: 'my laptop' })
  expect(await api.expect(200, 'PATCH', `${path}/my%20laptop`, { name: 'a/b' })).toMatchObject({ name: 'a/b' })
  await api.expect(204, 'DELETE', `${path}/a%2Fb`)
  expect(await api.expect(200, 'GET', path)).toEqual([])
})

test('are refused: a taken or empty name, a past expiry, what is no scope, an unknown token or user', async () => {
  await api.expect(201, 'POST', path, { name: 'CI' })
  await api.expect(201, 'POST', path, { name: 'Laptop' })
  const nobody = '/users/none/personal-access-tokens'
  for (const [method, url, body, status, code] of [
    ['POST', path, { name: 'CI' }, 422, 'user.personal_access_token_name_exists'],
    ['PATCH', path, { currentName: 'Laptop', name: 'CI' }, 422, 'user.personal_access_token_name_exists'],
    ['PATCH', `${path}/Laptop`, { name: 'CI' }, 422, 'user.personal_access_token_name_exists'],
    ['POST', path, { name: '' }, 400, 'guard.invalid_input'],
    ['POST', path, { name: 'x'.repeat(257) }, 400, 'guard.invalid_input'],
    ['POST', path, { name: 'x', expiresAt: Date.now() - 1000 }, 400, 'guard.invalid_input'],
    ['POST', path, { name: 'x', expiresAt: 1e300 }, 400, 'guard.invalid_input'],
    ['POST', path, { name: 'x', scopes: ['two words'] }, 400, 'guard.invalid_input'],
    ['PATCH', path, { name: 'x' }, 400, 'guard.invalid_input'],
    ['PATCH', path, { currentName: 'none', name: 'x' }, 404, 'entity.not_found'],
    ['PATCH', `${path}/none`, { name: 'x' }, 404, 'entity.not_found'],
    ['POST', `${path}/delete`, { name: 'none' }, 404, 'entity.not_found'],
    ['DELETE', `${path}/none`, undefined, 404, 'entity.not_found'],
    ['GET', nobody, undefined, 404, 'entity.not_found'],
    ['POST', nobody, { name: 'x' }, 404, 'entity.not_found'],
  ] as const) {
    expect(await api.call(method, url, body)).toMatchObject({ status, body: { code } })
  }
})

test('one name belongs to one token of a user, also when many are made at once, and may belong to another user’s', async () => {
  const answers = await Promise.all(Array.from({ length: 12 }, () => api.call('POST', path, { name: 'Wanted' })))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(422)])
  const other = await api.expect(200, 'POST', '/users', {})
  await api.expect(201, 'POST', `/users/${other.id}/personal-access-tokens`, { name: 'Wanted' })
})

test('a holder of read does not see them', async () => {
  const answer = await api.call('GET', path, undefined, { token: api.token({ scope: 'read' }) })
  expect(answer).toMatchObject({ status: 403, body: { code: 'auth.forbidden' } })
})

test('the value stands in no other answer, event, audit row, log line, nor in the database', async () => {
  const { value } = await api.expect(201, 'POST', path, { name: 'CI' })
  const answers = [
    await api.call('GET', path),
    await api.call('GET', `/users/${userId}`),
    await api.call('GET', '/logs?page_size=100'),
  ].map(({ body }) => body)
  const { rows } = await api.database.pool.query('SELECT * FROM personal_access_tokens')
  expect(rows[0].digest).toHaveLength(32)
  expect(JSON.stringify([answers, rows]) + api.logged()).not.toContain(value.slice(4))
})

test('they go with their user', async () => {
  await api.expect(201, 'POST', path, { name: 'CI' })
  await api.expect(204, 'DELETE', `/users/${userId}`)
  const { rows } = await api.database.pool.query('SELECT FROM personal_access_tokens WHERE user_id = $1', [userId])
  expect(rows).toEqual([])
})
