import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bootstrap } from '../../../issuer/maintenance/bootstrap.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/**
 * Whoever may define API resources must not come to define the Management API: not by registering today what will be
 * its address tomorrow, nor by changing what was its address yesterday.
 */
describe('a holder of rbac', () => {
  const alias = 'https://login.example.test/api'
  let issuer: TestIssuer
  let accomplice: TestApplication
  let token: string

  beforeAll(async () => {
    issuer = await startTestIssuer()
    const holder = await issuer.createMachine(issuer.managementResource, ['rbac'])
    token = await issuer.clientToken(holder, issuer.managementResource, 'rbac')
    accomplice = await issuer.createApplication({ type: 'MachineToMachine' })
  })
  afterAll(() => issuer.close())

  const call = (method: string, path: string, body?: unknown) => issuer.api(method, path, body, { token })

  /** What a start with these indicators does first. */
  const restart = (indicators: readonly string[]) =>
    bootstrap({
      database: issuer.database,
      indicators,
      clientId: issuer.bootstrap.id,
      clientSecret: issuer.bootstrap.secret,
    })

  const scopeOf = async (indicator: string, name: string): Promise<{ id: string; resourceId: string }> => {
    const [scope] = await issuer.sql<{ id: string; resourceId: string }>(
      `SELECT s.id, r.id AS "resourceId" FROM scopes s JOIN resources r ON r.id = s.resource_id
       WHERE r.indicator = $1 AND s.name = $2`,
      [indicator, name],
    )
    return scope!
  }

  test('who registered a future alias of the Management API does not hold it when it becomes one', async () => {
    const resource = await call('POST', '/resources', { name: 'Mine', indicator: alias })
    expect(resource.status).toBe(201)
    const scope = await call('POST', `/resources/${resource.body.id}/scopes`, { name: 'all' })
    const role = await call('POST', '/roles', {
      name: 'Mine',
      description: 'Mine',
      type: 'MachineToMachine',
      scopeIds: [scope.body.id],
    })
    await call('POST', `/roles/${role.body.id}/applications`, { applicationIds: [accomplice.id] })

    await expect(restart([issuer.managementResource, alias])).rejects.toThrow(/https:\/\/login\.example\.test\/api/)

    // Once it is gone the start makes its own.
    expect((await issuer.api('DELETE', `/resources/${resource.body.id}`)).status).toBe(204)
    await restart([issuer.managementResource, alias])
    const asked = await issuer.token(accomplice, { grant_type: 'client_credentials', resource: alias, scope: 'all' })
    expect(asked.body).toMatchObject({ scope: '' })
  })

  test('gets nothing from an alias that is not configured at present', async () => {
    await restart([issuer.managementResource, alias])
    const { id, resourceId } = await scopeOf(alias, 'all')
    // This issuer was started without the alias.
    const role = { name: 'Retired', description: 'x', type: 'MachineToMachine', scopeIds: [id] }
    expect(await call('POST', '/roles', role)).toMatchObject({ status: 403, body: { data: { scopes: ['all'] } } })
    expect(await call('POST', '/roles', { ...role, type: 'User' })).toMatchObject({ status: 403 })
    const unchangeable = { status: 400, body: { code: 'resource.cannot_modify_management_api' } }
    expect(await call('PATCH', `/resources/${resourceId}`, { name: 'Mine' })).toMatchObject(unchangeable)
    expect(await call('POST', `/resources/${resourceId}/scopes`, { name: 'more' })).toMatchObject(unchangeable)
    expect(await call('PATCH', `/resources/${resourceId}/is-default`, { isDefault: true })).toMatchObject(unchangeable)
  })

  test('and no user role becomes the role that every start gives everything', async () => {
    await issuer.sql(`UPDATE roles SET name = 'Something else' WHERE name = 'Logto Management API access'`)
    await issuer.sql(
      `INSERT INTO roles (id, name, description, type) VALUES ('user-role', 'Logto Management API access', 'x', 'User')`,
    )
    await expect(restart([issuer.managementResource])).rejects.toThrow(/Management API access/)
  })
})
