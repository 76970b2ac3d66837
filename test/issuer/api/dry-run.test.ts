import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { takesDryRun } from '../../../issuer/api/dry-run.ts'
import { type ManagementTest, startManagement } from '../../support/management.ts'
import { createFixtures, type Fixtures } from './openapi-fixtures.ts'

/** `?dryRun=true`: what a deletion would mean, and nothing of it happens. */

let api: ManagementTest
let fixtures: Fixtures
beforeAll(async () => {
  api = await startManagement()
  fixtures = await createFixtures(api)
})
afterAll(() => api.close())

const idAt = (path: string) => fixtures.ids[path]!

/** Every row of every table, but for the counters that no transaction gives back. */
const everything = async () => {
  const { knex } = api.database
  const tables: { name: string }[] = await knex('information_schema.tables')
    .where({ table_schema: 'public', table_type: 'BASE TABLE' })
    .select({ name: 'table_name' })
  const contents = await Promise.all(
    tables.map(async ({ name }) => [name, await knex.raw(`SELECT to_jsonb(t) AS row FROM ${name} t ORDER BY 1::text`)]),
  )
  return Object.fromEntries(contents.map(([name, { rows }]) => [name, rows]))
}

const deletions: [path: () => string, meaning: object][] = [
  [
    () => `/users/${idAt('/users/{userId}')}`,
    {
      consequences: { sessions: 1, grants: 1, impersonations: 1, personalAccessTokens: 1, roles: 1, organizations: 1 },
      events: { 'Session.Ended': 1, 'User.Deleted': 1, 'Impersonation.Ended': 1 },
      hooks: 1,
    },
  ],
  [
    () => `/roles/${idAt('/roles/{id}')}`,
    { consequences: { users: 1, applications: 0, permissions: 1 }, events: { 'Role.Deleted': 1 }, hooks: 1 },
  ],
  [
    () => `/resources/${idAt('/resources/{id}')}/scopes/${idAt('/resources/{resourceId}/scopes/{scopeId}')}`,
    {
      consequences: { roles: 1, organizationRoles: 1, users: 1, applications: 0 },
      events: { 'Scope.Deleted': 1 },
      hooks: 0,
    },
  ],
  [
    () => `/resources/${idAt('/resources/{id}')}`,
    { consequences: { permissions: 2, roles: 1, users: 1, applications: 0 }, events: {}, hooks: 0 },
  ],
  [
    () => `/applications/${idAt('/applications/{id}')}`,
    {
      consequences: { secrets: 1, grants: 1, users: 1, consents: 0, impersonations: 1, roles: 1, organizations: 1 },
      events: {},
      hooks: 0,
    },
  ],
  [
    () => `/organizations/${idAt('/organizations/{id}')}`,
    { consequences: { users: 1, applications: 1 }, events: { 'Organization.Deleted': 1 }, hooks: 1 },
  ],
  [
    () => `/organization-roles/${idAt('/organization-roles/{id}')}`,
    {
      consequences: { users: 1, applications: 0, organizations: 1 },
      events: { 'OrganizationRole.Deleted': 1 },
      hooks: 0,
    },
  ],
  [
    () => `/organization-scopes/${idAt('/organization-scopes/{id}')}`,
    { consequences: { organizationRoles: 1, users: 1 }, events: { 'OrganizationScope.Deleted': 1 }, hooks: 0 },
  ],
  [
    () => `/connectors/${idAt('/connectors/{id}')}`,
    { consequences: { users: 0, organizations: 0 }, events: {}, hooks: 0 },
  ],
  [
    () => `/sso-connectors/${idAt('/sso-connectors/{id}')}`,
    { consequences: { users: 1, organizations: 1 }, events: {}, hooks: 0 },
  ],
  [() => `/hooks/${idAt('/hooks/{id}')}`, { consequences: { openDeliveries: 0, replays: 1 }, events: {}, hooks: 0 }],
]

test('counts what would end and who would lose something, and changes nothing', async () => {
  const hook = (events: string[], more: object = {}) =>
    api.expect(201, 'POST', '/hooks', { events, config: { url: 'https://192.88.98.1/hook' }, ...more })
  await hook(['User.*'])
  await hook(['User.Deleted'], { enabled: false })
  await hook(['Role.Deleted', 'Role.Created'])
  await hook(['Organization.Deleted'], { organizationIds: [idAt('/organizations/{id}')] })
  await hook(['Organization.Deleted'], { organizationIds: ['another'] })
  const wakes = api.wakes()
  const before = await everything()
  for (const [path, meaning] of deletions) {
    const answer = await api.call('DELETE', `${path()}?dryRun=true`)
    expect([path(), answer.status, answer.body]).toEqual([path(), 200, meaning])
  }
  expect(await everything()).toEqual(before)
  expect(api.wakes()).toBe(wakes)
})

test('is offered for every deletion of a record that takes something along', () => {
  const tried = deletions.map(([path]) => path())
  const offered = api.routes.filter(takesDryRun).map(({ path }) => new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`))
  expect(offered.map((form) => tried.filter((path) => form.test(path)).length)).toEqual(tried.map(() => 1))
})

describe('it is refused as the deletion would be', () => {
  test.each([
    ['/users/none', 404],
    ['/roles/none', 404],
    ['/hooks/none', 404],
    ['/resources/management-api', 400],
  ])('%s: %i', async (path, status) => {
    const real = await api.call('DELETE', path)
    const tried = await api.call('DELETE', `${path}?dryRun=true`)
    expect(tried).toMatchObject({ status, body: real.body })
  })

  test('for whoever may not delete it', async () => {
    const path = `/roles/${idAt('/roles/{id}')}?dryRun=true`
    const read = { token: api.token({ scope: 'read' }) }
    expect((await api.call('DELETE', path, undefined, read)).status).toBe(403)
    expect((await api.call('DELETE', path, undefined, { headers: { 'if-match': '"1000"' } })).status).toBe(412)
  })
})

test('what is no trial is never taken for one, nor the other way round', async () => {
  const { id } = await api.expect(200, 'POST', '/roles', { name: 'Tried', description: 'x' })
  const scope = idAt('/resources/{resourceId}/scopes/{scopeId}')
  await api.expect(201, 'POST', `/roles/${id}/scopes`, { scopeIds: [scope] })
  for (const [method, path, body] of [
    ['DELETE', `/roles/${id}/scopes/${scope}?dryRun=true`],
    ['DELETE', `/roles/${id}?dryRun=`],
    ['DELETE', `/roles/${id}?dryRun=yess`],
    ['DELETE', `/roles/${id}?dryRun=true&dryRun=false`],
    ['PATCH', `/roles/${id}?dryRun=true`, { description: 'changed' }],
    ['POST', '/roles?dryRun=true', { name: 'Another', description: 'x' }],
  ] as const) {
    const answer = await api.call(method, path, body)
    expect([path, answer.status, answer.body.code]).toEqual([path, 400, 'guard.invalid_input'])
  }
  expect(await api.expect(200, 'GET', `/roles/${id}/scopes`)).toHaveLength(1)
  await api.expect(204, 'DELETE', `/roles/${id}?dryRun=false`)
  expect((await api.call('GET', `/roles/${id}`)).status).toBe(404)
})
