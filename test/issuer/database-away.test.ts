import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CountingProxy, startCountingProxy } from '../support/counting-proxy.ts'
import type { PostgresConnection } from '../support/database.ts'
import { basic, formOf, request, startTestIssuer, type TestIssuer } from '../support/issuer.ts'
import type { TestApplication } from '../support/issuer-data.ts'

/** What callers are told while PostgreSQL is away: 503, and when to ask again. */

let proxy: CountingProxy
let behind: PostgresConnection
let issuer: TestIssuer
let client: TestApplication
let orders: string
beforeAll(async () => {
  issuer = await startTestIssuer({
    through: async (connection) => {
      behind = connection
      proxy = await startCountingProxy(connection)
      return proxy.connection
    },
  })
  client = await issuer.createApplication({ type: 'MachineToMachine' })
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  await issuer.grantApplication(client, orders, ['read:orders'])
})
afterAll(async () => {
  await issuer.close()
  await proxy.close()
})

test('every endpoint that needs the database says that it is away, and works again when it is back', async () => {
  const grant = { grant_type: 'client_credentials', resource: orders, scope: 'read:orders' }
  const token = await issuer.clientToken(client, orders, 'read:orders')
  const management = await issuer.managementToken()
  const form = (path: string) =>
    request(`${issuer.url}/oidc/${path}`, {
      method: 'POST',
      headers: { authorization: basic(client) },
      body: formOf({ token }),
    })

  const { port } = proxy.connection
  await proxy.close()
  const oauth = {
    status: 503,
    body: { error: 'temporarily_unavailable', code: 'oidc.temporarily_unavailable' },
  }
  const answers = {
    token: await issuer.token(client, grant),
    introspection: await form('token/introspection'),
    revocation: await form('token/revocation'),
    management: await issuer.api('GET', '/users', undefined, { token: management }),
  }
  expect(answers).toMatchObject({
    token: oauth,
    introspection: oauth,
    revocation: oauth,
    management: { status: 503, body: { code: 'server.unavailable' } },
  })
  for (const { headers } of Object.values(answers)) expect(headers.get('retry-after')).toBe('5')
  expect((await request(`${issuer.url}/oidc/jwks`)).status).toBe(200)

  proxy = await startCountingProxy(behind, { port })
  expect(await issuer.token(client, grant)).toMatchObject({ status: 200 })
  expect(await issuer.api('GET', '/users', undefined, { token: management })).toMatchObject({ status: 200 })
})
