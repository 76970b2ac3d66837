import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorize } from '../../../support/authorizations.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** What somebody got by signing in, exchanged for something else (RFC 8693). */

let issuer: TestIssuer
let spa: TestApplication
let web: TestApplication
let tokens: { jwt: string; opaque: string }
let sid: string
let other: string
beforeAll(async () => {
  issuer = await startTestIssuer()
  spa = await issuer.createApplication({ type: 'SPA' })
  web = await issuer.createApplication()
  const api = await issuer.createResource({ scopes: ['read:orders'] })
  other = await issuer.createResource({ scopes: ['delete:everything'] })
  const user = await issuer.createUser()
  await issuer.grantUser(user.id, api, ['read:orders'])
  await issuer.grantUser(user.id, other, ['delete:everything'])
  const scopes = ['openid', 'read:orders']
  const of = async (resource?: string) => {
    const authorization = await authorize(issuer, spa, user.id, { scopes, resources: [api], isOffline: false })
    const { body } = await authorization.redeem({ resource })
    return { sid: authorization.sid, token: body.access_token as string }
  }
  const forApi = await of(api)
  tokens = { jwt: forApi.token, opaque: (await of()).token }
  sid = forApi.sid
})
afterAll(() => issuer.close())

test.each(['jwt', 'opaque'] as const)(
  'an API cannot widen the %s token it was shown: anybody can name a public client',
  async (kind) => {
    const wanted = { resource: other, scope: 'delete:everything' }
    expect(await issuer.exchange(spa, tokens[kind], wanted)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant', reason: 'subject_token_type' },
    })
  },
)

test('a client that proves who it is may, and the token ends with the same sign-in', async () => {
  const answer = await issuer.exchange(web, tokens.jwt, { resource: other, scope: 'delete:everything' })
  expect(answer).toMatchObject({ status: 200, body: { scope: 'delete:everything' } })
  expect(decodeJwt(answer.body.access_token)).toMatchObject({ sid, client_id: web.id })
  expect(decodeJwt(answer.body.access_token)).not.toHaveProperty('acr')
})
