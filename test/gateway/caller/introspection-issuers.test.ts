import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { orders, startTestGateway } from '../../support/gateway.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { type ReferenceIssuer, startReferenceIssuer } from '../../support/oidc-provider.ts'
import { until } from '../../support/until.ts'

/** Opaque tokens of issuers as they are: ours, and oidc-provider as a foreign one. */

let ours: TestIssuer
let auditor: TestApplication
let theirs: ReferenceIssuer
const machine = { id: 'machine', secret: 'secret-of-the-machine' }
const gatewayClient = { id: 'gateway', secret: 'secret-of-the-gateway' }
beforeAll(async () => {
  ours = await startTestIssuer()
  auditor = await ours.createMachine(ours.managementResource, ['revocations'])
  const metadata = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }
  theirs = await startReferenceIssuer({
    resources: { [orders]: ['read:orders'], 'https://api.test/other': ['read:orders'] },
    granted: ['read:orders'],
    accessTokenFormat: 'opaque',
    clients: [machine, gatewayClient].map(({ id, secret }) => ({ client_id: id, client_secret: secret, ...metadata })),
  })
})
afterAll(async () => {
  await theirs.close()
  await ours.close()
})

const start = async (issuers: object[]) => {
  const gateway = await startTestGateway({ config: () => ({ issuers }) })
  onTestFinished(gateway.close)
  await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }))
  return gateway
}

test('oidc-provider: a token for the audience of the route gets through until it is revoked', async () => {
  const gateway = await start([{ issuer: theirs.issuer, introspection: { client: gatewayClient } }])
  const post = (path: string, form: Record<string, string>) => {
    const authorization = `Basic ${Buffer.from(`${machine.id}:${machine.secret}`).toString('base64')}`
    return fetch(`${theirs.url}/oidc/${path}`, {
      method: 'POST',
      headers: { authorization },
      body: new URLSearchParams(form),
    })
  }
  const tokenFor = async (resource: string) => {
    const answer = await post('token', { grant_type: 'client_credentials', resource, scope: 'read:orders' })
    return ((await answer.json()) as { access_token: string }).access_token
  }
  const token = await tokenFor(orders)
  expect(token).not.toContain('.')
  const passed = await gateway.call('/orders/1', { token })
  expect(passed.status).toBe(200)
  expect(gateway.upstream.seen[0]!.headers).toMatchObject({
    'x-auth-sub': machine.id,
    'x-auth-client-id': machine.id,
    'x-auth-scope': 'read:orders',
  })
  expect((await gateway.call('/orders/1', { token: await tokenFor('https://api.test/other') })).status).toBe(401)
  const revoked = await tokenFor(orders)
  expect((await post('token/revocation', { token: revoked })).status).toBe(200)
  expect((await gateway.call('/orders/1', { token: revoked })).status).toBe(401)
})

test('ours: its opaque tokens are for no API, which its answer says, and its JWTs are verified as ever', async () => {
  const client = { id: auditor.id, secret: auditor.secret }
  const gateway = await start([{ issuer: ours.issuer, client, revocations: { mode: 'feed' }, introspection: {} }])
  const app = await ours.createApplication()
  const { id: user } = await ours.createUser()
  const answer = await ours.exchange(app, await ours.subjectToken(user), { scope: 'openid' })
  const token = answer.body.access_token as string
  const refused = await gateway.call('/orders/1', { token })
  expect(refused.status).toBe(401)
  expect(await refused.json()).toMatchObject({
    code: 'invalid_token',
    detail: 'The issuer does not say for which audience the token is.',
  })
  const unknown = await gateway.call('/orders/1', { token: 'never-issued-by-anybody-at-all' })
  expect(await unknown.json()).toMatchObject({ code: 'invalid_token', detail: 'The token is not active.' })
  expect((await gateway.metrics.render()).text).toMatch(
    /introspections_total\{issuer="[^"]+",outcome="active"\} 1\n.*introspections_total\{issuer="[^"]+",outcome="inactive"\} 1\n/,
  )
})
