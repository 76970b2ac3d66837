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

/** Users and applications belong to organizations alike. */
describe.each([
  { noun: 'users', ids: 'userIds', added: 'addedUserIds', removed: 'removedUserIds', some: () => make.user() },
  {
    noun: 'applications',
    ids: 'applicationIds',
    added: 'addedApplicationIds',
    removed: 'removedApplicationIds',
    some: () => make.application(),
  },
])('$noun of an organization', ({ noun, ids, added, removed, some }) => {
  const start = async () => {
    const { id } = await make.organization()
    const members = [await some(), await some(), await some()]
    await api.events()
    return {
      id,
      members,
      list: `/organizations/${id}/${noun}`,
      of: (...list: { id: string }[]) => list.map((one) => one.id),
    }
  }
  const listed = async (list: string) =>
    (await api.expect(200, 'GET', list)).map((member: { id: string }) => member.id).sort()
  const membership = { event: 'Organization.Membership.Updated' }

  test('are added; those who belong to it already are left alone', async () => {
    const { id, members, list, of } = await start()
    const [first, second] = members as [{ id: string }, { id: string }]
    // The answer, and the event with it, is what was sent.
    const body = { [ids]: [first.id, first.id] }
    expect(await api.expect(201, 'POST', list, body)).toEqual(body)
    const both = { [ids]: of(first, second) }
    expect(await api.expect(201, 'POST', list, both)).toEqual(both)
    expect(await api.expect(201, 'POST', list, both)).toEqual(both)
    expect(await listed(list)).toEqual(of(first, second).sort())
    const events = await api.events()
    expect(events).toEqual([
      expect.objectContaining({ ...membership, version: 2, organizationId: id, data: body, [added]: [first.id] }),
      expect.objectContaining({ ...membership, version: 3, data: both, [added]: [second.id] }),
    ])
    for (const event of events) expect(event).not.toHaveProperty(removed)
    expect(await api.expect(200, 'GET', list)).toEqual(
      expect.arrayContaining([
        { ...first, organizationRoles: [] },
        { ...second, organizationRoles: [] },
      ]),
    )
    expect(await api.expect(200, 'GET', `/${noun}/${first.id}/organizations`)).toEqual([
      { ...(await api.expect(200, 'GET', `/organizations/${id}`)), organizationRoles: [] },
    ])
  })

  test('are replaced: those who stay keep their roles, and the event tells who came and who went', async () => {
    const { id, members, list, of } = await start()
    const [first, second, third] = members as [{ id: string }, { id: string }, { id: string }]
    const role = await make.role({ type: noun === 'users' ? 'User' : 'MachineToMachine' })
    await api.expect(204, 'PUT', list, { [ids]: of(first, second) })
    await api.expect(201, 'POST', `${list}/roles`, { [ids]: of(first, second), organizationRoleIds: [role.id] })
    await api.events()
    await api.expect(204, 'PUT', list, { [ids]: of(second, third) })
    await api.expect(204, 'PUT', list, { [ids]: of(third, second) })
    expect(await api.events()).toEqual([
      expect.objectContaining({
        ...membership,
        organizationId: id,
        data: null,
        [added]: [third.id],
        [removed]: [first.id],
      }),
    ])
    const members2 = await api.expect(200, 'GET', list)
    expect(
      Object.fromEntries(members2.map((one: Record<string, unknown>) => [one['id'], one['organizationRoles']])),
    ).toEqual({
      [second.id]: [{ id: role.id, name: role.name }],
      [third.id]: [],
    })
    await api.expect(204, 'PUT', list, { [ids]: [] })
    expect(await listed(list)).toEqual([])
    const [event] = await api.events()
    expect(event).not.toHaveProperty(added)
    expect((event as Record<string, unknown>)[removed]).toHaveLength(2)
    // Whoever comes back has no role any more.
    await api.expect(201, 'POST', list, { [ids]: [second.id] })
    expect(await api.expect(200, 'GET', `${list}/${second.id}/roles`)).toEqual([])
  })

  test('are removed one by one', async () => {
    const { id, members, list, of } = await start()
    const [first, second] = members as [{ id: string }, { id: string }]
    await api.expect(204, 'PUT', list, { [ids]: of(first, second) })
    await api.events()
    await api.expect(204, 'DELETE', `${list}/${first.id}`)
    expect(await api.call('DELETE', `${list}/${first.id}`)).toMatchObject(refusal(404, 'entity.not_found'))
    expect(await listed(list)).toEqual([second.id])
    expect(await api.events()).toEqual([
      expect.objectContaining({ ...membership, organizationId: id, data: null, [removed]: [first.id] }),
    ])
  })

  test('are all added or none, and only to organizations there are', async () => {
    const { members, list } = await start()
    const unknown = { [ids]: [members[0].id, 'nobody'] }
    for (const method of ['POST', 'PUT']) {
      const answer = await api.call(method, list, unknown)
      expect(answer).toMatchObject({
        status: 422,
        body: { code: 'entity.relation_foreign_key_not_found', data: { ids: ['nobody'] } },
      })
      const nowhere = await api.call(method, `/organizations/none/${noun}`, { [ids]: [members[0].id] })
      expect(nowhere).toMatchObject({
        status: 422,
        body: { code: 'entity.relation_foreign_key_not_found', data: { id: 'none', ids: ['none'] } },
      })
      expect(await api.call(method, list, {})).toMatchObject(refusal(400, 'guard.invalid_input'))
    }
    expect(await api.call('POST', list, { [ids]: [] })).toMatchObject(refusal(400, 'guard.invalid_input'))
    const nobody = { [ids]: [members[0].id, 'nobody', 'nobody'] }
    expect((await api.call('POST', list, nobody)).body.data).toEqual({ id: 'nobody', ids: ['nobody'] })
    expect(await api.call('DELETE', `/organizations/none/${noun}/${members[0].id}`)).toMatchObject(
      refusal(404, 'entity.not_found'),
    )
    expect(await api.call('GET', `/organizations/none/${noun}`)).toMatchObject(
      refusal(404, 'entity.not_exists_with_id'),
    )
    expect((await api.call('GET', `/${noun}/none/organizations`)).status).toBe(404)
    expect(await listed(list)).toEqual([])
    expect(await api.events()).toEqual([])
  })

  test('are searched and paged, the last joined first', async () => {
    const { members, list } = await start()
    for (const { id } of members) await api.expect(201, 'POST', list, { [ids]: [id] })
    const page = await api.call('GET', `${list}?page=1&page_size=2`)
    expect(page.body.map(({ id }: { id: string }) => id)).toEqual([members[2].id, members[1].id])
    expect(page.headers.get('total-number')).toBe('3')
    const found = await api.call('GET', `${list}?q=${encodeURIComponent(members[1].name.toUpperCase())}`)
    expect(found.body.map(({ id }: { id: string }) => id)).toEqual([members[1].id])
    expect(found.headers.get('total-number')).toBe('1')
  })

  test('added and removed by many at once: every change is one event, versions have no gap, and they add up', async () => {
    const { members, list } = await start()
    const [first, second] = members as [{ id: string }, { id: string }]
    const calls = Array.from({ length: 24 }, (_, index) =>
      index % 3 === 0
        ? api.call('POST', list, { [ids]: [first.id, second.id] })
        : index % 3 === 1
          ? api.call('PUT', list, { [ids]: [index % 2 === 0 ? first.id : second.id] })
          : api.call('DELETE', `${list}/${first.id}`),
    )
    const statuses = new Set((await Promise.all(calls)).map(({ status }) => status))
    expect([...statuses].filter((status) => ![201, 204, 404].includes(status))).toEqual([])
    const events = await api.events()
    expect(events.map(({ version }) => version)).toEqual(events.map((_, index) => index + 2))
    const state = new Set<unknown>()
    for (const event of events) {
      for (const id of (event[removed] as string[] | undefined) ?? []) expect(state.delete(id)).toBe(true)
      for (const id of (event[added] as string[] | undefined) ?? []) {
        expect(state.has(id)).toBe(false)
        state.add(id)
      }
    }
    expect(await listed(list)).toEqual([...state].sort())
  })
})

test('only machine-to-machine applications belong to organizations', async () => {
  const { id } = await make.organization()
  const [backend, site] = [await make.application(), await make.application({ type: 'Traditional' })]
  const body = { applicationIds: [backend.id, site.id] }
  for (const method of ['POST', 'PUT']) {
    expect(await api.call(method, `/organizations/${id}/applications`, body)).toMatchObject({
      status: 422,
      body: { code: 'application.invalid_type', data: { ids: [site.id] } },
    })
  }
  expect(await api.expect(200, 'GET', `/organizations/${id}/applications`)).toEqual([])
})

test('users and applications that are outside an organization are found to be added', async () => {
  const { id } = await make.organization()
  const [inside, outside] = [await make.user({ name: 'Kim Inside' }), await make.user({ name: 'Kim Outside' })]
  await api.expect(201, 'POST', `/organizations/${id}/users`, { userIds: [inside.id] })
  const found = await api.expect(200, 'GET', `/users?search.name=Kim%25&excludeOrganizationId=${id}`)
  expect(found).toEqual([outside])

  const [member, other] = [await make.application({ name: 'Kim 1' }), await make.application({ name: 'Kim 2' })]
  await api.expect(201, 'POST', `/organizations/${id}/applications`, { applicationIds: [member.id] })
  const applications = await api.expect(200, 'GET', `/applications?search.name=Kim%25&excludeOrganizationId=${id}`)
  expect(applications).toEqual([other])
})

test('more members than a statement has parameters are replaced at once; the event names 5 000 of them', async () => {
  const { id } = await make.organization()
  const stays = await make.user()
  await api.database.pool.query(
    `WITH many AS (INSERT INTO users (id) SELECT 'many' || lpad(n::text, 8, '0') FROM generate_series(1, 66000) AS n RETURNING id)
     INSERT INTO organization_users SELECT $1, id FROM many`,
    [id],
  )
  await api.events()
  const deep = await api.call('GET', `/organizations/${id}/users?page=660&page_size=100`)
  expect(deep.body).toHaveLength(100)
  expect(deep.headers.get('total-number')).toBe('66000')
  await api.expect(204, 'PUT', `/organizations/${id}/users`, { userIds: [stays.id] })
  const [event] = await api.events()
  expect(event!['removedUserIds']).toHaveLength(5_000)
  expect(event!['addedUserIds']).toEqual([stays.id])
  expect(await api.expect(200, 'GET', `/organizations/${id}/users`)).toEqual([{ ...stays, organizationRoles: [] }])
  const tooMany = { userIds: Array.from({ length: 5_001 }, (_, index) => `user${index}`) }
  expect(await api.call('PUT', `/organizations/${id}/users`, tooMany)).toMatchObject(
    refusal(400, 'guard.invalid_input'),
  )
  await api.database.pool.query(`DELETE FROM users WHERE id LIKE 'many%'`)
})

test('deleting a user ends its memberships, as its own event only', async () => {
  const { id } = await make.organization()
  const user = await make.user()
  await api.expect(201, 'POST', `/organizations/${id}/users`, { userIds: [user.id] })
  await api.events()
  await api.expect(204, 'DELETE', `/users/${user.id}`)
  expect((await api.events()).map(({ event }) => event)).toEqual(['User.Deleted'])
  expect(await api.expect(200, 'GET', `/organizations/${id}/users`)).toEqual([])
})
