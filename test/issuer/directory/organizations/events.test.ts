import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'
import { recordsOf } from './records.ts'

/**
 * Every operation of the interface that changes organizations, their roles or permissions, and exactly the events it is
 * to emit.
 */

let api: ManagementTest
const make = recordsOf(() => api)
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

type Call = [method: string, path: string, body?: object]

interface Row {
  route: string
  /** Arranges, and answers the call that changes something and one that changes nothing (or is refused). */
  arrange(): Promise<{ change: Call; nothing: Call; is?: (event: Record<string, unknown>) => void }>
  events: string[]
}

const membership = 'Organization.Membership.Updated'
const scopesUpdated = 'OrganizationRole.Scopes.Updated'

const organizationWith = async (...userIds: string[]) => {
  const { id } = await make.organization()
  if (userIds.length > 0) await api.expect(204, 'PUT', `/organizations/${id}/users`, { userIds })
  return id
}
const roleWith = async (...organizationScopeIds: string[]) => (await make.role({ organizationScopeIds })).id

const rows: Row[] = [
  {
    route: 'POST /organizations',
    events: ['Organization.Created'],
    arrange: async () => ({
      change: ['POST', '/organizations', { name: 'Acme' }],
      nothing: ['POST', '/organizations', { name: '' }],
    }),
  },
  {
    route: 'PATCH /organizations/:id',
    events: ['Organization.Data.Updated'],
    async arrange() {
      const id = await organizationWith()
      const change: Call = ['PATCH', `/organizations/${id}`, { description: 'Other' }]
      return { change, nothing: change }
    },
  },
  {
    route: 'DELETE /organizations/:id',
    events: ['Organization.Deleted'],
    async arrange() {
      const change: Call = ['DELETE', `/organizations/${await organizationWith((await make.user()).id)}`]
      return { change, nothing: change }
    },
  },
  {
    route: 'PUT /organizations/:id/users',
    events: [membership],
    async arrange() {
      const [stays, goes, comes] = [(await make.user()).id, (await make.user()).id, (await make.user()).id]
      const path = `/organizations/${await organizationWith(stays, goes)}/users`
      const change: Call = ['PUT', path, { userIds: [stays, comes] }]
      return {
        change,
        nothing: change,
        is: (event) => expect(event).toMatchObject({ addedUserIds: [comes], removedUserIds: [goes], data: null }),
      }
    },
  },
  {
    route: 'POST /organizations/:id/users',
    events: [membership],
    async arrange() {
      const [there, comes] = [(await make.user()).id, (await make.user()).id]
      const path = `/organizations/${await organizationWith(there)}/users`
      const change: Call = ['POST', path, { userIds: [there, comes] }]
      return {
        change,
        nothing: change,
        is(event) {
          expect(event).toMatchObject({ addedUserIds: [comes], data: { userIds: [there, comes] } })
          expect(event).not.toHaveProperty('removedUserIds')
        },
      }
    },
  },
  {
    route: 'DELETE /organizations/:id/users/:userId',
    events: [membership],
    async arrange() {
      const { id } = await make.user()
      const change: Call = ['DELETE', `/organizations/${await organizationWith(id)}/users/${id}`]
      return {
        change,
        nothing: change,
        is(event) {
          expect(event).toMatchObject({ removedUserIds: [id], data: null })
          expect(event).not.toHaveProperty('addedUserIds')
        },
      }
    },
  },
  {
    route: 'POST /organization-roles',
    events: ['OrganizationRole.Created'],
    arrange: async () => ({
      change: ['POST', '/organization-roles', { name: 'Plain' }],
      nothing: ['POST', '/organization-roles', { name: 'Plain' }],
    }),
  },
  {
    route: 'POST /organization-roles',
    events: ['OrganizationRole.Created', scopesUpdated],
    async arrange() {
      const change: Call = [
        'POST',
        '/organization-roles',
        { name: 'Able', organizationScopeIds: [(await make.scope()).id] },
      ]
      return { change, nothing: change }
    },
  },
  {
    route: 'PATCH /organization-roles/:id',
    events: ['OrganizationRole.Data.Updated'],
    async arrange() {
      const change: Call = ['PATCH', `/organization-roles/${await roleWith()}`, { description: 'Other' }]
      return { change, nothing: change }
    },
  },
  {
    route: 'DELETE /organization-roles/:id',
    events: ['OrganizationRole.Deleted'],
    async arrange() {
      const change: Call = ['DELETE', `/organization-roles/${await roleWith((await make.scope()).id)}`]
      return { change, nothing: change }
    },
  },
  {
    route: 'PUT /organization-roles/:id/scopes',
    events: [scopesUpdated],
    async arrange() {
      const path = `/organization-roles/${await roleWith((await make.scope()).id)}/scopes`
      const change: Call = ['PUT', path, { organizationScopeIds: [(await make.scope()).id] }]
      return { change, nothing: change }
    },
  },
  {
    route: 'POST /organization-roles/:id/scopes',
    events: [scopesUpdated],
    async arrange() {
      const path = `/organization-roles/${await roleWith()}/scopes`
      const change: Call = ['POST', path, { organizationScopeIds: [(await make.scope()).id] }]
      return { change, nothing: change }
    },
  },
  {
    route: 'DELETE /organization-roles/:id/scopes/:organizationScopeId',
    events: [scopesUpdated],
    async arrange() {
      const { id } = await make.scope()
      const change: Call = ['DELETE', `/organization-roles/${await roleWith(id)}/scopes/${id}`]
      return { change, nothing: change }
    },
  },
  {
    route: 'POST /organization-scopes',
    events: ['OrganizationScope.Created'],
    async arrange() {
      const change: Call = ['POST', '/organization-scopes', { name: 'created' }]
      return { change, nothing: change }
    },
  },
  {
    route: 'PATCH /organization-scopes/:id',
    events: ['OrganizationScope.Data.Updated'],
    async arrange() {
      const change: Call = ['PATCH', `/organization-scopes/${(await make.scope()).id}`, { description: 'Other' }]
      return { change, nothing: change }
    },
  },
  {
    route: 'DELETE /organization-scopes/:id',
    events: ['OrganizationScope.Deleted'],
    async arrange() {
      const scope = await make.scope()
      await roleWith(scope.id)
      const change: Call = ['DELETE', `/organization-scopes/${scope.id}`]
      return { change, nothing: change }
    },
  },
]

test.each(rows)('$route emits $events, and nothing when nothing changes', async ({ route, arrange, events }) => {
  const { change, nothing, is: holds } = await arrange()
  await api.events()
  const wakes = api.wakes()
  const answer = await api.call(...change)
  expect(answer.status).toBeLessThan(300)
  const emitted = await api.events()
  expect(emitted.map(({ event }) => event)).toEqual(events)
  expect(api.wakes()).toBe(wakes + 1)
  for (const event of emitted) {
    const { matchedRoute, method, status, organizationId, organizationRoleId, data } = event
    expect(`${method} ${matchedRoute}`).toBe(route)
    expect(status).toBe(answer.status)
    expect(event.correlationId).toEqual(expect.any(String))
    const organization = route.split('/')[1] === 'organizations'
    expect(organizationId).toEqual(organization ? (change[1].split('/')[2] ?? answer.body.id) : undefined)
    expect(organizationRoleId).toEqual(
      event.event === scopesUpdated ? (change[1].split('/')[2] ?? answer.body.id) : undefined,
    )
    if (event.event !== scopesUpdated || answer.body === undefined) expect(data).toEqual(answer.body ?? null)
    holds?.(event)
  }

  await api.call(...nothing)
  expect(await api.events()).toEqual([])
  expect(api.wakes()).toBe(wakes + 1)
})

test('each change is in the audit trail, with who made it and the events it emitted', async () => {
  const { id } = await make.organization()
  const user = await make.user()
  await api.expect(201, 'POST', `/organizations/${id}/users`, { userIds: [user.id] })
  const [log] = await api.expect(200, 'GET', '/logs?logKey=Management.addOrganizationUsers')
  expect(log).toMatchObject({
    key: 'Management.addOrganizationUsers',
    payload: {
      result: 'Success',
      applicationId: 'bootstrap',
      params: { id },
      fields: ['userIds'],
      events: [{ type: membership, entity: { kind: 'organization', id } }],
    },
  })
  await api.events()
})

test('no route that changes something is forgotten', () => {
  const table = new Set(rows.map(({ route }) => route))
  // Machine-to-machine applications are members as users are (`members.test.ts`); who has which role, and which
  // permissions of API resources a role carries, is no event; nor is who will join, but joining.
  const others =
    /^(POST|PUT|DELETE) \/organizations\/:id\/applications(\/:applicationId)?$|\/roles(\/:organizationRoleId)?$|\/resource-scopes|\/jit\//
  const changing = api.routes
    .filter(({ scope, method }) => scope === 'organizations' && method !== 'GET')
    .map(({ method, path }) => `${method} ${path}`)
  expect(changing.filter((route) => !others.test(route)).sort()).toEqual([...table].sort())
})
