import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'
import { recordsOf } from './records.ts'

let api: ManagementTest
const make = recordsOf(() => api)
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const refusalOf = async (method: string, path: string, body?: unknown) => {
  const answer = await api.call(method, path, body)
  return [answer.status, answer.body?.code]
}

test('domains whose people join are kept in lower case, each once', async () => {
  const { id } = await make.organization()
  await api.events()
  const path = `/organizations/${id}/jit/email-domains`
  const row = (emailDomain: string) => ({ tenantId: 'default', organizationId: id, emailDomain })
  expect(await api.expect(201, 'POST', path, { emailDomain: 'Example.TEST' })).toEqual(row('example.test'))
  expect(await refusalOf('POST', path, { emailDomain: 'example.test' })).toEqual([
    422,
    'entity.unique_integrity_violation',
  ])
  for (const emailDomain of ['', 'example', '@example.test', 'a b.test', '.test', 'a'.repeat(129)]) {
    expect(await refusalOf('POST', path, { emailDomain })).toEqual([400, 'guard.invalid_input'])
  }
  expect(await api.expect(200, 'GET', path)).toEqual([row('example.test')])
  await api.expect(204, 'PUT', path, { emailDomains: ['one.test', 'example.test', 'One.test'] })
  expect(await api.expect(200, 'GET', path)).toEqual([row('example.test'), row('one.test')])
  const page = await api.call('GET', `${path}?page=2&page_size=1`)
  expect([page.body, page.headers.get('total-number')]).toEqual([[row('one.test')], '2'])
  await api.expect(204, 'DELETE', `${path}/EXAMPLE.test`)
  expect(await refusalOf('DELETE', `${path}/example.test`)).toEqual([404, 'entity.not_found'])
  await api.expect(204, 'PUT', path, { emailDomains: [] })
  expect(await api.expect(200, 'GET', path)).toEqual([])
  expect(await api.events()).toEqual([])
})

test('roles of those who join are roles of users, and those that exist', async () => {
  const { id } = await make.organization()
  const path = `/organizations/${id}/jit/roles`
  const [first, second] = [await make.role(), await make.role()]
  const machines = await make.role({ type: 'MachineToMachine' })
  await api.expect(201, 'POST', path, { organizationRoleIds: [first.id] })
  await api.expect(201, 'POST', path, { organizationRoleIds: [first.id, second.id] })
  expect(await api.expect(200, 'GET', path)).toEqual([first, second])
  expect(await refusalOf('POST', path, { organizationRoleIds: [machines.id] })).toEqual([
    422,
    'entity.db_constraint_violated',
  ])
  expect(await refusalOf('PUT', path, { organizationRoleIds: ['unknown'] })).toEqual([
    422,
    'entity.relation_foreign_key_not_found',
  ])
  await api.expect(204, 'PUT', path, { organizationRoleIds: [second.id] })
  expect(await api.expect(200, 'GET', path)).toEqual([second])
  await api.expect(204, 'DELETE', `${path}/${second.id}`)
  expect(await refusalOf('DELETE', `${path}/${second.id}`)).toEqual([404, 'entity.not_found'])
})

test('enterprise connectors are kept as long as they are there', async () => {
  const { id } = await make.organization()
  const path = `/organizations/${id}/jit/sso-connectors`
  const connector = async (connectorName: string): Promise<string> => {
    const domains = [`${connectorName}.example`]
    return (await api.expect(200, 'POST', '/sso-connectors', { providerName: 'OIDC', connectorName, domains })).id
  }
  const [one, two, three] = [await connector('one'), await connector('two'), await connector('three')]
  await api.expect(201, 'POST', path, { ssoConnectorIds: [one, two] })
  await api.expect(204, 'PUT', path, { ssoConnectorIds: [two, three] })
  const kept = async () => (await api.expect(200, 'GET', path)).map((row: { id: string }) => row.id)
  expect(await kept()).toEqual([two, three])
  const [shown] = await api.expect(200, 'GET', path)
  const { name: _name, providerType: _type, ...connectorTwo } = await api.expect(200, 'GET', `/sso-connectors/${two}`)
  expect(connectorTwo).toMatchObject({ connectorName: 'two', domains: ['two.example'] })
  expect(shown).toEqual({ ...connectorTwo, config: {} })
  await api.expect(204, 'DELETE', `${path}/${two}`)
  expect(await refusalOf('DELETE', `${path}/${two}`)).toEqual([404, 'entity.not_found'])
  await api.expect(204, 'DELETE', `/sso-connectors/${three}`)
  expect(await kept()).toEqual([])
  const config = { clientId: 'a', clientSecret: 'b' }
  const social = await api.expect(200, 'POST', '/connectors', { connectorId: 'github-universal', config })
  for (const other of ['no connector', social.id])
    expect(await refusalOf('POST', path, { ssoConnectorIds: [other] })).toEqual([
      422,
      'entity.relation_foreign_key_not_found',
    ])
})

test('an organization that there is not has none of these', async () => {
  for (const [name, body] of [
    ['email-domains', { emailDomain: 'example.test' }],
    ['roles', { organizationRoleIds: [] }],
    ['sso-connectors', { ssoConnectorIds: ['one'] }],
  ] as const) {
    const path = `/organizations/unknown/jit/${name}`
    expect(await refusalOf('GET', path)).toEqual([404, 'entity.not_exists_with_id'])
    expect(await refusalOf('POST', path, body)).toEqual([422, 'entity.relation_foreign_key_not_found'])
  }
})
