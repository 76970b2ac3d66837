import { afterAll, beforeAll, expect, test } from 'vitest'
import { basic, formOf, request } from '../support/issuer.ts'
import { type IssuerBehindProxy, startIssuerBehindProxy } from '../support/issuer-behind-proxy.ts'
import type { TestApplication } from '../support/issuer-data.ts'
import { linesDuring, loudLines } from '../support/log-lines.ts'

/** What callers are told while PostgreSQL is away: 503, and when to ask again. */

let issuer: IssuerBehindProxy
let client: TestApplication
let orders: string
beforeAll(async () => {
  issuer = await startIssuerBehindProxy()
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  client = await issuer.createMachine(orders, ['read:orders'])
})
afterAll(() => issuer?.close())

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

  const { keys, ...answers } = await issuer.withoutDatabase(async () => ({
    token: await issuer.token(client, grant),
    introspection: await form('token/introspection'),
    revocation: await form('token/revocation'),
    management: await issuer.api('GET', '/users', undefined, { token: management }),
    keys: await request(`${issuer.url}/oidc/jwks`),
  }))
  const oauth = {
    status: 503,
    body: { error: 'temporarily_unavailable', code: 'oidc.temporarily_unavailable' },
  }
  expect(answers).toMatchObject({
    token: oauth,
    introspection: oauth,
    revocation: oauth,
    management: { status: 503, body: { code: 'server.unavailable' } },
  })
  for (const { headers } of Object.values(answers)) expect(headers.get('retry-after')).toBe('5')
  expect(keys.status).toBe(200)

  expect(await issuer.token(client, grant)).toMatchObject({ status: 200 })
  expect(await issuer.api('GET', '/users', undefined, { token: management })).toMatchObject({ status: 200 })
})

test('whoever asks meanwhile does not fill the log: one line a second says why', async () => {
  const management = await issuer.managementToken()
  const grant = { grant_type: 'client_credentials', resource: orders, scope: 'read:orders' }
  const askers: Record<string, () => Promise<{ status: number }>> = {
    'a token request failed': () => issuer.token(client, grant),
    'a management request failed': () => issuer.api('GET', '/users', undefined, { token: management }),
    'the origin of a request could not be looked up': () =>
      request(`${issuer.url}/oidc/token`, {
        method: 'POST',
        headers: { origin: 'https://app.test' },
        body: formOf({}),
      }),
  }
  await issuer.withoutDatabase(async () => {
    for (const [message, ask] of Object.entries(askers)) {
      const { count, most } = await linesDuring(issuer, message, async () => {
        for (let n = 0; n < 30; n++) await ask()
      })
      expect(count, message).toBeLessThanOrEqual(most)
      expect(loudLines(issuer.logged()).map(({ msg }) => msg)).toContain(message)
    }
  })
})
