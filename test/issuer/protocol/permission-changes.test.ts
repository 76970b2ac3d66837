import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/**
 * What changes through the Management API shows in the very next token, on every instance: nothing about permissions is
 * kept in memory.
 */

let issuer: TestIssuer
let resource: { id: string; indicator: string }
let web: TestApplication
let machine: TestApplication
let user: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  resource = await made('/resources', { name: 'Orders', indicator: 'https://orders.example.test' }, 201)
  web = await issuer.createApplication()
  machine = await made('/applications', { name: 'Machine', type: 'MachineToMachine' })
  user = await made('/users', { username: 'ada' })
})
afterAll(() => issuer.close())

const made = async (path: string, body: object, status = 200) => {
  const answer = await issuer.api('POST', path, body)
  expect(answer).toMatchObject({ status })
  return answer.body
}
const change = async (method: string, path: string, body?: object) => {
  const { status, body: answer } = await issuer.api(method, path, body)
  expect({ status, answer }).toMatchObject({ status: expect.toSatisfy((code: number) => code < 300) })
}
const newScope = (name: string): Promise<{ id: string }> => made(`/resources/${resource.id}/scopes`, { name }, 201)

/**
 * What the user's exchange and the machine's own request are granted, asked of the instance that did not make the
 * change.
 */
const grantedTo = {
  user: async (scope: string) => {
    const subjectToken = await issuer.subjectToken(user.id)
    return issuer.exchange(web, subjectToken, { resource: resource.indicator, scope }, { instance: 1 })
  },
  machine: (scope: string) =>
    issuer.token(machine, { grant_type: 'client_credentials', resource: resource.indicator, scope }, { instance: 1 }),
}

test.each([
  ['user', 'User', () => `/users/${user.id}/roles`],
  ['machine', 'MachineToMachine', () => `/applications/${machine.id}/roles`],
] as const)('of a %s', async (holder, type, roles) => {
  const ask = grantedTo[holder]
  const [first, second] = [await newScope(`${holder}:first`), await newScope(`${holder}:second`)]
  const both = `${holder}:first ${holder}:second`
  expect(await ask(both)).toMatchObject({ status: 200, body: { scope: '' } })

  const role = await made('/roles', { name: `${holder}s`, description: 'x', type, scopeIds: [first.id] })
  await change('POST', roles(), { roleIds: [role.id] })
  expect(await ask(both)).toMatchObject({ status: 200, body: { scope: `${holder}:first` } })

  await change('POST', `/roles/${role.id}/scopes`, { scopeIds: [second.id] })
  expect(await ask(both)).toMatchObject({ status: 200, body: { scope: both } })

  await change('DELETE', `/roles/${role.id}/scopes/${first.id}`)
  expect(await ask(both)).toMatchObject({ status: 200, body: { scope: `${holder}:second` } })

  await change('PATCH', `/resources/${resource.id}/scopes/${second.id}`, { name: `${holder}:renamed` })
  const old = await ask(both)
  expect(old).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
  expect(old.body.error_description).toContain(`There is no scope ${holder}:second`)
  expect(await ask(`${holder}:renamed`)).toMatchObject({ status: 200, body: { scope: `${holder}:renamed` } })

  await change('DELETE', `${roles()}/${role.id}`)
  expect(await ask(`${holder}:renamed`)).toMatchObject({ status: 200, body: { scope: '' } })

  await change('POST', roles(), { roleIds: [role.id] })
  await change('DELETE', `/roles/${role.id}`)
  expect(await ask(`${holder}:renamed`)).toMatchObject({ status: 200, body: { scope: '' } })

  await change('DELETE', `/resources/${resource.id}/scopes/${second.id}`)
  expect(await ask(`${holder}:renamed`)).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
})

test('the default resource and the life of its tokens hold for every grant from the next token on', async () => {
  const withoutResource = {
    user: async () => issuer.exchange(web, await issuer.subjectToken(user.id), {}, { instance: 1 }),
    machine: () => issuer.token(machine, { grant_type: 'client_credentials' }, { instance: 1 }),
  }
  expect(await withoutResource.machine()).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  await change('PATCH', `/resources/${resource.id}/is-default`, { isDefault: true })
  await change('PATCH', `/resources/${resource.id}`, { accessTokenTtl: 120 })
  for (const ask of Object.values(withoutResource)) {
    const answer = await ask()
    expect(answer).toMatchObject({ status: 200, body: { expires_in: 120 } })
    await issuer.verify(answer.body.access_token, resource.indicator)
  }
  await change('PATCH', `/resources/${resource.id}/is-default`, { isDefault: false })
  expect(await withoutResource.machine()).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
})

test('a resource that is deleted is unknown from the next request on', async () => {
  const { id, indicator } = await made('/resources', { name: 'Gone', indicator: 'https://gone.example.test' }, 201)
  const ask = () => issuer.token(machine, { grant_type: 'client_credentials', resource: indicator }, { instance: 1 })
  expect((await ask()).status).toBe(200)
  await change('DELETE', `/resources/${id}`)
  expect(await ask()).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
})
