import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authorize } from '../../../support/authorizations.ts'
import { accessTokenType, basic, formOf, request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
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

test('with an actor it says who acts, opens no impersonation, and the person ends it with their sign-in', async () => {
  const actorToken = await issuer.actorToken(web, (await issuer.createUser()).id)
  const form = {
    resource: other,
    scope: 'delete:everything',
    actor_token: actorToken,
    actor_token_type: accessTokenType,
  }
  const before = await issuer.sql('SELECT id FROM impersonation_sessions')
  const { body } = await issuer.exchange(web, tokens.jwt, form)
  const { sub: actor } = decodeJwt(body.access_token)['act'] as { sub: string }
  expect(decodeJwt(body.access_token)).toMatchObject({ sid, act: { sub: actor } })
  expect(await issuer.sql('SELECT id FROM impersonation_sessions')).toEqual(before)
  const [log] = await issuer.sql<{ payload: object }>(
    `SELECT payload FROM logs WHERE key = 'ExchangeTokenBy.TokenExchange' ORDER BY created_at DESC, id DESC LIMIT 1`,
  )
  expect(log!.payload).toMatchObject({ actorId: actor, sessionId: sid })

  const isActive = async () => {
    const headers = { authorization: basic(web) }
    const answer = await request(`${issuer.url}/oidc/token/introspection`, {
      method: 'POST',
      headers,
      body: formOf({ token: body.access_token }),
    })
    return answer.body.active
  }
  expect(await isActive()).toBe(true)
  const { sub } = decodeJwt(body.access_token)
  expect((await issuer.api('DELETE', `/users/${sub}/grants/${sid}`)).status).toBe(204)
  expect(await isActive()).toBe(false)
  expect((await issuer.exchange(web, tokens.jwt, form)).body.error).toBe('invalid_grant')
})
