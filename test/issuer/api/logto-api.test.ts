import { createManagementApi } from '@logto/api/management'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/**
 * The published client of the Management API, as its documentation says, with its own types and nothing of ours in
 * between.
 */

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

/** Status, code and message of a refusal. */
const refusalOf = async (call: Promise<{ error?: unknown; response: Response }>) => {
  const { error, response } = await call
  const { code, message } = error as { code: string; message: string }
  return { status: response.status, code, message }
}

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

  const query = { 'search.id': userId, includePasswordHash: 'true' }
  const [listed] = await ok(client.GET('/api/users', { params: { query: { search_params: query } }, ...searching }))
  expect(listed).toMatchObject({ id: userId, passwordAlgorithm: 'Argon2id', passwordDigest: expect.any(String) })

  expect(await statusOf(client.DELETE('/api/users/{userId}', { params }))).toBe(204)
  const gone = await client.GET('/api/users/{userId}', { params })
  expect([gone.response.status, gone.error]).toMatchObject([404, { code: 'entity.not_found' }])
})

test('telephone numbers: checked, and one user’s in either spelling', async () => {
  const create = (primaryPhone: string) => client.POST('/api/users', { body: { primaryPhone } })
  const update = (userId: string, primaryPhone: string) =>
    client.PATCH('/api/users/{userId}', { params: { path: { userId } }, body: { primaryPhone } })
  expect(await refusalOf(create('99999'))).toMatchObject({ status: 422, code: 'user.invalid_phone' })
  const owner = await ok(create('61412345678'))
  const other = await newUser('Grace')
  const taken = { status: 422, code: 'user.phone_already_in_use' }
  expect(await refusalOf(create('610412345678'))).toMatchObject(taken)
  expect(await refusalOf(update(other.id, '610412345678'))).toMatchObject(taken)
  expect(await ok(update(owner.id, '610412345678'))).toMatchObject({ id: owner.id, primaryPhone: '61412345678' })
})

test('the API resource of this API, by the ids that were always its own', async () => {
  const params = { path: { id: 'management-api' } }
  expect(await ok(client.GET('/api/resources/{id}', { params }))).toMatchObject({
    id: 'management-api',
    name: 'Logto Management API',
    indicator: issuer.managementResource,
  })
  const [first] = await ok(
    client.GET('/api/resources/{resourceId}/scopes', { params: { path: { resourceId: 'management-api' } } }),
  )
  expect(first).toMatchObject({
    id: 'management-api-all',
    name: 'all',
    description: 'Default scope for Management API, allows all permissions.',
  })
  const search = { page: 1, search_params: { 'search.name': 'Logto Management API access' } }
  const [role] = await ok(client.GET('/api/roles', { params: { query: search }, ...searching }))
  expect(role).toMatchObject({ type: 'MachineToMachine', featuredApplications: [{ id: issuer.bootstrap.id }] })
})

test('a search that is not valid says why', async () => {
  const search = (search_params: Record<string, string>) =>
    refusalOf(client.GET('/api/users', { params: { query: { search_params } }, ...searching }))
  const refused = (words: string) => ({
    status: 400,
    code: 'request.invalid_input',
    message: expect.stringContaining(words),
  })
  expect(await search({ 'search.primaryEmail': '' })).toEqual(refused('cannot be empty'))
  expect(await search({ 'search.email': '%gmail%' })).toEqual(refused('is not valid'))
  expect(await search({ search: '%a%', joint: 'and1' })).toEqual(refused('is not valid'))
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
  expect(await ok(given)).toEqual({ roleIds: [machineRole], addedRoleIds: [machineRole] })
  const again = client.POST('/api/applications/{applicationId}/roles', {
    params: { path: { applicationId } },
    body: { roleIds: [machineRole] },
  })
  expect(await ok(again)).toEqual({ roleIds: [machineRole], addedRoleIds: [] })
  const misfit = client.POST('/api/roles/{id}/users', {
    params: { path: { id: machineRole } },
    body: { userIds: [userId] },
  })
  expect(await refusalOf(misfit)).toMatchObject({ status: 422, code: 'entity.db_constraint_violated' })
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

  for (const type of ['Native', 'SPA'] as const) {
    const { id: site } = await ok(client.POST('/api/applications', { body: { name: type, type } }))
    const refused = client.POST('/api/applications/{id}/secrets', {
      params: { path: { id: site } },
      body: { name: 'secret' },
    })
    expect(await refusalOf(refused)).toMatchObject({ status: 422, code: 'entity.db_constraint_violated' })
  }
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

  const twice = { userIds: [userId, userId] }
  const add = (body: { userIds: string[] }, organizationId = id) =>
    client.POST('/api/organizations/{id}/users', { params: { path: { id: organizationId } }, body })
  expect(await ok(add(twice))).toEqual(twice)
  const nowhere = { status: 422, code: 'entity.relation_foreign_key_not_found' }
  expect(await refusalOf(add(twice, '0'))).toMatchObject(nowhere)
  const give = (body: { organizationRoleIds?: string[]; organizationRoleNames?: string[] }) =>
    client.POST('/api/organizations/{id}/users/{userId}/roles', { params: member, body })
  expect(await ok(give({ organizationRoleIds: [], organizationRoleNames: [] }))).toEqual({ organizationRoleIds: [] })
  expect(await ok(give({ organizationRoleNames: ['admin'] }))).toEqual({ organizationRoleIds: [roleId] })
  expect(await ok(give({ organizationRoleIds: [roleId], organizationRoleNames: ['admin'] }))).toEqual({
    organizationRoleIds: [roleId],
  })
  expect(await refusalOf(give({ organizationRoleNames: ['nobody'] }))).toMatchObject({
    status: 422,
    code: 'organization.role_names_not_found',
  })
  const taken = client.DELETE('/api/organizations/{id}/applications/{applicationId}/roles/{organizationRoleId}', {
    params: { path: { id: '0', applicationId: '0', organizationRoleId: '0' } },
  })
  expect(await refusalOf(taken)).toMatchObject(nowhere)
  const backend = await newBackend('Member')
  const addTo = (organizationId: string) =>
    client.POST('/api/organizations/{id}/applications', {
      params: { path: { id: organizationId } },
      body: { applicationIds: [backend.id] },
    })
  expect(await refusalOf(addTo('0'))).toMatchObject(nowhere)
  expect(await statusOf(addTo(id))).toBe(201)
  const wrongKind = client.POST('/api/organizations/{id}/applications/{applicationId}/roles', {
    params: { path: { id, applicationId: backend.id } },
    body: { organizationRoleIds: [roleId] },
  })
  expect(await refusalOf(wrongKind)).toMatchObject({ status: 422, code: 'entity.db_constraint_violated' })
  expect(await ok(client.GET('/api/organizations/{id}/users', { params }))).toMatchObject([
    { id: userId, organizationRoles: [{ id: roleId, name: 'admin' }] },
  ])
  expect(await ok(client.GET('/api/organizations/{id}/users/{userId}/scopes', { params: member }))).toMatchObject([
    { name: 'invite' },
  ])
  expect(
    await ok(client.GET('/api/organizations', { params: { query: { q: 'acm', showFeatured: '1' } } })),
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
  const one = client.GET('/api/hooks/{id}', { params: { ...params, query: { includeExecutionStats: 'true' } } })
  expect(await ok(one)).toMatchObject({ id, executionStats: { successCount: 0, requestCount: 0 } })
  expect(await ok(client.GET('/api/hooks/{id}/recent-logs', { params }))).toEqual([])
  expect(await statusOf(client.DELETE('/api/hooks/{id}', { params }))).toBe(204)
})

test('hooks of older clients, and of every event that the client has a name for', async () => {
  const config = { url: 'https://203.0.113.7/hooks' }
  const events = ['PostSignInAdaptiveMfaTriggered', 'Message.RateLimited', 'Grant.LimitExceeded'] as const
  expect((await ok(client.POST('/api/hooks', { body: { events: [...events], config } }))).events).toEqual(events)

  const created = await ok(client.POST('/api/hooks', { body: { event: 'PostRegister', config } }))
  expect(created).toMatchObject({ event: 'PostRegister', config })
  const params = { path: { id: created.id } }
  expect(await ok(client.GET('/api/hooks/{id}', { params }))).toEqual(created)
  const updated = await ok(client.PATCH('/api/hooks/{id}', { params, body: { event: 'PostSignIn' } }))
  expect(updated).toEqual({ ...created, event: 'PostSignIn' })
})

test('the keys of the issuer: those that sign tokens, and none that sign cookies', async () => {
  const keysOf = (keyType: 'private-keys' | 'cookie-keys') =>
    ok(client.GET('/api/configs/oidc/{keyType}', { params: { path: { keyType } } }))
  expect(await keysOf('private-keys')).toMatchObject([{ signingKeyAlgorithm: 'EC', status: 'Current' }])
  expect(await keysOf('cookie-keys')).toEqual([])
  const removed = client.DELETE('/api/configs/oidc/{keyType}/{keyId}', {
    params: { path: { keyType: 'cookie-keys', keyId: 'any' } },
  })
  expect(await refusalOf(removed)).toMatchObject({ status: 404, code: 'oidc.key_not_found' })
})

test('organization roles, 20 at a time', async () => {
  for (let count = 0; count < 21; count++) {
    await ok(
      client.POST('/api/organization-roles', {
        body: { name: `paged ${count}`, organizationScopeIds: [], resourceScopeIds: [] },
      }),
    )
  }
  const list = await client.GET('/api/organization-roles', { params: { query: { q: 'paged' } } })
  expect([list.data?.length, list.response.headers.get('total-number')]).toEqual([20, '21'])
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
