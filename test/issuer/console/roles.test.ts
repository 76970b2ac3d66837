import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { consoleClientId, consoleRoles } from '../../../issuer/base/console-roles.ts'
import { textOf, visitAccount } from '../../support/account-pages.ts'
import { startTestConsole, type TestConsole } from '../../support/console.ts'

let home: TestConsole

beforeAll(async () => {
  home = await startTestConsole({ instances: 2 })
})

afterAll(() => home.close())

const owner = consoleRoles.owner.id

test('every database has the five roles, with their permissions on every name of the Management API', async () => {
  const own = await startTestConsole({ config: { managementApiIndicators: ['https://alias.test/api'] } })
  onTestFinished(own.close)
  const carried = await own.issuer.sql<{ id: string; scopes: string[]; resources: number }>(
    `SELECT r.id, array_agg(DISTINCT s.name::text ORDER BY s.name::text) AS scopes,
       count(DISTINCT s.resource_id)::int AS resources
     FROM roles r JOIN role_scopes rs ON rs.role_id = r.id JOIN scopes s ON s.id = rs.scope_id
     WHERE r.type = 'User' GROUP BY r.id ORDER BY r.id`,
  )
  expect(carried).toEqual(
    Object.values(consoleRoles)
      .map(({ id, scopes }) => ({ id, scopes: scopes.toSorted(), resources: 2 }))
      .toSorted((one, other) => (one.id < other.id ? -1 : 1)),
  )
})

test('a role of the console can be renamed, but not to nothing; else it stays as it is', async () => {
  const { api } = home.issuer
  const [scope] = await home.issuer.sql<{ id: string }>(`SELECT id FROM scopes WHERE name = 'keys' LIMIT 1`)
  const [carried] = await home.issuer.sql<{ id: string }>(
    `SELECT scope_id AS id FROM role_scopes WHERE role_id = 'console-auditor' LIMIT 1`,
  )
  const fixed = { status: 422, body: { code: 'role.console_role_not_changeable' } }
  expect(await api('PATCH', `/roles/console-auditor`, { name: 'Reader' })).toMatchObject({ status: 200 })
  expect(await api('PATCH', `/roles/console-auditor`, { name: '' })).toMatchObject({ status: 400 })
  expect(await api('DELETE', `/roles/console-auditor`)).toMatchObject(fixed)
  expect(await api('POST', `/roles/console-auditor/scopes`, { scopeIds: [scope!.id] })).toMatchObject(fixed)
  expect(await api('DELETE', `/roles/console-auditor/scopes/${carried!.id}`)).toMatchObject(fixed)
  // Everybody who registers would be one.
  expect(await api('PATCH', `/roles/console-owner`, { isDefault: true })).toMatchObject(fixed)

  const made = await api('POST', '/roles', { name: 'Of mine', description: 'x', type: 'User' })
  expect(await api('POST', `/roles/${made.body.id}/scopes`, { scopeIds: [scope!.id] })).toMatchObject({
    status: 400,
    body: { code: 'role.management_api_scopes_not_assignable_to_user_role' },
  })
})

test('the application of the console cannot be changed, and is given no secret', async () => {
  const { api } = home.issuer
  const fixed = { status: 422, body: { code: 'application.console_not_changeable' } }
  const path = `/applications/${consoleClientId}`
  expect(await api('PATCH', path, { oidcClientMetadata: { redirectUris: ['https://evil.example/'] } })).toMatchObject(
    fixed,
  )
  expect(await api('POST', `${path}/secrets`, { name: 'mine' })).toMatchObject(fixed)
  expect(await api('PATCH', `${path}/custom-data`, { any: 1 })).toMatchObject(fixed)
  expect(await api('DELETE', path)).toMatchObject(fixed)
  expect(
    await home.issuer.sql('SELECT * FROM application_secrets WHERE application_id = $1', [consoleClientId]),
  ).toEqual([])
})

test('nobody gives or takes what they do not hold themselves', async () => {
  const [operator, target] = [await home.createMember('operator'), await home.flow.createPerson()]
  const boss = await home.createMember('owner')
  const browser = await home.browserOf(operator)
  const give = (roleId: string) => home.call(browser, 'POST', `/api/users/${target.id}/roles`, { roleIds: [roleId] })
  expect((await give(consoleRoles.integrator.id)).status).toBe(201)
  for (const role of [consoleRoles.owner, consoleRoles.support])
    expect(await give(role.id)).toMatchObject({ status: 403, body: { code: 'auth.forbidden' } })
  for (const [method, path, body] of [
    ['DELETE', `/roles`, undefined],
    ['PUT', `/roles`, { roleIds: [] }],
    // Whoever could do this would be an owner a minute later.
    ['PATCH', `/password`, { password: 'taken over 1234' }],
    ['PATCH', '', { primaryEmail: 'mine@evil.example' }],
    ['POST', '/personal-access-tokens', { name: 'mine' }],
    ['PATCH', '/is-suspended', { isSuspended: true }],
    ['DELETE', '', undefined],
  ] as const) {
    const full = `/api/users/${boss.id}${path}${method === 'DELETE' && path ? `/${owner}` : ''}`
    expect([method, path, await home.call(browser, method, full, body)]).toMatchObject([
      method,
      path,
      { status: 403, body: { code: 'auth.forbidden' } },
    ])
  }
  // Somebody with no more than they have themselves is another matter.
  const colleague = await home.createMember('auditor')
  const renamed = await home.call(browser, 'PATCH', `/api/users/${colleague.id}`, { name: 'Renamed' })
  expect(renamed.status).toBe(200)
})

test('mail to an owner is not to be read by way of a one-time token', async () => {
  const boss = await home.createMember('owner')
  await home.issuer.sql('UPDATE users SET primary_email = $2 WHERE id = $1', [boss.id, `${boss.id}@owner.test`])
  const browser = await home.browserOf(await home.createMember('operator'))
  const token = await home.call(browser, 'POST', '/api/one-time-tokens', { email: `${boss.id}@owner.test` })
  expect(token).toMatchObject({ status: 403, body: { code: 'auth.forbidden' } })
})

/** An issuer in which these are the owners. */
const withOwners = async (count: number) => {
  const own = await startTestConsole({ instances: 2 })
  onTestFinished(own.close)
  const owners = []
  for (let made = 0; made < count; made++) owners.push(await own.createMember('owner'))
  return { own, owners }
}

const lastOwner = { status: 422, body: { code: 'console.last_owner' } }

test('the last owner can be neither removed, suspended nor deleted', async () => {
  const { own, owners } = await withOwners(2)
  const { api } = own.issuer
  const [first, last] = owners
  expect((await api('DELETE', `/users/${first!.id}/roles/${owner}`)).status).toBe(204)
  expect(await api('DELETE', `/users/${last!.id}/roles/${owner}`)).toMatchObject(lastOwner)
  expect(await api('DELETE', `/roles/${owner}/users/${last!.id}`)).toMatchObject(lastOwner)
  expect(await api('PUT', `/users/${last!.id}/roles`, { roleIds: [] })).toMatchObject(lastOwner)
  expect(await api('PATCH', `/users/${last!.id}/is-suspended`, { isSuspended: true })).toMatchObject(lastOwner)
  expect(await api('DELETE', `/users/${last!.id}`)).toMatchObject(lastOwner)
  // Who cannot sign in does not count.
  await own.giveRole(first!.id, 'owner')
  await api('PATCH', `/users/${first!.id}/is-suspended`, { isSuspended: true })
  expect(await api('DELETE', `/users/${last!.id}`)).toMatchObject(lastOwner)
  await api('PATCH', `/users/${first!.id}/is-suspended`, { isSuspended: false })
  expect((await api('DELETE', `/users/${last!.id}`)).status).toBe(204)
})

test('of two owners who are removed, suspended or deleted at once, on two instances, one stays', async () => {
  for (const [method, path, body] of [
    ['DELETE', `/roles/${owner}`, undefined],
    ['PATCH', '/is-suspended', { isSuspended: true }],
    ['DELETE', '', undefined],
  ] as const) {
    const { own, owners } = await withOwners(2)
    const answers = await Promise.all(
      owners.map(({ id }, instance) => own.issuer.api(method, `/users/${id}${path}`, body, { instance })),
    )
    const statuses = answers.map(({ status }) => status).toSorted()
    expect([path, statuses[0]! < 300, statuses[1]]).toEqual([path, true, 422])
    const left = await own.issuer.sql(
      `SELECT user_id FROM user_roles JOIN users ON users.id = user_id AND NOT is_suspended WHERE role_id = $1`,
      [owner],
    )
    expect(left).toHaveLength(1)
  }
})

test('the last owner cannot delete the own account either, and the page says why', async () => {
  const { own, owners } = await withOwners(1)
  const person = owners[0]!
  await own.issuer.api('PATCH', '/account-center', { fields: { deletion: 'Edit' } })
  const visitor = visitAccount(own.issuer, person)
  await visitor.confirm()
  const remove = async () =>
    visitor.browser.submit(await visitor.open('/account/data'), { sure: 'yes', choice: 'delete' }, { with: 'sure' })
  const refused = await remove()
  expect([refused.status, textOf(refused)]).toEqual([400, expect.stringContaining('You are the last owner')])
  await own.createMember('owner')
  expect((await remove()).text).toContain('Your account is deleted')
})
