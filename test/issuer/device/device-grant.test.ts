import { decodeJwt } from 'jose'
import * as client from 'openid-client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Browser } from '../../support/browser.ts'
import { type CodeFlow, createCodeFlow, type Person } from '../../support/code-flow.ts'
import { createDeviceFlow, type DeviceFlow } from '../../support/device-flow.ts'
import { type Answer, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** RFC 8628: from the request of a device to its tokens. */

let issuer: TestIssuer
let flow: CodeFlow
let device: DeviceFlow
let application: TestApplication
let person: Person
let browser: Browser
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  flow = createCodeFlow(issuer)
  device = createDeviceFlow(issuer, flow)
  application = await device.createClient()
})
beforeEach(async () => {
  person = await flow.createPerson()
  browser = flow.browser()
})
afterAll(() => issuer.close())

const refused = (error: string) => ({ status: 400, body: { error } })
const begun = async (parameters: Record<string, string> = {}) => {
  const { body } = await device.begin(application, parameters)
  return body as { device_code: string; user_code: string; verification_uri_complete: string }
}
const allowed = async () => {
  const asked = await begun()
  await device.decide(browser, await device.toConfirmation(browser, asked.user_code, person), 'allow')
  return asked
}
const age = (seconds: number) =>
  issuer.sql(`UPDATE device_codes SET expires_at = expires_at - $1 * interval '1 second' WHERE client_id = $2`, [
    seconds,
    application.id,
  ])

test('a device gets tokens for the person who allowed it in a browser, and they are like all others', async () => {
  const answer = await device.begin(application)
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer).toMatchObject({
    status: 200,
    body: {
      device_code: expect.stringMatching(/^[\w-]{43}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: `${issuer.baseUrl}/device`,
      verification_uri_complete: `${issuer.baseUrl}/device?user_code=${answer.body.user_code}`,
      expires_in: 600,
      interval: 5,
    },
  })
  const { device_code: deviceCode, user_code: userCode } = answer.body
  expect(await device.poll(application, deviceCode)).toMatchObject(refused('authorization_pending'))

  const confirmation = await device.toConfirmation(browser, userCode, person)
  for (const text of ['Sign in to <bdi>Shop</bdi> on a device?', '127.0.0.1', person.username])
    expect(confirmation.text).toContain(text)
  await device.wait(deviceCode, 5)
  expect(await device.poll(application, deviceCode)).toMatchObject(refused('authorization_pending'))
  const done = await device.decide(browser, confirmation, 'allow')
  expect(done.text).toContain('Your device is signed in')
  // The device alone gets anything.
  expect(done.url).not.toContain('code=')

  const tokens = await device.poll(application, deviceCode, { instance: 1 })
  expect(tokens).toMatchObject({ status: 200, body: { token_type: 'Bearer', scope: 'openid offline_access' } })
  const { sub, sid, aud } = decodeJwt(tokens.body.id_token)
  expect({ sub, aud }).toEqual({ sub: person.id, aud: application.id })
  expect(sid).toMatch(/^ps_/)
  expect(await flow.userinfo(tokens.body.access_token)).toBe(200)
  const refreshed = await flow.refresh(application, tokens.body.refresh_token)
  expect(decodeJwt(refreshed.body.id_token)['sid']).toBe(sid)

  await issuer.api('DELETE', `/users/${person.id}/grants/${sid}`)
  expect(await flow.userinfo(refreshed.body.access_token)).toBe(401)
  expect(await flow.refresh(application, refreshed.body.refresh_token)).toMatchObject(refused('invalid_grant'))
})

test('a client that only knows the standard signs in', async () => {
  const configuration = await client.discovery(new URL(issuer.issuer), application.id, undefined, client.None(), {
    execute: [client.allowInsecureRequests],
  })
  expect(configuration.serverMetadata()).toMatchObject({
    device_authorization_endpoint: `${issuer.issuer}/device/auth`,
    grant_types_supported: expect.arrayContaining(['urn:ietf:params:oauth:grant-type:device_code']),
  })
  const asked = await client.initiateDeviceAuthorization(configuration, { scope: 'openid' })
  await device.decide(browser, await device.toConfirmation(browser, asked.user_code, person), 'allow')
  // It polls only after an interval; the row does not know of that.
  const tokens = await client.pollDeviceAuthorizationGrant(configuration, { ...asked, interval: 0.01 })
  expect(tokens.claims()).toMatchObject({ sub: person.id })
})

describe('the device is told', () => {
  test('that its person refused', async () => {
    const asked = await begun()
    const confirmation = await device.toConfirmation(browser, asked.user_code, person)
    expect((await device.decide(browser, confirmation, 'deny')).text).toContain('Your device was not signed in')
    for (const instance of [0, 1])
      expect(await device.poll(application, asked.device_code, { instance })).toMatchObject(refused('access_denied'))
  })

  test('that its time is over', async () => {
    const asked = await begun()
    await age(600)
    expect(await device.poll(application, asked.device_code)).toMatchObject(refused('expired_token'))
  })

  test('that it polls too often, and must wait five seconds longer each time', async () => {
    const asked = await begun()
    const poll = () => device.poll(application, asked.device_code)
    expect(await poll()).toMatchObject(refused('authorization_pending'))
    expect(await poll()).toMatchObject(refused('slow_down'))
    await device.wait(asked.device_code, 8)
    expect(await poll()).toMatchObject(refused('slow_down'))
    await device.wait(asked.device_code, 15)
    expect(await poll()).toMatchObject(refused('authorization_pending'))
  })

  test('of two polls at once, one is too often', async () => {
    const asked = await begun()
    const answers = await Promise.all(
      [0, 1].map((instance) => device.poll(application, asked.device_code, { instance })),
    )
    expect(answers.map(({ body }) => body.error).toSorted()).toEqual(['authorization_pending', 'slow_down'])
  })
})

describe('a device code', () => {
  test('becomes tokens once, however many ask at once', async () => {
    const { device_code: code } = await allowed()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => device.poll(application, code, { instance: index % 2 })),
    )
    const successes = answers.filter(({ status }) => status === 200)
    expect(successes).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200))
      expect(answer).toMatchObject(refused('invalid_grant'))
    // Within a second they are one device that asks twice.
    expect(await flow.userinfo(successes[0]!.body.access_token)).toBe(200)
  })

  test('that comes again later ends what came of it', async () => {
    const { device_code: code } = await allowed()
    const tokens = await device.poll(application, code)
    await issuer.sql(`UPDATE authorization_codes SET redeemed_at = redeemed_at - interval '2 seconds'`)
    expect(await device.poll(application, code)).toMatchObject(refused('invalid_grant'))
    expect(await flow.userinfo(tokens.body.access_token)).toBe(401)
  })

  test("is of no use to another client, and is not used up by one, or told by one's errors", async () => {
    const asked = await allowed()
    const other = await device.createClient()
    expect(await device.poll(other, asked.device_code)).toMatchObject(refused('invalid_grant'))
    expect(await device.poll(application, 'x'.repeat(43))).toMatchObject({
      ...refused('invalid_grant'),
      body: (await device.poll(other, asked.device_code)).body,
    })
    expect(await device.poll(application, asked.device_code)).toMatchObject({ status: 200 })
  })

  test('is no authorization code, no refresh token, and its user code is no device code', async () => {
    const asked = await allowed()
    const browserClient = await flow.createClient()
    expect(await flow.redeem(browserClient, asked.device_code)).toMatchObject(refused('invalid_grant'))
    expect(await flow.refresh(application, asked.device_code)).toMatchObject(refused('invalid_grant'))
    expect(await device.poll(application, asked.user_code)).toMatchObject(refused('invalid_grant'))
    expect(await device.poll(application, '')).toMatchObject(refused('invalid_request'))
  })

  test('of a person who was suspended before it was asked for gives nothing', async () => {
    const asked = await allowed()
    await issuer.suspend(person.id)
    expect(await device.poll(application, asked.device_code)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant', reason: 'user_suspended' },
    })
  })

  test('and its user code stand nowhere in the database or the log', async () => {
    const asked = await allowed()
    const rows = JSON.stringify(
      await issuer.sql(`SELECT to_json(d)::text AS row FROM device_codes d
        UNION ALL SELECT to_json(i)::text FROM interactions i UNION ALL SELECT to_json(l)::text FROM logs l`),
    )
    for (const secret of [asked.device_code, asked.user_code, asked.user_code.replace('-', '')]) {
      expect(rows).not.toContain(secret)
      expect(rows).not.toContain(Buffer.from(secret).toString('hex'))
      expect(issuer.logged()).not.toContain(secret)
    }
  })
})

describe('the request of a device', () => {
  test('for an unknown resource, or by an unknown client, is refused', async () => {
    const nothing = { resource: 'https://nothing.example.test' }
    expect(await device.begin(application, nothing)).toMatchObject(refused('invalid_target'))
    expect(await device.begin({ id: 'nobody' })).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  })

  test('for a scope that its resource does not define is refused at once', async () => {
    const resource = await issuer.createResource({ scopes: ['read:orders'] })
    expect(await device.begin(application, { scope: 'openid write:orders', resource })).toMatchObject(
      refused('invalid_scope'),
    )
  })

  test('and its grant are for native applications that are made for it; those cannot do otherwise', async () => {
    const shop = await flow.createClient()
    expect(await device.begin(shop)).toMatchObject(refused('unauthorized_client'))
    const { device_code: code } = await allowed()
    expect(await device.poll(shop, code)).toMatchObject(refused('unauthorized_client'))
    expect(await flow.redeem(application, 'x'.repeat(43))).toMatchObject(refused('unauthorized_client'))
    expect((await flow.ask(browser, application)).status).toBe(400)
  })

  test('names a resource, and the token is for it with what the person holds', async () => {
    const resource = await issuer.createResource({ scopes: ['read:orders', 'write:orders'] })
    await issuer.grantUser(person.id, resource, ['read:orders'])
    const asked = await begun({ scope: 'openid read:orders write:orders', resource })
    await device.decide(browser, await device.toConfirmation(browser, asked.user_code, person), 'allow')
    const tokens = await device.poll(application, asked.device_code, { form: { resource } })
    expect(tokens.body.scope).toBe('read:orders')
    expect(await issuer.verify(tokens.body.access_token, resource)).toMatchObject({ sub: person.id })
  })
})

describe('applications of the device flow', () => {
  const code = ({ status, body }: Answer) => ({ status, code: body.code })

  test('are native', async () => {
    const input = { name: 'Site', type: 'SPA', customClientMetadata: { isDeviceFlow: true } }
    expect(code(await issuer.api('POST', '/applications', input))).toEqual({
      status: 422,
      code: 'application.device_flow_native_only',
    })
  })

  test('remain what they are', async () => {
    const patch = (id: string, customClientMetadata: object) =>
      issuer.api('PATCH', `/applications/${id}`, { customClientMetadata })
    const refusal = { status: 422, code: 'application.device_flow_not_changeable' }
    expect(code(await patch(application.id, {}))).toEqual(refusal)
    expect(code(await patch((await flow.createClient()).id, { isDeviceFlow: true }))).toEqual(refusal)
    expect(await patch(application.id, { isDeviceFlow: true })).toMatchObject({ status: 200 })
    expect(await issuer.api('PATCH', `/applications/${application.id}`, { name: 'Shop' })).toMatchObject({
      status: 200,
    })
  })
})
