import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
let resource: { id: string; scopes: undefined }
let read: { id: string }
let write: { id: string }
let remove: { id: string }

beforeAll(async () => {
  api = await startManagement()
  const { scopes: _, ...row } = await api.expect(201, 'POST', '/resources', {
    name: 'Orders',
    indicator: 'https://orders.test',
  })
  resource = row
  const scope = (name: string) => api.expect(201, 'POST', `/resources/${resource.id}/scopes`, { name })
  read = await scope('read')
  write = await scope('write')
  remove = await scope('delete')
})
afterAll(() => api.close())

let counter = 0
const someRole = async (input: object = {}) => {
  const role = await api.expect(200, 'POST', '/roles', {
    name: `Role ${++counter}`,
    description: 'Some role',
    ...input,
  })
  await api.events()
  return role
}
const someUser = async (name = 'Ada') => api.expect(200, 'POST', '/users', { name })
const someApplication = async (type = 'MachineToMachine') =>
  api.expect(200, 'POST', '/applications', { name: 'Backend', type })

describe('creating', () => {
  test('a role', async () => {
    const role = await api.expect(200, 'POST', '/roles', { name: 'Support', description: 'Helps' })
    expect(role).toEqual({
      tenantId: 'default',
      id: expect.stringMatching(/^[0-9a-z]{21}$/),
      name: 'Support',
      description: 'Helps',
      type: 'User',
      isDefault: false,
    })
    expect(await api.expect(200, 'GET', `/roles/${role.id}`)).toEqual(role)
    expect(await api.expect(200, 'GET', `/roles/${role.id}/scopes`)).toEqual([])
    const request = { path: '/roles', matchedRoute: '/roles', params: {}, method: 'POST', status: 200 }
    expect((await api.events()).filter(({ event }) => event.startsWith('Role'))).toEqual([
      expect.objectContaining({ event: 'Role.Created', version: 1, data: role, ...request }),
    ])
  })

  test('a role with permissions: two events, in this order, of one entity', async () => {
    const input = { name: 'Clerk', description: 'x', type: 'MachineToMachine', scopeIds: [write.id, read.id, read.id] }
    const role = await api.expect(200, 'POST', '/roles', input)
    expect(await api.expect(200, 'GET', `/roles/${role.id}/scopes`)).toEqual([
      { ...read, resource },
      { ...write, resource },
    ])
    expect(await api.events()).toEqual([
      expect.objectContaining({ event: 'Role.Created', version: 1, data: role }),
      expect.objectContaining({ event: 'Role.Scopes.Updated', version: 2, data: [read, write], roleId: role.id }),
    ])
  })

  test.each([
    [{ name: '' }, 400, 'guard.invalid_input'],
    [{ description: undefined }, 400, 'guard.invalid_input'],
    [{ description: 'a'.repeat(129) }, 400, 'guard.invalid_input'],
    [{ type: 'Organization' }, 400, 'guard.invalid_input'],
    [{ name: '#internal:admin' }, 403, 'role.internal_role_violation'],
    [{ scopeIds: ['unknown'] }, 404, 'entity.not_exists_with_id'],
  ])('with %o is refused and leaves nothing behind', async (part, status, code) => {
    const input = { name: 'Refused', description: 'x', ...part }
    expect(await api.call('POST', '/roles', input)).toMatchObject({ status, body: { code } })
    expect(await api.expect(200, 'GET', '/roles?search.name=Refused')).toEqual([])
    expect(await api.events()).toEqual([])
  })

  test('one name, by many at once, makes one role', async () => {
    const input = { name: 'Wanted', description: 'x', scopeIds: [read.id] }
    const answers = await Promise.all(Array.from({ length: 12 }, () => api.call('POST', '/roles', input)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(11).fill(422)])
    expect(answers.find(({ status }) => status === 422)!.body).toEqual({
      code: 'role.name_in_use',
      message: 'This role name is already in use.',
    })
    expect((await api.events()).map(({ event }) => event)).toEqual(['Role.Created', 'Role.Scopes.Updated'])
  })
})

describe('changing', () => {
  test('name, description and default status; never the type', async () => {
    const role = await someRole()
    const patch = { name: 'Renamed', description: 'Otherwise', isDefault: true, type: 'MachineToMachine' }
    const changed = await api.expect(200, 'PATCH', `/roles/${role.id}`, patch)
    expect(changed).toEqual({ ...role, name: 'Renamed', description: 'Otherwise', isDefault: true })
    expect(await api.expect(200, 'PATCH', `/roles/${role.id}`, patch)).toEqual(changed)
    expect(await api.events()).toEqual([
      expect.objectContaining({
        event: 'Role.Data.Updated',
        version: 2,
        data: changed,
        path: `/roles/${role.id}`,
        matchedRoute: '/roles/:id',
        params: { id: role.id },
        method: 'PATCH',
        status: 200,
      }),
    ])
    await api.expect(204, 'DELETE', `/roles/${role.id}`)
  })

  test('is refused for an unknown role, a taken name, a reserved one, and an empty body', async () => {
    const [role, other] = [await someRole(), await someRole()]
    for (const [path, body, status, code] of [
      ['none', { name: 'x' }, 404, 'entity.not_exists'],
      [role.id, { name: other.name }, 422, 'role.name_in_use'],
      [role.id, { name: '#internal:x' }, 403, 'role.internal_role_violation'],
      [role.id, {}, 422, 'entity.invalid_input'],
      [role.id, { type: 'User' }, 422, 'entity.invalid_input'],
    ] as const) {
      expect(await api.call('PATCH', `/roles/${path}`, body)).toMatchObject({ status, body: { code } })
    }
    expect(await api.expect(200, 'GET', `/roles/${role.id}`)).toEqual(role)
    expect(await api.events()).toEqual([])
  })
})

describe('deleting', () => {
  test('a role takes it from those who have it', async () => {
    const role = await someRole({ scopeIds: [read.id] })
    const user = await someUser()
    await api.expect(201, 'POST', `/users/${user.id}/roles`, { roleIds: [role.id] })
    await api.events()
    expect(await api.call('DELETE', `/roles/${role.id}`)).toMatchObject({ status: 204, body: undefined })
    expect(await api.expect(200, 'GET', `/users/${user.id}/roles`)).toEqual([])
    expect(await api.events()).toEqual([
      expect.objectContaining({ event: 'Role.Deleted', version: 3, data: null, params: { id: role.id }, status: 204 }),
    ])
    expect(await api.call('DELETE', `/roles/${role.id}`)).toMatchObject({
      status: 404,
      body: { code: 'entity.not_found' },
    })
    expect(await api.call('GET', `/roles/${role.id}`)).toMatchObject({
      status: 404,
      body: { code: 'entity.not_exists_with_id' },
    })
    expect(await api.events()).toEqual([])
  })
})

describe('permissions', () => {
  test('are put on a role, which answers all it carries, and taken off', async () => {
    const role = await someRole({ scopeIds: [read.id] })
    const path = `/roles/${role.id}/scopes`
    expect(await api.expect(201, 'POST', path, { scopeIds: [remove.id, write.id] })).toEqual([read, write, remove])
    expect(await api.call('DELETE', `${path}/${read.id}`)).toMatchObject({ status: 204, body: undefined })
    expect(await api.expect(200, 'GET', `${path}?search.name=w%25`)).toEqual([{ ...write, resource }])
    const page = await api.call('GET', `${path}?page=2&page_size=1`)
    expect(page.body).toEqual([{ ...remove, resource }])
    expect(page.headers.get('total-number')).toBe('2')
    expect(await api.events()).toEqual([
      expect.objectContaining({
        event: 'Role.Scopes.Updated',
        version: 3,
        data: [read, write, remove],
        roleId: role.id,
        matchedRoute: '/roles/:id/scopes',
        method: 'POST',
        status: 201,
      }),
      expect.objectContaining({
        event: 'Role.Scopes.Updated',
        version: 4,
        data: null,
        roleId: role.id,
        params: { id: role.id, scopeId: read.id },
        method: 'DELETE',
        status: 204,
      }),
    ])
  })

  test('are refused when one is there, unknown or missing; then none is added', async () => {
    const role = await someRole({ scopeIds: [read.id] })
    const path = `/roles/${role.id}/scopes`
    for (const [method, url, body, status, code] of [
      ['POST', path, { scopeIds: [write.id, read.id] }, 422, 'role.scope_exists'],
      ['POST', path, { scopeIds: [write.id, 'none'] }, 404, 'entity.not_exists_with_id'],
      ['POST', path, { scopeIds: [] }, 400, 'guard.invalid_input'],
      ['POST', '/roles/none/scopes', { scopeIds: [read.id] }, 404, 'entity.not_exists_with_id'],
      ['GET', '/roles/none/scopes', undefined, 404, 'entity.not_exists_with_id'],
      ['DELETE', `${path}/${write.id}`, undefined, 404, 'entity.not_found'],
      ['DELETE', `/roles/none/scopes/${write.id}`, undefined, 404, 'entity.not_exists_with_id'],
    ] as const) {
      expect(await api.call(method, url, body)).toMatchObject({ status, body: { code } })
    }
    expect(await api.expect(200, 'GET', path)).toEqual([{ ...read, resource }])
    expect(await api.events()).toEqual([])
  })

  test('put on by many at once: one wins, one event', async () => {
    const role = await someRole()
    const add = () => api.call('POST', `/roles/${role.id}/scopes`, { scopeIds: [read.id, write.id] })
    const answers = await Promise.all(Array.from({ length: 12 }, add))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(422)])
    expect(await api.events()).toHaveLength(1)
  })
})

describe('holders', () => {
  test('users get a role and lose it, without an event', async () => {
    const role = await someRole()
    const [ada, grace] = [await someUser('Ada'), await someUser('Grace')]
    await api.events()
    const path = `/roles/${role.id}/users`
    expect(await api.call('POST', path, { userIds: [ada.id, grace.id] })).toMatchObject({
      status: 201,
      body: undefined,
    })
    expect(await api.expect(200, 'GET', path)).toEqual([grace, ada])
    expect(await api.expect(200, 'GET', `${path}?search.name=ada`)).toEqual([ada])
    expect(await api.call('POST', path, { userIds: [ada.id] })).toMatchObject({
      status: 422,
      body: { code: 'role.user_exists' },
    })
    await api.expect(204, 'DELETE', `${path}/${ada.id}`)
    await api.expect(404, 'DELETE', `${path}/${ada.id}`)
    expect(await api.expect(200, 'GET', path)).toEqual([grace])
    expect(await api.events()).toEqual([])
  })

  test('machine-to-machine applications get a role of their type and lose it', async () => {
    const role = await someRole({ type: 'MachineToMachine' })
    const { secret: _, ...application } = await someApplication()
    const path = `/roles/${role.id}/applications`
    const body = { applicationIds: [application.id] }
    expect(await api.call('POST', path, body)).toMatchObject({ status: 201, body: undefined })
    expect(await api.expect(200, 'GET', path)).toEqual([application])
    expect(await api.call('POST', path, body)).toMatchObject({ status: 422, body: { code: 'role.application_exists' } })
    await api.expect(204, 'DELETE', `${path}/${application.id}`)
    expect(await api.expect(200, 'GET', path)).toEqual([])
    expect(await api.events()).toEqual([])
  })

  test('of the wrong kind or unknown are refused, and then nobody gets it', async () => {
    const [userRole, machineRole] = [await someRole(), await someRole({ type: 'MachineToMachine' })]
    const [user, machine, site] = [await someUser(), await someApplication(), await someApplication('Traditional')]
    await api.events()
    for (const [path, body, status, code] of [
      [`/roles/${machineRole.id}/users`, { userIds: [user.id] }, 422, 'entity.db_constraint_violated'],
      [`/roles/${userRole.id}/applications`, { applicationIds: [machine.id] }, 422, 'entity.db_constraint_violated'],
      [
        `/roles/${machineRole.id}/applications`,
        { applicationIds: [machine.id, site.id] },
        422,
        'application.invalid_type',
      ],
      [`/roles/${userRole.id}/users`, { userIds: [user.id, 'none'] }, 404, 'entity.not_found'],
      [`/roles/${machineRole.id}/applications`, { applicationIds: [machine.id, 'none'] }, 404, 'entity.not_found'],
      ['/roles/none/users', { userIds: [user.id] }, 404, 'entity.not_exists_with_id'],
      [`/roles/${userRole.id}/users`, { userIds: [] }, 400, 'guard.invalid_input'],
    ] as const) {
      expect(await api.call('POST', path, body)).toMatchObject({ status, body: { code } })
    }
    expect(await api.expect(200, 'GET', `/roles/${userRole.id}/users`)).toEqual([])
    expect(await api.expect(200, 'GET', `/roles/${machineRole.id}/applications`)).toEqual([])
    expect(await api.events()).toEqual([])
  })

  test('stand in the list of roles: how many, and three of them', async () => {
    const role = await someRole({ name: 'Popular' })
    const users = await Promise.all(['A', 'B', 'C', 'D'].map(someUser))
    await api.expect(201, 'POST', `/roles/${role.id}/users`, { userIds: users.map(({ id }) => id) })
    const featured = users
      .map(({ id, name, avatar }) => ({ id, name, avatar }))
      .sort((left, right) => (left.id < right.id ? -1 : 1))
    expect(await api.expect(200, 'GET', '/roles?search.name=Popular')).toEqual([
      { ...role, usersCount: 4, featuredUsers: featured.slice(0, 3), applicationsCount: 0, featuredApplications: [] },
    ])

    const machineRole = await someRole({ name: 'Machines', type: 'MachineToMachine' })
    const { id, name, type } = await someApplication()
    await api.expect(201, 'POST', `/roles/${machineRole.id}/applications`, { applicationIds: [id] })
    const [row] = await api.expect(200, 'GET', '/roles?search.name=Machines&type=MachineToMachine')
    expect(row).toMatchObject({ usersCount: 0, applicationsCount: 1, featuredApplications: [{ id, name, type }] })
    const names = async (query: string) =>
      (await api.expect(200, 'GET', `/roles?${query}`)).map((one: { name: string }) => one.name)
    expect(await names(`excludeApplicationId=${id}&search.name=Machines`)).toEqual([])
    expect(await names(`excludeUserId=${users[0].id}&search.name=Popular`)).toEqual([])
    expect(await names(`excludeUserId=${users[0].id}&search.name=Machines`)).toEqual(['Machines'])
  })

  test('are found by a permission that they carry', async () => {
    const { name } = await someRole({ name: 'Keeper of the scope', scopeIds: [read.id] })
    await someRole({ name: 'Keeper of another', scopeIds: [write.id] })
    const found = await api.expect(200, 'GET', `/roles?scopeId=${read.id}&search=${encodeURIComponent('Keeper%')}`)
    expect(found.map((role: { name: string }) => role.name)).toEqual([name])
  })
})
