import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fittingScopes, managementScopes } from '../../../issuer/base/authorization.ts'
import { type ManagementTest, startManagement } from '../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

/** Some path of the route; nothing has these ids. */
const pathOf = (path: string) => path.replace(/:\w+/g, 'none')

describe('every route', () => {
  test('has an operation id of its own, and a summary', () => {
    const names = api.routes.map(({ operationId }) => operationId)
    expect(new Set(names).size).toBe(names.length)
    const summaries = api.routes.map(({ summary }) => summary)
    expect(summaries.filter((summary) => !/^[A-Z][a-z]/.test(summary))).toEqual([])
  })

  test('is 401 without a token and for a token with another audience', async () => {
    const foreign = api.token({ aud: 'https://api.test/orders' })
    for (const { method, path } of api.routes) {
      const route = `${method} ${path}`
      const without = await api.call(method, pathOf(path), undefined, { token: undefined })
      expect({ route, status: without.status, code: without.body.code }).toEqual({
        route,
        status: 401,
        code: 'auth.authorization_header_missing',
      })
      const withForeign = await api.call(method, pathOf(path), undefined, { token: foreign })
      expect({ route, status: withForeign.status, code: withForeign.body.code }).toEqual({
        route,
        status: 401,
        code: 'auth.unauthorized',
      })
    }
  })

  test('is 403 with every scope but those that fit, and open to each of those', async () => {
    for (const route of api.routes) {
      const fitting = fittingScopes(route)
      const others = Object.keys(managementScopes).filter((scope) => !fitting.includes(scope as 'all'))
      const name = `${route.method} ${route.path}`
      // Names that begin or end like the right ones do not count.
      const scope = [...others, ...fitting.flatMap((one) => [`${one}s`, `${one}:read`, one.toUpperCase()])].join(' ')
      const refused = await api.call(route.method, pathOf(route.path), undefined, { token: api.token({ scope }) })
      expect({ name, status: refused.status, body: refused.body }).toEqual({
        name,
        status: 403,
        body: {
          code: 'auth.forbidden',
          message: expect.any(String),
          details: expect.stringContaining(fitting[0]!),
          data: { scopes: fitting },
        },
      })
      expect(refused.headers.get('www-authenticate')).toContain('error="insufficient_scope"')
      for (const one of fitting) {
        const open = await api.call(route.method, pathOf(route.path), undefined, { token: api.token({ scope: one }) })
        expect([name, one, open.status]).not.toEqual([name, one, 401])
        expect([name, one, open.status]).not.toEqual([name, one, 403])
      }
    }
  })

  test('a holder of read reads everything but secrets, and changes nothing', () => {
    const readable = api.routes.filter((route) => fittingScopes(route).includes('read'))
    expect(readable.filter(({ method }) => method !== 'GET')).toEqual([])
    expect(readable.filter(({ path }) => path.includes('secret'))).toEqual([])
  })
})

describe('nobody climbs', () => {
  let all: string
  let usersScope: string
  let harmless: string
  /** A role and an application that hold `all`, and ones that hold nothing of the Management API. */
  let adminRole: string
  let adminApplication: string
  let plainRole: string
  let plainApplication: string
  const rbac = () => ({ token: api.token({ scope: 'rbac applications read' }) })
  let counter = 0

  beforeEach(async () => {
    counter++
    const resources = await api.expect(200, 'GET', '/resources?includeScopes=true')
    const management = resources.find(({ indicator }: { indicator: string }) => indicator === api.indicator)
    const scopeNamed = (name: string) => management.scopes.find((scope: { name: string }) => scope.name === name).id
    all = scopeNamed('all')
    usersScope = scopeNamed('users')
    const resource = await api.expect(201, 'POST', '/resources', {
      name: 'Orders',
      indicator: `https://${counter}.test`,
    })
    harmless = (await api.expect(201, 'POST', `/resources/${resource.id}/scopes`, { name: 'read:orders' })).id

    const role = (name: string, scopeIds: string[]) =>
      api.expect(200, 'POST', '/roles', {
        name: `${name} ${counter}`,
        description: name,
        type: 'MachineToMachine',
        scopeIds,
      })
    const application = (name: string) => api.expect(200, 'POST', '/applications', { name, type: 'MachineToMachine' })
    adminRole = (await role('admin', [all])).id
    plainRole = (await role('plain', [harmless])).id
    adminApplication = (await application('admin')).id
    plainApplication = (await application('plain')).id
    await api.expect(201, 'POST', `/applications/${adminApplication}/roles`, { roleIds: [adminRole] })
  })

  const attempts: [name: string, call: () => [method: string, path: string, body?: unknown]][] = [
    [
      'a role with a scope it lacks',
      () => ['POST', '/roles', { name: 'x', description: 'x', type: 'MachineToMachine', scopeIds: [all] }],
    ],
    [
      'a scope it lacks onto a role',
      () => ['POST', `/roles/${plainRole}/scopes`, { scopeIds: [harmless, usersScope] }],
    ],
    ['a scope it lacks off a role', () => ['DELETE', `/roles/${adminRole}/scopes/${all}`]],
    ['the name of such a role', () => ['PATCH', `/roles/${adminRole}`, { name: 'mine' }]],
    ['such a role away', () => ['DELETE', `/roles/${adminRole}`]],
    [
      'such a role to an application',
      () => ['POST', `/roles/${adminRole}/applications`, { applicationIds: [plainApplication] }],
    ],
    [
      'an application such a role',
      () => ['POST', `/applications/${plainApplication}/roles`, { roleIds: [plainRole, adminRole] }],
    ],
    [
      'an application such a role instead',
      () => ['PUT', `/applications/${plainApplication}/roles`, { roleIds: [adminRole] }],
    ],
    ['such a role from an application', () => ['DELETE', `/applications/${adminApplication}/roles/${adminRole}`]],
    ['all roles from such an application', () => ['PUT', `/applications/${adminApplication}/roles`, { roleIds: [] }]],
    [
      'another role to such an application',
      () => ['POST', `/roles/${plainRole}/applications`, { applicationIds: [adminApplication] }],
    ],
    ['a secret for such an application', () => ['POST', `/applications/${adminApplication}/secrets`, { name: 'mine' }]],
    [
      'the expiry of its secret',
      () => ['PATCH', `/applications/${adminApplication}/secrets/Default%20secret`, { name: 'x' }],
    ],
    ['its secret away', () => ['DELETE', `/applications/${adminApplication}/secrets/Default%20secret`]],
    ['the data of such an application', () => ['PATCH', `/applications/${adminApplication}`, { name: 'mine' }]],
    ['its custom data', () => ['PATCH', `/applications/${adminApplication}/custom-data`, { a: 1 }]],
    ['such an application away', () => ['DELETE', `/applications/${adminApplication}`]],
  ]

  test.each(attempts)('nor gives, changes or takes %s', async (_name, attempt) => {
    const state = async () => [
      await api.expect(200, 'GET', '/roles'),
      await api.expect(200, 'GET', `/roles/${plainRole}/scopes`),
      await api.expect(200, 'GET', `/roles/${adminRole}/scopes`),
      await api.expect(200, 'GET', '/applications'),
      await api.expect(200, 'GET', `/applications/${adminApplication}/secrets`),
    ]
    const before = await state()
    await api.events()
    const [method, path, body] = attempt()
    const answer = await api.call(method, path, body, rbac())
    expect(answer).toMatchObject({
      status: 403,
      body: { code: 'auth.forbidden', data: { scopes: [expect.stringMatching(/^(all|users)$/)] } },
    })
    expect(await state()).toEqual(before)
    expect(await api.events()).toEqual([])
  })

  test('but does what its scopes cover', async () => {
    const holder = { token: api.token({ scope: 'rbac applications users' }) }
    await api.expect(201, 'POST', `/roles/${plainRole}/scopes`, { scopeIds: [usersScope] }, holder)
    await api.expect(201, 'POST', `/applications/${plainApplication}/roles`, { roleIds: [plainRole] }, holder)
    await api.expect(201, 'POST', `/applications/${plainApplication}/secrets`, { name: 'second' }, holder)
    // Which then is too much for somebody without `users`.
    const lesser = { token: api.token({ scope: 'rbac applications' }) }
    const refused = await api.expect(
      403,
      'POST',
      `/applications/${plainApplication}/secrets`,
      { name: 'third' },
      lesser,
    )
    expect(refused.data).toEqual({ scopes: ['users'] })
  })

  test('nor takes the name of the role that every start gives everything', async () => {
    const { id } = (await api.expect(200, 'GET', '/roles?search.name=%25Management%20API%20access'))[0]
    await api.expect(204, 'DELETE', `/roles/${id}`)
    const forbidden = { status: 403, body: { code: 'auth.forbidden', data: { scopes: ['all'] } } }
    // The second is the name it has in databases of older versions.
    for (const name of ['Logto Management API access', 'Management API access']) {
      const role = { name, description: 'x', type: 'MachineToMachine' }
      expect(await api.call('POST', '/roles', role, rbac())).toMatchObject(forbidden)
      expect(await api.call('PATCH', `/roles/${plainRole}`, { name }, rbac())).toMatchObject(forbidden)
      await api.expect(200, 'POST', '/roles', role)
    }
  })

  test('nor registers an alias of the Management API, nor defines permissions on it', async () => {
    const management = (await api.expect(200, 'GET', '/resources')).find(
      ({ indicator }: { indicator: string }) => indicator === api.indicator,
    )
    await api.database.knex('resources').where({ indicator: 'https://default.logto.app/api' }).delete()
    const alias = { name: 'Alias', indicator: 'https://default.logto.app/api' }
    expect(await api.call('POST', '/resources', alias)).toMatchObject({
      status: 422,
      body: { code: 'resource.resource_identifier_in_use' },
    })
    for (const [method, path, body] of [
      ['POST', `/resources/${management.id}/scopes`, { name: 'more' }],
      ['PATCH', `/resources/${management.id}/scopes/${all}`, { name: 'more' }],
      ['DELETE', `/resources/${management.id}/scopes/${all}`],
      ['PATCH', `/resources/${management.id}`, { name: 'Mine' }],
      ['PATCH', `/resources/${management.id}/is-default`, { isDefault: true }],
    ] as const) {
      expect(await api.call(method, path, body)).toMatchObject({
        status: 400,
        body: { code: 'resource.cannot_modify_management_api' },
      })
    }
    expect(await api.call('DELETE', `/resources/${management.id}`)).toMatchObject({
      status: 400,
      body: { code: 'resource.cannot_delete_management_api' },
    })
  })

  test('a user role never carries a management scope', async () => {
    const role = { name: 'Support', description: 'x', type: 'User', scopeIds: [all] }
    const code = 'role.management_api_scopes_not_assignable_to_user_role'
    expect(await api.call('POST', '/roles', role)).toMatchObject({ status: 400, body: { code } })
    const { id } = await api.expect(200, 'POST', '/roles', { ...role, scopeIds: [] })
    expect(await api.call('POST', `/roles/${id}/scopes`, { scopeIds: [all] })).toMatchObject({
      status: 400,
      body: { code },
    })
    await api.expect(204, 'DELETE', `/roles/${id}`)
  })
})
