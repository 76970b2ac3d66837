import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'
import { recordsOf } from './records.ts'

let api: ManagementTest
const make = recordsOf(() => api)
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const refusal = (status: number, code: string) => ({ status, body: { code } })

describe.each([
  {
    noun: 'users',
    ids: 'userIds',
    type: 'User',
    otherType: 'MachineToMachine',
    some: () => make.user(),
  },
  {
    noun: 'applications',
    ids: 'applicationIds',
    type: 'MachineToMachine',
    otherType: 'User',
    some: () => make.application(),
  },
])('the roles that $noun have in an organization', ({ noun, ids, type, otherType, some }) => {
  const start = async () => {
    const organization = await make.organization()
    const [member, other, stranger] = [await some(), await some(), await some()]
    const list = `/organizations/${organization.id}/${noun}`
    await api.expect(204, 'PUT', list, { [ids]: [member.id, other.id] })
    const roles = [await make.role({ type }), await make.role({ type }), await make.role({ type })] as const
    await api.events()
    return { organization, member, other, stranger, list, roles, path: `${list}/${member.id}/roles` }
  }

  test('are given by id or by name, replaced, and taken; none of it is an event', async () => {
    const { path, roles, list, member, organization } = await start()
    const [first, second, third] = roles
    expect(await api.expect(201, 'POST', path, { organizationRoleIds: [first.id, first.id] })).toEqual({
      organizationRoleIds: [first.id],
    })
    const both = { organizationRoleIds: [second.id, first.id], organizationRoleNames: [second.name] }
    expect(await api.expect(201, 'POST', path, both)).toEqual({ organizationRoleIds: [second.id, first.id] })
    expect(await api.expect(200, 'GET', path)).toEqual([first, second])
    await api.expect(204, 'PUT', path, { organizationRoleNames: [second.name, third.name] })
    expect(await api.expect(200, 'GET', path)).toEqual([second, third])
    await api.expect(204, 'DELETE', `${path}/${second.id}`)
    expect(await api.call('DELETE', `${path}/${second.id}`)).toMatchObject(refusal(404, 'entity.not_found'))
    const organizationRoles = [{ id: third.id, name: third.name }]
    expect(await api.expect(200, 'GET', `${list}?q=${member.id}`)).toEqual([{ ...member, organizationRoles }])
    expect(await api.expect(200, 'GET', `/${noun}/${member.id}/organizations`)).toEqual([
      { ...organization, organizationRoles },
    ])
    await api.expect(204, 'PUT', path, {})
    expect(await api.expect(200, 'GET', path)).toEqual([])
    expect(await api.events()).toEqual([])
  })

  test('are given to several at once', async () => {
    const { list, roles, member, other } = await start()
    const [first, second] = roles
    const body = { [ids]: [member.id, other.id], organizationRoleIds: [first.id, second.id] }
    await api.expect(201, 'POST', `${list}/roles`, body)
    await api.expect(201, 'POST', `${list}/roles`, body)
    for (const { id } of [member, other]) {
      expect(await api.expect(200, 'GET', `${list}/${id}/roles`)).toEqual([first, second])
    }
    expect((await api.call('GET', `${list}/${member.id}/roles?page=2&page_size=1`)).body).toEqual([second])
  })

  test('are for members only', async () => {
    const { list, roles, member, stranger } = await start()
    const body = { organizationRoleIds: [roles[0].id] }
    const refused = {
      status: 422,
      body: { code: 'organization.require_membership', data: { ids: [stranger.id] } },
    }
    const path = `${list}/${stranger.id}`
    expect(await api.call('GET', `${path}/roles`)).toMatchObject(refused)
    expect(await api.call('GET', `${path}/scopes`)).toMatchObject(refused)
    expect(await api.call('POST', `${path}/roles`, body)).toMatchObject(refused)
    expect(await api.call('PUT', `${path}/roles`, body)).toMatchObject(refused)
    expect(await api.call('DELETE', `${path}/roles/${roles[0].id}`)).toMatchObject(refused)
    const several = { ...body, [ids]: [member.id, stranger.id] }
    expect(await api.call('POST', `${list}/roles`, several)).toMatchObject(refused)
    expect(await api.expect(200, 'GET', `${list}/${member.id}/roles`)).toEqual([])
    const nowhere = `/organizations/none/${noun}/${member.id}/roles`
    expect(await api.call('GET', nowhere)).toMatchObject(refusal(404, 'entity.not_exists_with_id'))
    const unknown = {
      status: 422,
      body: { code: 'entity.relation_foreign_key_not_found', data: { id: 'none', ids: ['none'] } },
    }
    expect(await api.call('POST', nowhere, body)).toMatchObject(unknown)
    expect(await api.call('PUT', nowhere, body)).toMatchObject(unknown)
    expect(await api.call('DELETE', `${nowhere}/${roles[0].id}`)).toMatchObject(unknown)
    expect(await api.call('POST', `/organizations/none/${noun}/roles`, several)).toMatchObject(unknown)
  })

  test('may be none: nothing is given then, and the answer says so', async () => {
    const { path, roles } = await start()
    const given = await api.expect(201, 'POST', path, { organizationRoleNames: [roles[0].name] })
    expect(given).toEqual({ organizationRoleIds: [roles[0].id] })
    for (const none of [{ organizationRoleIds: [] }, { organizationRoleIds: [], organizationRoleNames: [] }, {}])
      expect(await api.expect(201, 'POST', path, none)).toEqual({ organizationRoleIds: [] })
    expect(await api.expect(200, 'GET', path)).toEqual([roles[0]])
  })

  test('are those there are, of their type, and named', async () => {
    const { path, roles } = await start()
    const wrong = await make.role({ type: otherType })
    for (const method of ['POST', 'PUT']) {
      expect(await api.call(method, path, { organizationRoleIds: [roles[0].id, 'none'] })).toMatchObject({
        status: 422,
        body: { code: 'entity.relation_foreign_key_not_found', data: { ids: ['none'] } },
      })
      const names = [roles[0].name, 'none', 'nobody']
      expect(await api.call(method, path, { organizationRoleNames: names })).toMatchObject({
        status: 422,
        body: { code: 'organization.role_names_not_found', data: { names: ['none', 'nobody'] } },
      })
      const mixed = { organizationRoleIds: [roles[0].id, wrong.id] }
      expect(await api.call(method, path, mixed)).toMatchObject({
        status: 422,
        body: { code: 'entity.db_constraint_violated', data: { ids: [wrong.id] } },
      })
      expect(await api.call(method, path, { organizationRoleIds: 'none' })).toMatchObject(
        refusal(400, 'guard.invalid_input'),
      )
    }
    expect(await api.expect(200, 'GET', path)).toEqual([])
  })

  test('tell what the member may do there', async () => {
    const { list, member, path, roles } = await start()
    const [read, write] = [await make.scope(), await make.scope()]
    await api.expect(204, 'PUT', `/organization-roles/${roles[0].id}/scopes`, { organizationScopeIds: [read.id] })
    await api.expect(204, 'PUT', `/organization-roles/${roles[1].id}/scopes`, {
      organizationScopeIds: [write.id, read.id],
    })
    await api.expect(204, 'PUT', path, { organizationRoleIds: [roles[0].id, roles[1].id] })
    expect(await api.expect(200, 'GET', `${list}/${member.id}/scopes`)).toEqual([read, write])
  })

  test('set by many at once end as one of them said', async () => {
    const { path, roles } = await start()
    const wishes = roles.flatMap((role) => [[role.id], roles.filter(({ id }) => id !== role.id).map(({ id }) => id)])
    await Promise.all(wishes.map((organizationRoleIds) => api.expect(204, 'PUT', path, { organizationRoleIds })))
    const outcome = (await api.expect(200, 'GET', path)).map(({ id }: { id: string }) => id).sort()
    expect(wishes.map((wish) => [...wish].sort())).toContainEqual(outcome)
  })
})

describe('who holds less of the Management API than an application', () => {
  test('changes neither where it belongs nor its roles there', async () => {
    const organization = await make.organization()
    const role = await make.role({ type: 'MachineToMachine' })
    const [admin, plain] = [await make.application(), await make.application()]
    const [all] = await api.expect(200, 'GET', '/roles?search.name=%25Management%20API%20access')
    await api.expect(201, 'POST', `/applications/${admin.id}/roles`, { roleIds: [all.id] })
    const list = `/organizations/${organization.id}/applications`
    const lesser = { token: api.token({ scope: 'organizations' }) }
    await api.expect(201, 'POST', list, { applicationIds: [plain.id] }, lesser)
    await api.expect(201, 'POST', `${list}/${plain.id}/roles`, { organizationRoleIds: [role.id] }, lesser)

    const refused = refusal(403, 'auth.forbidden')
    expect(await api.call('POST', list, { applicationIds: [admin.id] }, lesser)).toMatchObject(refused)
    expect(await api.call('PUT', list, { applicationIds: [admin.id, plain.id] }, lesser)).toMatchObject(refused)
    await api.expect(201, 'POST', list, { applicationIds: [admin.id] })
    await api.events()
    const roles = `${list}/${admin.id}/roles`
    const body = { organizationRoleIds: [role.id] }
    expect(await api.call('PUT', list, { applicationIds: [] }, lesser)).toMatchObject(refused)
    expect(await api.call('DELETE', `${list}/${admin.id}`, undefined, lesser)).toMatchObject(refused)
    expect(await api.call('POST', roles, body, lesser)).toMatchObject(refused)
    expect(await api.call('PUT', roles, body, lesser)).toMatchObject(refused)
    expect(
      await api.call('POST', `${list}/roles`, { ...body, applicationIds: [plain.id, admin.id] }, lesser),
    ).toMatchObject(refused)
    await api.expect(201, 'POST', roles, body)
    expect(await api.call('DELETE', `${roles}/${role.id}`, undefined, lesser)).toMatchObject(refused)
    expect(await api.expect(200, 'GET', roles)).toEqual([role])
    expect(await api.events()).toEqual([])
  })
})
