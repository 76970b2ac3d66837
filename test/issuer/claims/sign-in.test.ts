import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { authorize, refresh } from '../../support/authorizations.ts'
import { putClaimsScript } from '../../support/claims-script.ts'
import { startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

/** Custom claims in tokens of people who signed in. */

let issuer: TestIssuer
let app: TestApplication
let resource: string
let userId: string

beforeAll(async () => {
  issuer = await startTestIssuer()
  resource = await issuer.createResource({ scopes: ['read:orders'] })
  app = await issuer.createApplication({ type: 'SPA' })
  userId = (await issuer.createUser({ name: 'Alice' })).id
})

afterAll(() => issuer?.close())

beforeEach(async () => {
  await issuer.sql('DELETE FROM claims_scripts')
})

test('the script is told how the person signed in, also when the tokens are refreshed', async () => {
  await putClaimsScript(
    issuer,
    'return { token, interaction: context.interaction, grant: context.grant ?? null, known: context.user.hasPassword }',
  )
  const authorization = await authorize(issuer, app, userId, { resources: [resource] })
  const redeemed = (await authorization.redeem({ resource })).body
  const refreshed = (await refresh(issuer, app, redeemed.refresh_token, { resource })).body
  const grants = { authorization_code: redeemed, refresh_token: refreshed }
  for (const [gty, { access_token }] of Object.entries(grants)) {
    const claims = await issuer.verify(access_token, resource)
    expect(claims).toMatchObject({
      token: {
        kind: 'AccessToken',
        gty,
        jti: claims.jti,
        aud: resource,
        clientId: app.id,
        accountId: userId,
        sid: authorization.sid,
      },
      interaction: {
        interactionEvent: 'SignIn',
        userId,
        verificationRecords: [{ id: 'proof', type: 'Password', verified: true }],
        signInContext: { ip: '198.51.100.7', userAgent: 'A browser' },
      },
      grant: null,
      known: false,
    })
  }
})

test('a script that refuses the token uses up neither code nor refresh token', async () => {
  const authorization = await authorize(issuer, app, userId)
  const denied = { status: 400, body: { error: 'access_denied', reason: 'custom_claims' } }
  await putClaimsScript(issuer, 'api.denyAccess("Not today.")')
  expect(await authorization.redeem()).toMatchObject(denied)
  await issuer.sql('DELETE FROM claims_scripts')
  const { refresh_token } = (await authorization.redeem()).body
  await putClaimsScript(issuer, 'api.denyAccess("Not today.")')
  expect(await refresh(issuer, app, refresh_token)).toMatchObject(denied)
  await issuer.sql('DELETE FROM claims_scripts')
  const { refresh_token: next } = (await refresh(issuer, app, refresh_token)).body
  expect(await refresh(issuer, app, next)).toMatchObject({ status: 200 })
})

test('a script cannot say how or when the person signed in, nor what a rule of ours trusts', async () => {
  await putClaimsScript(
    issuer,
    `return { acr: 'phr', auth_time: 1, amr: ['mfa'], azp: 'x', nonce: 'x', at_hash: 'x', access: 'x', sid: 'ps_x', own: 'x' }`,
  )
  const { body } = await (await authorize(issuer, app, userId, { resources: [resource] })).redeem({ resource })
  const claims = await issuer.verify(body.access_token, resource)
  expect(claims).toMatchObject({ acr: 'urn:surrogate:acr:basic', own: 'x' })
  expect(claims['auth_time']).toBeGreaterThan(1)
  expect(claims['sid']).not.toBe('ps_x')
  for (const name of ['amr', 'azp', 'nonce', 'at_hash', 'access']) expect(claims).not.toHaveProperty(name)
})
