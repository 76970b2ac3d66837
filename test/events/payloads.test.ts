import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventTypes } from '../../events/catalogue.ts'
import { startTestIssuer, type TestIssuer } from '../support/issuer.ts'

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer()
})
afterAll(() => issuer.close())

const call = async (method: string, path: string, body?: unknown) => {
  const answer = await issuer.api(method, path, body)
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body
}

/** Every mutation of the Management API and the impersonation flow, each at least once. */
const changeEverything = async () => {
  const user = await call('POST', '/users', { username: 'ada', password: 'correct horse battery' })
  await call('PATCH', `/users/${user.id}`, { name: 'Ada' })
  await call('PATCH', `/users/${user.id}/custom-data`, { customData: { plan: 'gold' } })
  await call('PATCH', `/users/${user.id}/profile`, { profile: { nickname: 'A' } })
  await call('PATCH', `/users/${user.id}/password`, { password: 'another horse battery' })
  await call('PATCH', `/users/${user.id}/is-suspended`, { isSuspended: true })
  const resource = await call('POST', '/resources', { name: 'Orders', indicator: 'https://api.test/orders' })
  const scope = await call('POST', `/resources/${resource.id}/scopes`, { name: 'read:orders' })
  const other = await call('POST', `/resources/${resource.id}/scopes`, { name: 'write:orders', description: 'x' })
  await call('PATCH', `/resources/${resource.id}/scopes/${scope.id}`, { description: 'Read orders' })
  const role = await call('POST', '/roles', { name: 'Reader', description: 'Reads', scopeIds: [scope.id] })
  await call('PATCH', `/roles/${role.id}`, { description: 'Reads orders' })
  await call('POST', `/roles/${role.id}/scopes`, { scopeIds: [other.id] })
  await call('DELETE', `/roles/${role.id}/scopes/${other.id}`)

  const { id: customer } = await issuer.createUser()
  const client = await issuer.createApplication({ allowTokenExchange: true })
  const exchanged = await issuer.exchange(client, await issuer.subjectToken(customer), {
    resource: 'https://api.test/orders',
    scope: '',
  })
  expect(exchanged.status).toBe(200)
  const [session] = await call('GET', '/impersonations')
  await call('POST', `/impersonations/${session.id}/end`)

  await call('DELETE', `/roles/${role.id}`)
  await call('DELETE', `/resources/${resource.id}/scopes/${scope.id}`)
  await call('DELETE', `/users/${user.id}`)
}

test('what the issuer records is what the catalogue says of it', async () => {
  await changeEverything()
  const rows = await issuer.sql<{ type: string; payload: Buffer; entity_id: string }>(
    'SELECT type, payload, entity_id FROM outbox ORDER BY seq',
  )
  const seen = new Set<string>()
  for (const { type, payload, entity_id: entityId } of rows) {
    const { data, event, ...rest } = JSON.parse(payload.toString())
    expect(event).toBe(type)
    expect(eventTypes.get(type)!.data.safeParse(data), `${type} ${JSON.stringify(data)}`).toMatchObject({
      success: true,
    })
    expect(JSON.stringify({ data, ...rest })).not.toMatch(/horse|password(Digest|Algorithm)|sub_[\w-]{20}/)
    expect(rest).toMatchObject({ version: expect.any(Number), apiVersion: '1', ip: expect.any(String) })
    expect(entityId).not.toBe('')
    seen.add(type)
  }
  expect([...seen].toSorted()).toEqual([
    'Impersonation.Ended',
    'Impersonation.Started',
    'Role.Created',
    'Role.Data.Updated',
    'Role.Deleted',
    'Role.Scopes.Updated',
    'Scope.Created',
    'Scope.Data.Updated',
    'Scope.Deleted',
    'User.Created',
    'User.Data.Updated',
    'User.Deleted',
    'User.SuspensionStatus.Updated',
  ])
})
