import { afterAll, beforeAll, expect, test } from 'vitest'
import { tokenDigest } from '../../../issuer/tokens/token-digest.ts'
import { type CodeFlow, createCodeFlow } from '../../support/code-flow.ts'
import { orders, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { basic, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'
import { until } from '../../support/until.ts'

/** A code that somebody presents again, and what a gateway lets through with the tokens that came of it. */

let issuer: TestIssuer
let gateway: TestGateway
let flow: CodeFlow
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  client = await flow.createClient()
  await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  const { id, secret } = await issuer.createMachine(issuer.managementResource, ['revocations'])
  gateway = await startTestGateway({
    config: () => ({ issuers: [{ issuer: issuer.issuer, client: { id, secret }, revocations: { mode: 'feed' } }] }),
  })
  await until(async () => expect(await gateway.health.ready()).toMatchObject({ ok: true }))
})
afterAll(async () => {
  await gateway.close()
  await issuer.close()
})

const target = { resource: orders, scope: 'openid offline_access read:orders' }

/** Signs somebody in, who may read orders. */
const signedIn = async () => {
  const person = await flow.createPerson()
  await issuer.grantUser(person.id, orders, ['read:orders'])
  const code = await flow.signIn(flow.browser(), client, person, target)
  const { status, body } = await flow.redeem(client, code, 0, { resource: orders })
  expect(status).toBe(200)
  return { code, body }
}
const opened = async (token: string) => (await gateway.call('/orders/1', { token })).status
const isActive = async (token: string, instance: number): Promise<boolean> => {
  const headers = { authorization: basic(issuer.bootstrap) }
  const url = `${issuer.urls[instance]}/oidc/token/introspection`
  return (await request(url, { method: 'POST', headers, body: formOf({ token }) })).body.active
}
const redeemedEarlier = (code: string, seconds: number) =>
  issuer.sql(
    `UPDATE authorization_codes SET redeemed_at = redeemed_at - $2 * interval '1 second' WHERE digest = $1 RETURNING digest`,
    [tokenDigest('authorization-code', code), seconds],
  )

test('a code that comes again two seconds after its redemption closes the gateway to the access tokens of it', async () => {
  const [stolen, other] = [await signedIn(), await signedIn()]
  const refreshed = await flow.refresh(client, stolen.body.refresh_token, 0, { resource: orders })
  const tokens = [stolen.body.access_token, refreshed.body.access_token]
  for (const token of tokens) {
    expect(await opened(token)).toBe(200)
    expect(await isActive(token, 1)).toBe(true)
  }

  expect(await redeemedEarlier(stolen.code, 2)).toHaveLength(1)
  const replayed = await flow.redeem(client, stolen.code, 1, { resource: orders })
  expect(replayed).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })

  for (const token of tokens) {
    for (const instance of [0, 1]) expect(await isActive(token, instance)).toBe(false)
    await until(async () => expect(await opened(token)).toBe(401))
  }
  expect(await opened(other.body.access_token)).toBe(200)
})

test('one that comes twice within a second, as of a page that is mounted twice, closes nothing', async () => {
  const { code, body } = await signedIn()
  // However slow the machine is, the second one comes at once.
  expect(await redeemedEarlier(code, -1)).toHaveLength(1)
  expect(await flow.redeem(client, code, 1, { resource: orders })).toMatchObject({ status: 400 })
  expect(await isActive(body.access_token, 0)).toBe(true)
  // The gateway hears of what is revoked after it, so it would have heard of that too.
  const later = await signedIn()
  await redeemedEarlier(later.code, 2)
  await flow.redeem(client, later.code, 1, { resource: orders })
  await until(async () => expect(await opened(later.body.access_token)).toBe(401))
  expect(await opened(body.access_token)).toBe(200)
})
