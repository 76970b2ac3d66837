import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/** With tokens from the token endpoint, as integrators have them. */

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer()
})
afterAll(() => issuer.close())

const scopeIdsOf = async (names: string[]) => {
  const { body: resources } = await issuer.api('GET', '/resources?includeScopes=true')
  const management = resources.find(({ indicator }: { indicator: string }) => indicator === issuer.managementResource)
  return management.scopes
    .filter(({ name }: { name: string }) => names.includes(name))
    .map(({ id }: { id: string }) => id)
}

test('an application made through the API gets the scopes of its roles, and no further', async () => {
  const application = (await issuer.api('POST', '/applications', { name: 'Help desk', type: 'MachineToMachine' })).body
  const scopeIds = await scopeIdsOf(['users', 'read'])
  const input = { name: 'Help desk', description: 'x', type: 'MachineToMachine', scopeIds }
  const role = (await issuer.api('POST', '/roles', input)).body
  await issuer.api('POST', `/roles/${role.id}/applications`, { applicationIds: [application.id] })

  const granted = await issuer.token(application, {
    grant_type: 'client_credentials',
    resource: issuer.managementResource,
    scope: 'users read all',
  })
  expect(granted).toMatchObject({ status: 200, body: { token_type: 'Bearer' } })
  expect(granted.body.scope.split(' ').sort()).toEqual(['read', 'users'])

  const token = granted.body.access_token
  const user = await issuer.api('POST', '/users', { username: 'ada' }, { token })
  expect(user).toMatchObject({ status: 200, body: { username: 'ada' } })
  expect(await issuer.api('GET', '/roles', undefined, { token })).toMatchObject({ status: 200 })
  expect(await issuer.api('DELETE', `/roles/${role.id}`, undefined, { token })).toMatchObject({
    status: 403,
    body: { code: 'auth.forbidden', data: { scopes: ['rbac', 'all'] } },
  })
  const { body: rows } = await issuer.api('GET', `/logs?applicationId=${application.id}&logKey=Management.createUser`)
  expect(rows).toMatchObject([{ payload: { userId: user.body.id, subject: application.id } }])
})

test('a secret authenticates until it expires or is deleted', async () => {
  const { id } = (await issuer.api('POST', '/applications', { name: 'Backend', type: 'MachineToMachine' })).body
  const secret = (await issuer.api('POST', `/applications/${id}/secrets`, { name: 'Second' })).body.value
  const form = { grant_type: 'client_credentials', resource: issuer.managementResource }
  expect(await issuer.token({ id, secret }, form)).toMatchObject({ status: 200 })

  await issuer.database
    .knex('application_secrets')
    .where({ name: 'Second' })
    .update({ expires_at: new Date(0) })
  expect(await issuer.token({ id, secret }, form)).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  await issuer.api('PATCH', `/applications/${id}/secrets/Second`, { expiresAt: null })
  expect(await issuer.token({ id, secret }, form)).toMatchObject({ status: 200 })

  await issuer.api('DELETE', `/applications/${id}/secrets/Second`)
  expect(await issuer.token({ id, secret }, form)).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
})

test('a token for another resource, and one of a user, do not open the API', async () => {
  await issuer.api('POST', '/resources', { name: 'Orders', indicator: 'https://orders.test' })
  const application = (await issuer.api('POST', '/applications', { name: 'Backend', type: 'MachineToMachine' })).body
  const foreign = await issuer.clientToken(application, 'https://orders.test', '')
  expect(await issuer.api('GET', '/users', undefined, { token: foreign })).toMatchObject({
    status: 401,
    body: { code: 'auth.unauthorized' },
  })
  expect(await issuer.api('GET', '/users', undefined, { token: null })).toMatchObject({
    status: 401,
    body: { code: 'auth.authorization_header_missing' },
  })
})
