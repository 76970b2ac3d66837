import { createManagementApi } from '@logto/api/management'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/** The published client of the Management API, as its documentation says, with its own types and nothing of ours in between. */

type Client = ReturnType<typeof createManagementApi>['apiClient']

let issuer: TestIssuer
let client: Client
beforeAll(async () => {
  issuer = await startTestIssuer({
    config: { webhookTargets: { allowedNetworks: ['203.0.113.0/24'], allowHttp: false } },
  })
  client = createManagementApi('default', {
    clientId: issuer.bootstrap.id,
    clientSecret: issuer.bootstrap.secret!,
    baseUrl: issuer.url,
    apiIndicator: issuer.managementResource,
  }).apiClient
})
afterAll(() => issuer.close())

/** What a call answered, which must be a success. */
const ok = async <Data>(call: Promise<{ data?: Data; error?: unknown; response: Response }>): Promise<Data> => {
  const { data, error, response } = await call
  expect([response.status, error]).toEqual([response.status, undefined])
  return data as Data
}

/** The status of an answer that has no body. */
const statusOf = async (call: Promise<{ response: Response }>): Promise<number> => (await call).response.status

// The document that the client is generated from says "form, exploded" of `search_params`.
const searching = { querySerializer: { object: { style: 'form', explode: true } } } as const

const newUser = (name: string) => ok(client.POST('/api/users', { body: { name } }))
const newRole = (name: string, type: 'User' | 'MachineToMachine') =>
  ok(client.POST('/api/roles', { body: { name, description: name, type } }))
const newBackend = (name: string) => ok(client.POST('/api/applications', { body: { name, type: 'MachineToMachine' } }))
const newApi = (name: string) =>
  ok(client.POST('/api/resources', { body: { name, indicator: `https://${name}.example.test` } }))

test('users: created, found, changed, suspended and deleted', async () => {
  const { id: userId } = await ok(
    client.POST('/api/users', {
      body: { primaryEmail: 'ada@example.test', username: 'ada', name: 'Ada Lovelace', password: 'analytical engine' },
    }),
  )
  const params = { path: { userId } }

  const found = await client.GET('/api/users', {
    params: {
      query: { page: 1, page_size: 5, search_params: { 'search.primaryEmail': '%ada@%', search: '%Lovelace%' } },
    },
    ...searching,
  })
  expect(found.data?.map(({ id }) => id)).toEqual([userId])
  expect(found.response.headers.get('total-number')).toBe('1')

  const updated = await ok(client.PATCH('/api/users/{userId}', { params, body: { name: 'Countess', avatar: null } }))
  expect(updated).toMatchObject({ id: userId, name: 'Countess', primaryEmail: 'ada@example.test' })
  expect(
    await ok(client.PATCH('/api/users/{userId}/custom-data', { params, body: { customData: { plan: 'pro' } } })),
  ).toEqual({ plan: 'pro' })
  expect(await ok(client.GET('/api/users/{userId}/custom-data', { params }))).toEqual({ plan: 'pro' })
  expect(
    await ok(client.PATCH('/api/users/{userId}/profile', { params, body: { profile: { givenName: 'Ada' } } })),
  ).toEqual({ givenName: 'Ada' })
  expect(await ok(client.GET('/api/users/{userId}/has-password', { params }))).toEqual({ hasPassword: true })
  const verify = (password: string) =>
    statusOf(client.POST('/api/users/{userId}/password/verify', { params, body: { password } }))
  expect([await verify('analytical engine'), await verify('wrong')]).toEqual([204, 422])
  const identity = { userId: '583231', details: { name: 'ada' } }
  expect(
    await ok(
      client.PUT('/api/users/{userId}/identities/{target}', {
        params: { path: { userId, target: 'github' } },
        body: identity,
      }),
    ),
  ).toEqual({ github: identity })
  const suspension = { params, body: { isSuspended: true } }
  expect(await ok(client.PATCH('/api/users/{userId}/is-suspended', suspension))).toMatchObject({ isSuspended: true })
  const whole = await ok(
    client.GET('/api/users/{userId}', {
      params: { ...params, query: { includePasswordHash: 'true', includeSsoIdentities: 'true' } },
    }),
  )
  expect(whole).toMatchObject({ passwordAlgorithm: 'Argon2id', ssoIdentities: [], identities: { github: identity } })

  expect(await statusOf(client.DELETE('/api/users/{userId}', { params }))).toBe(204)
  const gone = await client.GET('/api/users/{userId}', { params })
  expect([gone.response.status, gone.error]).toMatchObject([404, { code: 'entity.not_found' }])
})

test('API resources and their permissions', async () => {
  const { id, scopes } = await newApi('orders')
  expect(scopes).toEqual([])
  const { id: scopeId } = await ok(
    client.POST('/api/resources/{resourceId}/scopes', {
      params: { path: { resourceId: id } },
      body: { name: 'read:orders', description: 'Reading' },
    }),
  )
  const atScope = { path: { resourceId: id, scopeId } }
  expect(
    await ok(
      client.PATCH('/api/resources/{resourceId}/scopes/{scopeId}', { params: atScope, body: { name: 'list:orders' } }),
    ),
  ).toMatchObject({ id: scopeId, resourceId: id, name: 'list:orders' })
  const all = await ok(client.GET('/api/resources', { params: { query: { includeScopes: 'true' } } }))
  expect(all.find((resource) => resource.id === id)?.scopes).toMatchObject([{ name: 'list:orders' }])
  const params = { path: { id } }
  expect(await ok(client.PATCH('/api/resources/{id}/is-default', { params, body: { isDefault: true } }))).toMatchObject(
    { isDefault: true },
  )
  expect(await ok(client.PATCH('/api/resources/{id}', { params, body: { accessTokenTtl: 600 } }))).toMatchObject({
    accessTokenTtl: 600,
  })
  expect(await statusOf(client.DELETE('/api/resources/{resourceId}/scopes/{scopeId}', { params: atScope }))).toBe(204)
  expect(await statusOf(client.DELETE('/api/resources/{id}', { params }))).toBe(204)
})

test('roles: their permissions and who holds them', async () => {
  const { id: resourceId } = await newApi('billing')
  const { id: scopeId } = await ok(
    client.POST('/api/resources/{resourceId}/scopes', { params: { path: { resourceId } }, body: { name: 'pay' } }),
  )
  const { id } = await newRole('Payers', 'User')
  const { id: userId } = await newUser('Grace')
  const params = { path: { id } }

  await ok(client.POST('/api/roles/{id}/scopes', { params, body: { scopeIds: [scopeId] } }))
  expect(await ok(client.GET('/api/roles/{id}/scopes', { params }))).toMatchObject([
    { id: scopeId, name: 'pay', resource: { id: resourceId } },
  ])
  expect(await statusOf(client.POST('/api/roles/{id}/users', { params, body: { userIds: [userId] } }))).toBe(201)
  const listed = await ok(
    client.GET('/api/roles', { params: { query: { page: 1, search_params: { search: '%payers%' } } }, ...searching }),
  )
  expect(listed).toMatchObject([{ id, usersCount: 1, featuredUsers: [{ id: userId }], applicationsCount: 0 }])
  expect(
    (await ok(client.GET('/api/users/{userId}/roles', { params: { path: { userId } } }))).map(({ name }) => name),
  ).toEqual(['Payers'])

  const { id: applicationId } = await newBackend('Worker')
  const { id: machineRole } = await newRole('Workers', 'MachineToMachine')
  const given = client.POST('/api/applications/{applicationId}/roles', {
    params: { path: { applicationId } },
    body: { roleIds: [machineRole] },
  })
  expect(await statusOf(given)).toBe(201)
  expect(await ok(client.GET('/api/roles/{id}/applications', { params: { path: { id: machineRole } } }))).toMatchObject(
    [{ id: applicationId }],
  )

  expect(await ok(client.PATCH('/api/roles/{id}', { params, body: { isDefault: true } }))).toMatchObject({
    isDefault: true,
  })
  const { id: newcomer } = await newUser('Edsger')
  expect(await ok(client.GET('/api/users/{userId}/roles', { params: { path: { userId: newcomer } } }))).toMatchObject([
    { id },
  ])
  expect(await statusOf(client.DELETE('/api/roles/{id}', { params }))).toBe(204)
})

test('applications and their secrets', async () => {
  const { id } = await newBackend('Backend')
  const params = { path: { id } }
  const [first] = await ok(client.GET('/api/applications/{id}/secrets', { params }))
  expect(first).toMatchObject({ name: 'Default secret', applicationId: id })
  const secret = await ok(
    client.POST('/api/applications/{id}/secrets', { params, body: { name: 'next', expiresAt: null } }),
  )
  const own = createManagementApi('default', {
    clientId: id,
    clientSecret: secret.value,
    baseUrl: issuer.url,
    apiIndicator: issuer.managementResource,
  })
  expect((await own.clientCredentials.getAccessToken()).scope).toBe('')

  const listed = client.GET('/api/applications', {
    params: { query: { types: ['MachineToMachine'], isThirdParty: 'false', page: 1, page_size: 100 } },
    querySerializer: { array: { style: 'form', explode: true } },
  })
  expect((await ok(listed)).map((application) => application.id)).toContain(id)
  const patch = client.PATCH('/api/applications/{id}', { params, body: { description: 'Runs at night' } })
  expect(await ok(patch)).toMatchObject({ description: 'Runs at night' })
  expect(await ok(client.GET('/api/applications/{id}', { params }))).toMatchObject({ id, isAdmin: false })
  const named = { path: { id, name: 'next' } }
  expect(await statusOf(client.DELETE('/api/applications/{id}/secrets/{name}', { params: named }))).toBe(204)
  expect(await statusOf(client.DELETE('/api/applications/{id}', { params }))).toBe(204)
})

test('organizations, their members and what members may do', async () => {
  const { id: userId } = await newUser('Barbara')
  const { id: scopeId } = await ok(client.POST('/api/organization-scopes', { body: { name: 'invite' } }))
  const { id: roleId } = await ok(
    client.POST('/api/organization-roles', {
      body: { name: 'admin', organizationScopeIds: [scopeId], resourceScopeIds: [] },
    }),
  )
  const { id } = await ok(client.POST('/api/organizations', { body: { name: 'Acme', description: 'Anvils' } }))
  const params = { path: { id } }
  const member = { path: { id, userId } }

  expect(await statusOf(client.POST('/api/organizations/{id}/users', { params, body: { userIds: [userId] } }))).toBe(
    201,
  )
  expect(
    await statusOf(
      client.POST('/api/organizations/{id}/users/{userId}/roles', {
        params: member,
        body: { organizationRoleIds: [roleId], organizationRoleNames: [] },
      }),
    ),
  ).toBe(201)
  expect(await ok(client.GET('/api/organizations/{id}/users', { params }))).toMatchObject([
    { id: userId, organizationRoles: [{ id: roleId, name: 'admin' }] },
  ])
  expect(await ok(client.GET('/api/organizations/{id}/users/{userId}/scopes', { params: member }))).toMatchObject([
    { name: 'invite' },
  ])
  expect(
    await ok(client.GET('/api/organizations', { params: { query: { q: 'acm', showFeatured: 'true' } } })),
  ).toMatchObject([{ id, usersCount: 1, featuredUsers: [{ id: userId }] }])
  expect(await ok(client.GET('/api/users/{userId}/organizations', { params: { path: { userId } } }))).toMatchObject([
    { id, organizationRoles: [{ name: 'admin' }] },
  ])
  expect(await statusOf(client.PUT('/api/organizations/{id}/users', { params, body: { userIds: [] } }))).toBe(204)
  expect(await ok(client.PATCH('/api/organizations/{id}', { params, body: { name: 'Ajax' } }))).toMatchObject({
    name: 'Ajax',
  })
  expect(await statusOf(client.DELETE('/api/organizations/{id}', { params }))).toBe(204)
})

test('hooks', async () => {
  const body = { name: 'Audit', events: ['User.Created' as const], config: { url: 'https://203.0.113.7/hooks' } }
  const { id, signingKey } = await ok(client.POST('/api/hooks', { body }))
  expect(signingKey).toMatch(/^[A-Za-z0-9]{32}$/)
  const params = { path: { id } }
  expect(await ok(client.PATCH('/api/hooks/{id}', { params, body: { enabled: false } }))).toMatchObject({
    enabled: false,
    events: ['User.Created'],
  })
  expect((await ok(client.PATCH('/api/hooks/{id}/signing-key', { params }))).signingKey).not.toBe(signingKey)
  const listed = client.GET('/api/hooks', { params: { query: { includeExecutionStats: 'true' } } })
  expect(await ok(listed)).toMatchObject([{ id, executionStats: { requestCount: 0 } }])
  expect(await ok(client.GET('/api/hooks/{id}/recent-logs', { params }))).toEqual([])
  expect(await statusOf(client.DELETE('/api/hooks/{id}', { params }))).toBe(204)
})

describe('the audit trail and errors', () => {
  test('tell what the client did', async () => {
    const { id: userId } = await newUser('Alan')
    const query = { applicationId: issuer.bootstrap.id, userId, page: 1, page_size: 100 }
    const rows = await ok(client.GET('/api/logs', { params: { query } }))
    expect(rows).toMatchObject([{ key: 'Management.createUser', payload: { result: 'Success', userId } }])
    const [row] = rows
    expect(await ok(client.GET('/api/logs/{id}', { params: { path: { id: row!.id } } }))).toEqual(row)
  })

  test('come as the client expects them', async () => {
    const { error, response } = await client.POST('/api/users', { body: { primaryEmail: 'nobody' } })
    expect([response.status, error]).toMatchObject([400, { code: 'guard.invalid_input', message: expect.any(String) }])
  })
})
