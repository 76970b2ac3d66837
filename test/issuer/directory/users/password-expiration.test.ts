import { afterAll, beforeAll, expect, test } from 'vitest'
import { signInExperience } from '../../../../issuer/directory/sign-in-experience/sign-in-experience.ts'
import { isPasswordExpired } from '../../../../issuer/directory/users/password-expiration.ts'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const setPolicy = (passwordExpiration: object) =>
  api.database.pool.query(
    `INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    [signInExperience.name, JSON.stringify({ passwordExpiration })],
  )
const stateOf = async (id: string) => (await api.database.pool.query('SELECT * FROM users WHERE id = $1', [id])).rows[0]

test('without the policy no password is made to expire', async () => {
  await setPolicy({ enabled: false })
  const { id } = await api.expect(200, 'POST', '/users', { password: 'a good password' })
  const { status, body } = await api.call('PATCH', `/users/${id}/password/expiration`, { isExpired: true })
  expect([status, body.code]).toEqual([400, 'sign_in_experiences.password_expiration_not_enabled'])
  expect(await stateOf(id)).toMatchObject({ password_expired: false })
})

test('a password that is made to expire is a change of the user; a new password takes it back', async () => {
  await setPolicy({ enabled: true, validPeriodDays: 30 })
  const user = await api.expect(200, 'POST', '/users', { password: 'a good password' })
  await api.events()
  const path = `/users/${user.id}/password/expiration`
  const expired = await api.expect(200, 'PATCH', path, { isExpired: true })
  expect(expired).toEqual({ ...user, hasPassword: true, updatedAt: expect.any(Number) })
  expect(expired.updatedAt).toBeGreaterThanOrEqual(user.updatedAt)
  // Again is no change.
  expect(await api.expect(200, 'PATCH', path, { isExpired: true })).toEqual(expired)
  expect(await api.events()).toMatchObject([{ event: 'User.Data.Updated', data: expired }])
  const old = await stateOf(user.id)
  expect(old).toMatchObject({ password_expired: true })
  await api.expect(200, 'PATCH', `/users/${user.id}/password`, { password: 'another password' })
  const fresh = await stateOf(user.id)
  expect(fresh).toMatchObject({ password_expired: false })
  expect(fresh.password_changed_at.getTime()).toBeGreaterThan(old.password_changed_at.getTime())
  const unknown = await api.call('PATCH', '/users/unknown/password/expiration', { isExpired: true })
  expect([unknown.status, unknown.body.code]).toEqual([404, 'entity.not_found'])
})

test('a better digest of the same password makes it no younger', async () => {
  const digest = { passwordAlgorithm: 'SHA1', passwordDigest: '5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8' }
  const { id } = await api.expect(200, 'POST', '/users', digest)
  await api.database.pool.query(`UPDATE users SET password_changed_at = '2020-01-01' WHERE id = $1`, [id])
  const before = await stateOf(id)
  await api.expect(204, 'POST', `/users/${id}/password/verify`, { password: 'password' })
  const after = await stateOf(id)
  expect(after.password_algorithm).toBe('Argon2id')
  expect(after.password_changed_at).toEqual(before.password_changed_at)
})

test('a password expires when its time is over, or when an administrator says so, and only while the policy is on', () => {
  const policy = { enabled: true, validPeriodDays: 30 }
  const day = (count: number) => new Date(Date.UTC(2026, 0, 1) + count * 86_400_000)
  const user = { created_at: day(0), password_changed_at: day(10), password_expired: false }
  expect(isPasswordExpired(user, policy, day(39.999))).toBe(false)
  expect(isPasswordExpired(user, policy, day(40))).toBe(true)
  expect(isPasswordExpired({ ...user, password_changed_at: null }, policy, day(30))).toBe(true)
  expect(isPasswordExpired({ ...user, password_expired: true }, policy, day(10))).toBe(true)
  expect(isPasswordExpired({ ...user, password_expired: true }, { enabled: false }, day(99))).toBe(false)
  expect(isPasswordExpired(user, { enabled: true }, day(9_999))).toBe(false)
})
