import { hash } from '@node-rs/argon2'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPasswordHasher } from '../../../../issuer/directory/users/password.ts'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const composed = 'crème brûlée'.normalize('NFC')
const decomposed = composed.normalize('NFD')

test('a password that was set on one keyboard is the same on another', async () => {
  expect(decomposed).not.toBe(composed)
  for (const [set, typed] of [
    [composed, decomposed],
    [decomposed, composed],
    ['ｆｕｌｌ ｗｉｄｔｈ', 'full width'],
  ] as const) {
    const { id } = await api.expect(200, 'POST', '/users', { password: set })
    await api.expect(204, 'POST', `/users/${id}/password/verify`, { password: typed })
    await api.expect(422, 'POST', `/users/${id}/password/verify`, { password: `${typed}.` })
  }
})

test('a digest of the text as it was typed still verifies', async () => {
  const { verify } = createPasswordHasher()
  const older = { digest: await hash(decomposed), algorithm: 'Argon2id' as const }
  expect(await verify(decomposed, older)).toBe(true)
  expect(await verify(composed, older)).toBe(false)
})

test('what no keyboard sends is refused before anything is hashed', async () => {
  const { id } = await api.expect(200, 'POST', '/users', {})
  const refused = async (password: string) => {
    const { status, body } = await api.call('PATCH', `/users/${id}/password`, { password })
    expect([status, body.code]).toEqual([400, 'guard.invalid_input'])
  }
  await refused('a'.repeat(1_000_000 - 100))
  await refused('a'.repeat(10_000))
  await refused('a'.repeat(1_025))
  // 1 026 bytes.
  await refused('é'.repeat(513))
  await refused('with\u0000nothing')
  const lone = await api.call('PATCH', `/users/${id}/password`, '{"password":"half \\ud83d of one"}')
  expect([lone.status, lone.body.code]).toEqual([400, 'guard.invalid_input'])
  await api.expect(200, 'PATCH', `/users/${id}/password`, { password: 'é'.repeat(512) })
})
