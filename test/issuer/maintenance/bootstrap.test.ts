import { afterEach, expect, test } from 'vitest'
import { managementScopes } from '../../../issuer/base/authorization.ts'
import { consoleRoles } from '../../../issuer/base/console-roles.ts'
import { bootstrap } from '../../../issuer/maintenance/bootstrap.ts'
import { sha256 } from '../../../platform/secret.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})
const started = async <One extends { close(): Promise<void> }>(starting: Promise<One>): Promise<One> => {
  const one = await starting
  open.push(one)
  return one
}

const indicators = ['https://issuer.example.test/api', 'https://default.logto.app/api']

const count = async ({ database }: TestDatabase, table: string) =>
  (await database.pool.query(`SELECT count(*) AS count FROM ${table}`)).rows[0].count

test('of instances that start at once, one makes credentials, and everything is there once', async () => {
  const home = await started(createTestDatabase())
  const results = await Promise.all(Array.from({ length: 8 }, () => bootstrap({ database: home.database, indicators })))
  const made = results.filter((result) => result !== undefined)
  expect(made).toEqual([
    { clientId: expect.stringMatching(/^[0-9a-z]{21}$/), clientSecret: expect.stringMatching(/^[0-9A-Za-z]{43}$/) },
  ])
  expect(await count(home, 'resources')).toBe(2)
  expect(await count(home, 'scopes')).toBe(2 * Object.keys(managementScopes).length)
  // With those of the console, and itself.
  expect(await count(home, 'roles')).toBe(1 + Object.keys(consoleRoles).length)
  expect(await count(home, 'applications')).toBe(2)
  const { rows } = await home.database.pool.query('SELECT digest FROM application_secrets')
  expect(rows).toEqual([{ digest: sha256(made[0]!.clientSecret) }])
})

test('a new database has the ids and names that existing clients know', async () => {
  const issuer: TestIssuer = await started(startTestIssuer({ config: { managementApiIndicators: [indicators[1]!] } }))
  const get = async (path: string) => {
    const { status, body } = await issuer.api('GET', path)
    expect([path, status]).toEqual([path, 200])
    return body
  }
  expect(await get('/resources/management-api')).toEqual({
    tenantId: 'default',
    id: 'management-api',
    name: 'Logto Management API',
    indicator: issuer.managementResource,
    isDefault: false,
    accessTokenTtl: 3600,
  })
  const scopes = await get('/resources/management-api/scopes')
  expect(scopes[0]).toEqual({
    tenantId: 'default',
    id: 'management-api-all',
    resourceId: 'management-api',
    name: 'all',
    description: 'Default scope for Management API, allows all permissions.',
    createdAt: expect.any(Number),
  })
  const names = Object.keys(managementScopes)
  expect(scopes.map(({ name }: { name: string }) => name)).toEqual(names)
  const roles = await get('/roles?type=MachineToMachine')
  expect(roles).toMatchObject([{ name: 'Logto Management API access', type: 'MachineToMachine', applicationsCount: 1 }])

  // An alias is a resource of its own.
  const [alias] = (await get('/resources')).filter(({ id }: { id: string }) => id !== 'management-api')
  expect(alias).toMatchObject({ id: expect.stringMatching(/^[0-9a-z]{21}$/), name: 'Logto Management API' })
  const ofAlias = await get(`/resources/${alias.id}/scopes`)
  expect(ofAlias.map(({ name }: { name: string }) => name)).toEqual(names)
  const carried = await get(`/roles/${roles[0].id}/scopes`)
  expect(carried.map(({ id }: { id: string }) => id).toSorted()).toEqual(
    ['management-api-all', ofAlias[0].id].toSorted(),
  )
})

test('a later start changes nothing and tells no credentials', async () => {
  const home = await started(createTestDatabase())
  const tables = [
    'resources',
    'scopes',
    'roles',
    'role_scopes',
    'applications',
    'application_secrets',
    'application_roles',
  ]
  const everything = () =>
    Promise.all(tables.map(async (t) => (await home.database.pool.query(`SELECT * FROM ${t} ORDER BY 1, 2`)).rows))
  await bootstrap({ database: home.database, indicators })
  const before = await everything()
  expect(await bootstrap({ database: home.database, indicators })).toBeUndefined()
  expect(await everything()).toEqual(before)
})

test('the configured application is made, and a changed secret replaces the old one', async () => {
  const home = await started(createTestDatabase())
  const configured = { database: home.database, indicators, clientId: 'operator' }
  expect(await bootstrap({ ...configured, clientSecret: 'first' })).toBeUndefined()
  expect(await bootstrap({ ...configured, clientSecret: 'second' })).toBeUndefined()
  const { rows } = await home.database.pool.query('SELECT application_id, digest FROM application_secrets')
  expect(rows).toEqual([{ application_id: 'operator', digest: sha256('second') }])
})

test('an application of another type with the configured id is left alone', async () => {
  const home = await started(createTestDatabase())
  await home.database.pool.query(
    `INSERT INTO applications (id, name, type) VALUES ('operator', 'A website', 'Traditional')`,
  )
  await expect(bootstrap({ database: home.database, indicators, clientId: 'operator' })).rejects.toThrow(/operator/)
  expect(await count(home, 'resources')).toBe(0)
})

test('the first start gives credentials that work, under every name of the Management API', async () => {
  const alias = 'https://default.logto.app/api'
  const issuer: TestIssuer = await started(
    startTestIssuer({
      config: { bootstrapClientId: undefined, bootstrapClientSecret: undefined, managementApiIndicators: [alias] },
    }),
  )
  const { clientId, clientSecret } = issuer.instances[0]!.bootstrap!
  for (const resource of [issuer.managementResource, alias]) {
    const token = await issuer.clientToken({ id: clientId, secret: clientSecret }, resource, 'all')
    expect((await issuer.api('GET', '/users', undefined, { token })).status).toBe(200)
  }
  expect(issuer.logged()).not.toContain(clientSecret)
})
