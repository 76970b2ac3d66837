import { decodeJwt } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CodeFlow, createCodeFlow, type Person } from '../../support/code-flow.ts'
import { createDeviceFlow, type DeviceFlow, deviceGrant } from '../../support/device-flow.ts'
import { createDpopParty, type DpopParty } from '../../support/dpop-party.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** RFC 8628 with RFC 9449: what a device gets is bound to the key of the request that gets it. */

const orders = 'https://api.shop.example/orders'
let issuer: TestIssuer
let flow: CodeFlow
let device: DeviceFlow
let application: TestApplication
let person: Person
let owner: DpopParty
let thief: DpopParty
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  device = createDeviceFlow(issuer, flow)
  application = await device.createClient()
  await issuer.createResource({ indicator: orders, scopes: ['read:orders'] })
  ;[owner, thief] = await Promise.all([createDpopParty(issuer), createDpopParty(issuer)])
})
beforeEach(async () => {
  person = await flow.createPerson()
  await issuer.grantUser(person.id, orders, ['read:orders'])
})
afterAll(() => issuer.close())

/** The form of a device whose person has allowed it. */
const allowed = async (client = application, parameters: Record<string, string> = {}) => {
  const { body } = await device.begin(client, parameters)
  const browser = flow.browser()
  await device.decide(browser, await device.toConfirmation(browser, body.user_code, person), 'allow')
  return { grant_type: deviceGrant, device_code: body.device_code as string }
}
const refresh = (party: DpopParty, token: string, form: Record<string, string> = {}) =>
  party.token(application, { grant_type: 'refresh_token', refresh_token: token, ...form }, { instance: 1 })

test('the tokens of a device are its key’s: opaque ones, those for an API and the refresh token', async () => {
  const asked = { resource: orders, scope: 'openid offline_access read:orders' }
  const tokens = await owner.token(application, await allowed(application, asked))
  expect(tokens).toMatchObject({ status: 200, body: { token_type: 'DPoP', id_token: expect.any(String) } })
  const { access_token: opaque, refresh_token: first } = tokens.body
  expect((await owner.userinfo(opaque)).status).toBe(200)
  expect((await thief.userinfo(opaque)).status).toBe(401)
  expect(await flow.userinfo(opaque)).toBe(401)

  for (const answer of [await refresh(thief, first), await flow.refresh(application, first)])
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  // That was no use of it: its owner goes on.
  const second = await refresh(owner, first, { resource: orders, scope: 'read:orders' })
  expect(second).toMatchObject({ status: 200, body: { token_type: 'DPoP' } })
  expect(decodeJwt(second.body.access_token)).toMatchObject({
    ...{ sub: person.id, aud: orders, scope: 'read:orders' },
    cnf: { jkt: owner.thumbprint },
  })
  expect((await refresh(thief, second.body.refresh_token)).body.error).toBe('invalid_grant')
  expect((await refresh(owner, second.body.refresh_token)).status).toBe(200)
})

describe('a proof', () => {
  test('without a nonce, for another endpoint or sent twice gets nothing, and the device code stays', async () => {
    const form = await allowed()
    const url = `${issuer.issuer}/device/auth`
    const elsewhere = await owner.proof({ method: 'POST', url, nonce: await owner.nonce() })
    expect(await owner.token(application, form, { nonce: undefined })).toMatchObject({
      status: 400,
      body: { error: 'use_dpop_nonce' },
    })
    expect((await owner.token(application, form, { sent: elsewhere })).body.error).toBe('invalid_dpop_proof')
    const sent = await owner.proof({ method: 'POST', url: `${issuer.issuer}/token`, nonce: await owner.nonce() })
    expect((await owner.token(application, form, { sent })).status).toBe(200)
    const other = await allowed()
    expect((await owner.token(application, other, { sent, instance: 1 })).body.error).toBe('invalid_dpop_proof')
    expect((await owner.token(application, other)).status).toBe(200)
  })

  test('is due where the application gets bound tokens only', async () => {
    const strict = await device.createClient({ custom: { dpopBoundAccessTokens: true } })
    const form = await allowed(strict)
    expect((await device.poll(strict, form.device_code)).body.error).toBe('invalid_dpop_proof')
    expect((await owner.token(strict, form)).body.token_type).toBe('DPoP')
  })
})

test('of two keys that poll at once one gets the tokens', async () => {
  const form = await allowed()
  const answers = await Promise.all([owner.token(application, form), thief.token(application, form, { instance: 1 })])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  const winner = answers.findIndex(({ status }) => status === 200)
  const token = answers[winner]!.body.access_token
  expect((await [owner, thief][winner]!.userinfo(token)).status).toBe(200)
  expect((await [thief, owner][winner]!.userinfo(token)).status).toBe(401)
})
