import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'
import { recordsOf } from './records.ts'

let api: ManagementTest
const make = recordsOf(() => api)
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())
beforeEach(async () => {
  await api.events()
})

const refusal = (status: number, code: string) => ({ status, body: { code } })

describe('a permission inside organizations', () => {
  test('is created, changed and deleted, each time with its event', async () => {
    const scope = await api.expect(201, 'POST', '/organization-scopes', { name: 'read:member' })
    expect(scope).toEqual({
      tenantId: 'default',
      id: expect.stringMatching(/^[0-9a-z]{21}$/),
      name: 'read:member',
      description: null,
    })
    const path = `/organization-scopes/${scope.id}`
    expect(await api.expect(200, 'GET', path)).toEqual(scope)
    const changed = await api.expect(200, 'PATCH', path, { description: 'See who is there' })
    expect(changed).toEqual({ ...scope, description: 'See who is there' })
    expect(await api.expect(200, 'PATCH', path, { name: 'read:member' })).toEqual(changed)
    await api.expect(204, 'DELETE', path)
    expect(await api.call('DELETE', path)).toMatchObject(refusal(404, 'entity.not_found'))
    expect(await api.call('GET', path)).toMatchObject(refusal(404, 'entity.not_exists_with_id'))
    expect(await api.call('PATCH', path, { name: 'x' })).toMatchObject(refusal(404, 'entity.not_exists_with_id'))
    expect(await api.events()).toEqual([
      expect.objectContaining({ event: 'OrganizationScope.Created', version: 1, data: scope, status: 201 }),
      expect.objectContaining({ event: 'OrganizationScope.Data.Updated', version: 2, data: changed }),
      expect.objectContaining({ event: 'OrganizationScope.Deleted', version: 3, data: null, params: { id: scope.id } }),
    ])
  })

  test('has a name that can stand in a token, and no other has it', async () => {
    const scope = await make.scope()
    for (const name of ['', 'two words', 'a"b', 'é', 'a'.repeat(129)]) {
      expect(await api.call('POST', '/organization-scopes', { name })).toMatchObject(
        refusal(400, 'guard.invalid_input'),
      )
    }
    const other = await make.scope()
    await api.events()
    const taken = refusal(422, 'entity.unique_integrity_violation')
    expect(await api.call('POST', '/organization-scopes', { name: scope.name })).toMatchObject(taken)
    expect(await api.call('PATCH', `/organization-scopes/${other.id}`, { name: scope.name })).toMatchObject(taken)
    expect(await api.call('PATCH', `/organization-scopes/${other.id}`, {})).toMatchObject(
      refusal(422, 'entity.invalid_input'),
    )
    expect(await api.events()).toEqual([])
  })

  test('is found among the others', async () => {
    // Ids are searched as well: what is looked for has to be something that none of them holds by chance.
    const scope = await make.scope({ name: 'invoice:pay', description: 'Pay invoices' })
    expect(await api.expect(200, 'GET', '/organization-scopes?q=PAY%20INVOICES')).toEqual([scope])
    const all = await api.call('GET', '/organization-scopes')
    expect(all.body).toContainEqual(scope)
    expect(all.headers.get('total-number')).toBeNull()
    expect((await api.call('GET', '/organization-scopes?page=1&page_size=1')).body).toHaveLength(1)
  })
})

describe('an organization role', () => {
  test('without permissions is one event', async () => {
    const role = await api.expect(201, 'POST', '/organization-roles', { name: 'Guest' })
    expect(role).toEqual({
      tenantId: 'default',
      id: expect.stringMatching(/^[0-9a-z]{21}$/),
      name: 'Guest',
      description: null,
      type: 'User',
    })
    expect(await api.expect(200, 'GET', `/organization-roles/${role.id}`)).toEqual(role)
    expect(await api.expect(200, 'GET', '/organization-roles?q=guest')).toEqual([
      { ...role, scopes: [], resourceScopes: [] },
    ])
    expect(await api.events()).toEqual([
      expect.objectContaining({ event: 'OrganizationRole.Created', version: 1, data: role }),
    ])
  })

  test('with permissions of both kinds is two events, in this order, of one entity', async () => {
    const [first, second] = [await make.scope(), await make.scope()]
    const { resource, scope } = await make.resourceScope()
    await api.events()
    const role = await api.expect(201, 'POST', '/organization-roles', {
      name: 'Owner',
      organizationScopeIds: [second.id, first.id, first.id],
      resourceScopeIds: [scope.id],
    })
    expect(await api.events()).toEqual([
      expect.objectContaining({ event: 'OrganizationRole.Created', version: 1, data: role }),
      expect.objectContaining({
        event: 'OrganizationRole.Scopes.Updated',
        version: 2,
        data: [first, second, scope],
        organizationRoleId: role.id,
      }),
    ])
    expect(await api.expect(200, 'GET', '/organization-roles?q=Owner')).toEqual([
      {
        ...role,
        scopes: [first, second].map(({ id, name }) => ({ id, name })),
        resourceScopes: [{ id: scope.id, name: scope.name, resource: { id: resource.id, name: resource.name } }],
      },
    ])
  })

  test('with permissions of API resources alone is two events too', async () => {
    const { scope } = await make.resourceScope()
    await api.events()
    await make.role({ resourceScopeIds: [scope.id] })
    expect((await api.events()).map(({ event, data }) => [event, data])).toEqual([
      ['OrganizationRole.Created', expect.any(Object)],
      ['OrganizationRole.Scopes.Updated', [scope]],
    ])
  })

  test.each([
    [{ name: '' }, 400, 'guard.invalid_input'],
    [{ type: 'Owner' }, 400, 'guard.invalid_input'],
    [{ description: 'a'.repeat(257) }, 400, 'guard.invalid_input'],
    [{ organizationScopeIds: ['none'] }, 422, 'entity.relation_foreign_key_not_found'],
    [{ resourceScopeIds: ['none'] }, 422, 'entity.relation_foreign_key_not_found'],
  ])('with %o is refused and leaves nothing behind', async (part, status, code) => {
    const input = { name: 'Refused', ...part }
    expect(await api.call('POST', '/organization-roles', input)).toMatchObject(refusal(status, code))
    expect(await api.expect(200, 'GET', '/organization-roles?q=Refused')).toEqual([])
    expect(await api.events()).toEqual([])
  })

  test('has a name for which many ask at once and one gets it', async () => {
    const scope = await make.scope()
    await api.events()
    const input = { name: 'Wanted', organizationScopeIds: [scope.id] }
    const answers = await Promise.all(Array.from({ length: 12 }, () => api.call('POST', '/organization-roles', input)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(11).fill(422)])
    expect(answers.find(({ status }) => status === 422)!.body).toEqual({
      code: 'entity.unique_integrity_violation',
      message: 'The value is already in use.',
    })
    expect((await api.events()).map(({ event }) => event)).toEqual([
      'OrganizationRole.Created',
      'OrganizationRole.Scopes.Updated',
    ])
  })

  test('stands in a list that comes in pages of 20, also without a word of pages', async () => {
    for (let count = 0; count < 22; count++) await make.role({ description: 'Paged through' })
    const first = await api.call('GET', '/organization-roles?q=paged%20through')
    expect(first.body).toHaveLength(20)
    expect(first.headers.get('total-number')).toBe('22')
    const second = await api.call('GET', '/organization-roles?q=paged%20through&page=2')
    expect(second.body).toHaveLength(2)
    const middle = await api.call('GET', '/organization-roles?q=paged%20through&page=2&page_size=10')
    expect(middle.body).toEqual(first.body.slice(10))
  })

  test('changes, and its type too while nobody has it', async () => {
    const role = await make.role()
    await api.events()
    const path = `/organization-roles/${role.id}`
    const patch = { name: 'Renamed', description: 'x', type: 'MachineToMachine' }
    const changed = await api.expect(200, 'PATCH', path, patch)
    expect(changed).toEqual({ ...role, ...patch })
    expect(await api.expect(200, 'PATCH', path, patch)).toEqual(changed)
    expect(await api.events()).toEqual([
      expect.objectContaining({ event: 'OrganizationRole.Data.Updated', version: 2, data: changed }),
    ])

    const organization = await make.organization()
    const backend = await make.application()
    const list = `/organizations/${organization.id}/applications`
    await api.expect(201, 'POST', list, { applicationIds: [backend.id] })
    await api.expect(201, 'POST', `${list}/${backend.id}/roles`, { organizationRoleIds: [role.id] })
    await api.events()
    expect(await api.call('PATCH', path, { type: 'User' })).toMatchObject(refusal(422, 'entity.db_constraint_violated'))
    expect(await api.call('PATCH', path, {})).toMatchObject(refusal(422, 'entity.invalid_input'))
    expect(await api.call('PATCH', '/organization-roles/none', { name: 'x' })).toMatchObject(
      refusal(404, 'entity.not_exists_with_id'),
    )
    expect(await api.events()).toEqual([])
  })

  test('whose type changes while it is given to a user is never a machine-to-machine role that a user has', async () => {
    const [organization, user] = [await make.organization(), await make.user()]
    const list = `/organizations/${organization.id}/users`
    await api.expect(201, 'POST', list, { userIds: [user.id] })
    for (let round = 0; round < 10; round++) {
      const { id } = await make.role()
      const [changed, given] = await Promise.all([
        api.call('PATCH', `/organization-roles/${id}`, { type: 'MachineToMachine' }),
        api.call('POST', `${list}/${user.id}/roles`, { organizationRoleIds: [id] }),
      ])
      expect([changed.status, given.status].sort()).toEqual([changed.status === 200 ? 200 : 201, 422])
    }
    const held = await api.expect(200, 'GET', `${list}/${user.id}/roles`)
    expect(held.filter(({ type }: { type: string }) => type !== 'User')).toEqual([])
    await api.events()
  })

  test('is deleted, and those who have it lose it', async () => {
    const role = await make.role()
    const [organization, user] = [await make.organization(), await make.user()]
    const list = `/organizations/${organization.id}/users`
    await api.expect(201, 'POST', list, { userIds: [user.id] })
    await api.expect(201, 'POST', `${list}/${user.id}/roles`, { organizationRoleIds: [role.id] })
    await api.events()
    await api.expect(204, 'DELETE', `/organization-roles/${role.id}`)
    expect(await api.expect(200, 'GET', `${list}/${user.id}/roles`)).toEqual([])
    expect((await api.events()).map(({ event, data }) => [event, data])).toEqual([['OrganizationRole.Deleted', null]])
    expect(await api.call('DELETE', `/organization-roles/${role.id}`)).toMatchObject(refusal(404, 'entity.not_found'))
  })
})

describe('the permissions that an organization role carries', () => {
  /** Both kinds are managed alike; only those inside organizations are events. */
  describe.each([
    { kind: 'scopes', ids: 'organizationScopeIds', events: true, some: () => make.scope() },
    { kind: 'resource-scopes', ids: 'scopeIds', events: false, some: async () => (await make.resourceScope()).scope },
  ])('as $kind', ({ kind, ids, events, some }) => {
    const start = async () => {
      const role = await make.role()
      const scopes = [await some(), await some(), await some()] as const
      await api.events()
      return { role, scopes, path: `/organization-roles/${role.id}/${kind}` }
    }
    const expectEvents = async (count: number, roleId: string) => {
      expect(await api.events()).toEqual(
        Array.from({ length: events ? count : 0 }, () =>
          expect.objectContaining({
            event: 'OrganizationRole.Scopes.Updated',
            organizationRoleId: roleId,
            data: null,
          }),
        ),
      )
    }

    test('are added, replaced and taken off; what changes nothing is no event', async () => {
      const { role, scopes, path } = await start()
      const [first, second, third] = scopes
      expect(await api.expect(201, 'POST', path, { [ids]: [first.id] })).toBeUndefined()
      await api.expect(201, 'POST', path, { [ids]: [first.id] })
      await expectEvents(1, role.id)
      await api.expect(201, 'POST', path, { [ids]: [first.id, second.id] })
      await expectEvents(1, role.id)
      expect(await api.expect(200, 'GET', path)).toEqual([first, second])

      await api.expect(204, 'PUT', path, { [ids]: [third.id, second.id] })
      await api.expect(204, 'PUT', path, { [ids]: [second.id, third.id] })
      await expectEvents(1, role.id)
      expect(await api.expect(200, 'GET', path)).toEqual([second, third])

      await api.expect(204, 'DELETE', `${path}/${second.id}`)
      expect(await api.call('DELETE', `${path}/${second.id}`)).toMatchObject(refusal(404, 'entity.not_found'))
      await expectEvents(1, role.id)
      await api.expect(204, 'PUT', path, { [ids]: [] })
      await api.expect(204, 'PUT', path, { [ids]: [] })
      await expectEvents(1, role.id)
      expect(await api.expect(200, 'GET', path)).toEqual([])
    })

    test('are all added or none', async () => {
      const { scopes, path } = await start()
      for (const method of ['POST', 'PUT']) {
        expect(await api.call(method, path, { [ids]: [scopes[0].id, 'none'] })).toMatchObject({
          status: 422,
          body: { code: 'entity.relation_foreign_key_not_found', data: { ids: ['none'] } },
        })
        expect(await api.call(method, path, {})).toMatchObject(refusal(400, 'guard.invalid_input'))
        const nowhere = await api.call(method, `/organization-roles/none/${kind}`, { [ids]: [scopes[0].id] })
        expect(nowhere).toMatchObject(refusal(404, 'entity.not_exists_with_id'))
      }
      expect(await api.call('POST', path, { [ids]: [] })).toMatchObject(refusal(400, 'guard.invalid_input'))
      expect(await api.call('GET', `/organization-roles/none/${kind}`)).toMatchObject(
        refusal(404, 'entity.not_exists_with_id'),
      )
      expect(await api.expect(200, 'GET', path)).toEqual([])
      expect(await api.events()).toEqual([])
    })

    test('are paged and searched', async () => {
      const { scopes, path } = await start()
      await api.expect(204, 'PUT', path, { [ids]: scopes.map(({ id }) => id) })
      const page = await api.call('GET', `${path}?page=2&page_size=2`)
      expect(page.body).toEqual([scopes[2]])
      expect(page.headers.get('total-number')).toBe('3')
      expect(await api.expect(200, 'GET', `${path}?q=${scopes[1].id}`)).toEqual([scopes[1]])
      await api.events()
    })

    test('changed by many at once keep the versions without a gap', async () => {
      const { role, scopes, path } = await start()
      await Promise.all(
        Array.from({ length: 18 }, (_, index) =>
          index % 2 === 0
            ? api.expect(201, 'POST', path, { [ids]: scopes.map(({ id }) => id) })
            : api.expect(204, 'PUT', path, { [ids]: [scopes[index % 3]!.id] }),
        ),
      )
      const versions = (await api.events()).map(({ version }) => version)
      expect(versions).toEqual(versions.map((_, index) => index + 2))
      await api.expect(200, 'PATCH', `/organization-roles/${role.id}`, { description: 'Last' })
      expect((await api.events()).map(({ version }) => version)).toEqual([versions.length + 2])
    })
  })

  test('are never those of the Management API, whoever asks and whatever the type', async () => {
    const resources = await api.expect(200, 'GET', '/resources?includeScopes=true')
    const ofManagement = resources
      .filter(({ indicator }: { indicator: string }) => indicator === api.indicator || indicator.includes('logto.app'))
      .flatMap(({ scopes }: { scopes: { id: string }[] }) => scopes)
    expect(ofManagement.length).toBeGreaterThan(10)
    const { scope } = await make.resourceScope()
    await api.events()
    const refused = refusal(400, 'role.management_api_scopes_not_assignable_to_user_role')
    for (const type of ['User', 'MachineToMachine']) {
      const role = await make.role({ type })
      await api.events()
      const path = `/organization-roles/${role.id}/resource-scopes`
      for (const { id } of ofManagement) {
        const input = { name: 'Climber', type, resourceScopeIds: [scope.id, id] }
        expect(await api.call('POST', '/organization-roles', input)).toMatchObject(refused)
        expect(await api.call('POST', path, { scopeIds: [scope.id, id] })).toMatchObject(refused)
        expect(await api.call('PUT', path, { scopeIds: [id] })).toMatchObject(refused)
      }
      expect(await api.expect(200, 'GET', path)).toEqual([])
    }
    expect(await api.events()).toEqual([])
  })
})
