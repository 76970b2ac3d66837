import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/**
 * A permission of the Management API that is taken away is gone at once, not when the last token that tells of it
 * expires.
 */
let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
})
afterAll(() => issuer.close())

/** An application that holds these scopes, with a token that says so. */
const holderOf = async (...scopes: string[]) => {
  const application = await issuer.createApplication({ type: 'MachineToMachine' })
  const roleId = await issuer.grantApplication(application, issuer.managementResource, scopes)
  const token = await issuer.clientToken(application, issuer.managementResource, scopes.join(' '))
  const get = (path: string) => issuer.api('GET', path, undefined, { token, instance: 1 })
  expect((await get('/users')).status).toBe(200)
  return { application, roleId, get }
}
const forbidden = { status: 403, body: { code: 'auth.forbidden' } }

test('with the role of the application', async () => {
  const { application, roleId, get } = await holderOf('all')
  expect((await issuer.api('DELETE', `/applications/${application.id}/roles/${roleId}`)).status).toBe(204)
  expect(await get('/users')).toMatchObject(forbidden)
})

test('with the permission of the role, which leaves the others', async () => {
  const { roleId, get } = await holderOf('users', 'rbac')
  const [scope] = await issuer.sql<{ id: string }>(
    `SELECT s.id FROM scopes s JOIN role_scopes rs ON rs.scope_id = s.id WHERE rs.role_id = $1 AND s.name = 'users'`,
    [roleId],
  )
  expect((await issuer.api('DELETE', `/roles/${roleId}/scopes/${scope!.id}`)).status).toBe(204)
  expect(await get('/users')).toMatchObject(forbidden)
  expect((await get('/roles')).status).toBe(200)
})

test('with the role itself', async () => {
  const { roleId, get } = await holderOf('read')
  expect((await issuer.api('DELETE', `/roles/${roleId}`)).status).toBe(204)
  expect(await get('/users')).toMatchObject(forbidden)
})

test('and a token never has more than it was issued with', async () => {
  const application = await issuer.createMachine(issuer.managementResource, ['all'])
  const token = await issuer.clientToken(application, issuer.managementResource, 'read')
  expect(await issuer.api('POST', '/users', {}, { token })).toMatchObject(forbidden)
})
