import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

let issuer: TestIssuer
let orders: string
let stock: string
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  orders = await issuer.createResource({
    indicator: 'https://api.example.test/Orders',
    scopes: ['read:orders', 'write:orders', 'shared'],
    ttl: 60,
  })
  stock = await issuer.createResource({ scopes: ['shared', 'read:stock'] })
  client = await issuer.createMachine(orders, ['read:orders', 'shared'])
})
afterAll(() => issuer.close())

const ask = (form: { resource?: string | string[]; scope?: string }) =>
  issuer.token(client, { grant_type: 'client_credentials', ...form })

describe('a scope name that is not defined exactly so is invalid_scope, and is named:', () => {
  test.each(['read', 'READ:ORDERS', 'read:order', 'read:orders2', '*', 'read:*', 'read:stock'])('%s', async (scope) => {
    const answer = await ask({ resource: orders, scope: `read:orders ${scope}` })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
    expect(answer.body.error_description).toContain(`There is no scope ${scope} on the resource ${orders}`)
  })
})

describe('a scope with characters that RFC 6749 does not allow is invalid_scope:', () => {
  test.each(['read"orders', 'read\\orders', 'read\torders', 'read:örders', 'a\u0007'])('%j', async (scope) => {
    expect(await ask({ resource: orders, scope })).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
  })
})

test('a scope that exists but is not held is left out, and the answer tells', async () => {
  const answer = await ask({ resource: orders, scope: 'write:orders read:orders' })
  expect(answer).toMatchObject({ status: 200, body: { scope: 'read:orders', expires_in: 60 } })
  expect((await issuer.verify(answer.body.access_token, orders)).scope).toBe('read:orders')
})

test('spaces and repetitions are normalised', async () => {
  expect((await ask({ resource: orders, scope: '  shared   read:orders shared ' })).body.scope).toBe(
    'shared read:orders',
  )
})

test('no scope gives a token with an empty one', async () => {
  const answer = await ask({ resource: orders })
  expect(answer).toMatchObject({ status: 200, body: { scope: '' } })
  expect((await issuer.verify(answer.body.access_token, orders)).scope).toBe('')
})

test('reserved names are never an error and grant a machine nothing', async () => {
  const scope = 'openid offline_access profile roles urn:logto:scope:organizations read:orders'
  expect(await ask({ resource: orders, scope })).toMatchObject({ status: 200, body: { scope: 'read:orders' } })
})

test('a name that two resources share is granted only where it is held', async () => {
  expect((await ask({ resource: orders, scope: 'shared' })).body.scope).toBe('shared')
  expect((await ask({ resource: stock, scope: 'shared' })).body.scope).toBe('')
})

test('a scope taken from the role is gone in the next token', async () => {
  const resource = await issuer.createResource({ scopes: ['a', 'b'] })
  const application = await issuer.createApplication({ type: 'MachineToMachine' })
  const role = await issuer.grantApplication(application, resource, ['a', 'b'])
  const scope = async () =>
    (await issuer.token(application, { grant_type: 'client_credentials', resource, scope: 'a b' })).body.scope
  expect(await scope()).toBe('a b')
  await issuer.sql(
    `DELETE FROM role_scopes USING scopes WHERE role_id = $1 AND scopes.id = scope_id AND scopes.name = 'a'`,
    [role],
  )
  expect(await scope()).toBe('b')
})

describe('a resource that is not the registered indicator, byte for byte, is invalid_target:', () => {
  const near = ' Did you mean https://api.example.test/Orders ?'
  test.each([
    ['https://api.example.test/unknown', undefined],
    ['https://api.example.test/Orders/', near],
    ['https://api.example.test/orders', near],
    ['https://API.example.test/Orders', near],
    ['https://api.example.test:443/Orders', near],
    ['https://api.example.test/Orders?x=1', undefined],
    ['https://api.example.test%2FOrders', undefined],
  ])('%s', async (resource, hint) => {
    const answer = await ask({ resource, scope: 'read:orders' })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
    if (hint) expect(answer.body.error_description).toContain(hint)
    else expect(answer.body.error_description).not.toContain('Did you mean')
  })
})

test('a fragment, a relative reference and two resources are invalid_target', async () => {
  for (const resource of [`${orders}#part`, '/orders', 'orders', [orders, stock], [orders, orders]]) {
    expect(await ask({ resource })).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  }
})

test('without a resource the default one is the audience; without a default nothing is issued', async () => {
  expect(await ask({ scope: 'read:orders' })).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  expect(await ask({})).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  await issuer.sql('UPDATE resources SET is_default = (indicator = $1)', [orders])
  const answer = await ask({ scope: 'read:orders' })
  expect(answer).toMatchObject({ status: 200, body: { scope: 'read:orders' } })
  await issuer.verify(answer.body.access_token, orders)
  // A request for userinfo alone is not for an API; a machine has none.
  expect(await ask({ scope: 'openid' })).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  await issuer.sql('UPDATE resources SET is_default = false')
})

test('a token for one resource is not taken for another', async () => {
  const answer = await ask({ resource: orders, scope: 'read:orders' })
  await expect(issuer.verify(answer.body.access_token, stock)).rejects.toThrow(/aud/)
  const management = await issuer.api('GET', '/users', undefined, { token: answer.body.access_token })
  expect(management).toMatchObject({ status: 401, body: { code: 'auth.unauthorized' } })
})
