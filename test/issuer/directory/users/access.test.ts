import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

/** What suspension and deletion end: see also `test/issuer/tokens/revocations`. */

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const revocations = (value: string) => api.database.knex('revocations').where({ value }).pluck('kind')

test('suspending a user revokes what he has, once; ending the suspension revokes nothing', async () => {
  const { id } = await api.expect(200, 'POST', '/users', {})
  const suspend = (isSuspended: boolean) => api.expect(200, 'PATCH', `/users/${id}/is-suspended`, { isSuspended })
  await suspend(true)
  await suspend(true)
  await suspend(false)
  expect(await revocations(id)).toEqual(['sub'])
})

test('deleting a user revokes what he had', async () => {
  const { id } = await api.expect(200, 'POST', '/users', {})
  await api.expect(204, 'DELETE', `/users/${id}`)
  expect(await revocations(id)).toEqual(['sub'])
})

test('deleting an application revokes what it had', async () => {
  const { id } = await api.expect(200, 'POST', '/applications', { name: 'Backend', type: 'MachineToMachine' })
  await api.expect(204, 'DELETE', `/applications/${id}`)
  expect(await revocations(id)).toEqual(['client'])
})
