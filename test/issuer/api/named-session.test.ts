import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** `Surrogate-Session`: what an API changes because of an impersonation is found by that impersonation. */

let issuer: TestIssuer
let app: TestApplication
/** The API behind the gateway, and another one: both may change users. */
let api: { application: TestApplication; token: string }
let stranger: { application: TestApplication; token: string }
let resource: string
let customer: { id: string }

beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  resource = await issuer.createResource({ scopes: ['write:orders'] })
  app = await issuer.createApplication()
  customer = await issuer.createUser()
  await issuer.grantUser(customer.id, resource, ['write:orders'])
  const management = `${issuer.baseUrl}/api`
  const manager = async (own: string) => {
    const application = await issuer.createMachine(own, ['write:orders'])
    await issuer.grantApplication(application, management, ['users'])
    return { application, token: await issuer.clientToken(application, management, 'users') }
  }
  api = await manager(resource)
  stranger = await manager(await issuer.createResource({ scopes: ['write:orders'] }))
})
afterAll(() => issuer.close())

const impersonate = async (): Promise<string> => {
  const answer = await issuer.exchange(app, await issuer.subjectToken(customer.id), { resource, scope: 'write:orders' })
  expect(answer.status).toBe(200)
  return String(decodeJwt(answer.body.access_token)['sid'])
}
const change = (sid: string, { token } = api, name = 'Changed by support', instance = 0) =>
  issuer.api('PATCH', `/users/${customer.id}`, { name }, { token, headers: { 'surrogate-session': sid }, instance })
const trailOf = async (sid: string) => (await issuer.api('GET', `/logs?sessionId=${sid}`)).body
const eventsOf = async () => (await issuer.api('GET', `/events?entity=user:${customer.id}&limit=1000`)).body.events
const refused = { status: 403, body: { code: 'auth.session_not_allowed' } }

test('a change says in which session it was made, in its audit row and in its event', async () => {
  const sid = await impersonate()
  expect((await change(sid, api, 'First')).status).toBe(200)
  expect((await change(sid, api, 'Second', 1)).status).toBe(200)
  const rows = await trailOf(sid)
  expect(rows).toHaveLength(2)
  for (const { key, payload } of rows) {
    expect(key).toBe('Management.updateUser')
    expect(payload).toMatchObject({ sessionId: sid, applicationId: api.application.id, userId: customer.id })
  }
  const events = await eventsOf()
  expect(events.slice(-2)).toMatchObject([
    { event: 'User.Data.Updated', sid, data: { name: 'First' } },
    { event: 'User.Data.Updated', sid, data: { name: 'Second' } },
  ])
})

test('a call without the header says nothing of a session', async () => {
  const before = (await eventsOf()).length
  const { status } = await issuer.api('PATCH', `/users/${customer.id}`, { name: 'Plain' }, { token: api.token })
  expect(status).toBe(200)
  const [event] = (await eventsOf()).slice(before)
  expect(event).not.toHaveProperty('sid')
  const [row] = (await issuer.api('GET', `/logs?applicationId=${api.application.id}&page_size=1`)).body
  expect(row.payload).not.toHaveProperty('sessionId')
})

test('only a client with a permission on the resource of the session may name it, and nothing happens otherwise', async () => {
  const sid = await impersonate()
  const events = await eventsOf()
  expect(await change(sid, stranger)).toMatchObject(refused)
  expect(await change('unknown')).toMatchObject(refused)
  expect(await change('ps_unknown')).toMatchObject(refused)
  expect(await trailOf(sid)).toEqual([])
  expect(await eventsOf()).toEqual(events)
  for (const malformed of ['a b', 'x'.repeat(22), '', 'a,b'])
    expect(await change(malformed)).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })

  // At once, with the tokens it has: the permission is looked up, not read from the token.
  await issuer.grantApplication(stranger.application, resource, ['write:orders'])
  expect((await change(sid, stranger)).status).toBe(200)
})

test('a session that has ended, or is over, can no longer be named', async () => {
  const [ended, over] = [await impersonate(), await impersonate()]
  expect((await issuer.api('POST', `/impersonations/${ended}/end`)).status).toBe(204)
  expect(await change(ended)).toMatchObject(refused)
  await issuer.sql(`UPDATE impersonation_sessions SET expires_at = now() - interval '10 minutes' WHERE id = $1`, [over])
  expect(await change(over)).toMatchObject(refused)
})

test('an organization role carries the permission too', async () => {
  const sid = await impersonate()
  const management = `${issuer.baseUrl}/api`
  const application = await issuer.createApplication({ type: 'MachineToMachine' })
  await issuer.grantApplication(application, management, ['users'])
  const token = await issuer.clientToken(application, management, 'users')
  expect(await change(sid, { application, token })).toMatchObject(refused)

  const [scope] = await issuer.sql<{ id: string }>(
    'SELECT scopes.id FROM scopes JOIN resources ON resources.id = resource_id WHERE indicator = $1',
    [resource],
  )
  const make = async (path: string, body: object) => (await issuer.api('POST', path, body)).body.id
  const organization = await make('/organizations', { name: 'Acme' })
  const role = await make('/organization-roles', {
    ...{ name: 'API', type: 'MachineToMachine', resourceScopeIds: [scope!.id] },
  })
  await issuer.api('POST', `/organizations/${organization}/applications`, { applicationIds: [application.id] })
  await issuer.api('POST', `/organizations/${organization}/applications/${application.id}/roles`, {
    organizationRoleIds: [role],
  })
  expect((await change(sid, { application, token })).status).toBe(200)
})
