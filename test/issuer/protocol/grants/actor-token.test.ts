import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tokenDigest } from '../../../../issuer/tokens/token-digest.ts'
import { accessTokenType, request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

let issuer: TestIssuer
let orders: string
let client: TestApplication
let customer: { id: string }
let agent: { id: string }
beforeAll(async () => {
  issuer = await startTestIssuer()
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  client = await issuer.createApplication()
  customer = await issuer.createUser()
  agent = await issuer.createUser()
})
afterAll(() => issuer.close())

/** The customer, acted for by whoever holds the actor token. */
const exchangeAs = async (actor_token: string, scope = 'read:orders') =>
  issuer.exchange(client, await issuer.subjectToken(customer.id), {
    ...{ resource: orders, scope, actor_token, actor_token_type: accessTokenType },
  })

/** A JWT access token of the user with `openid`; `actor` acts for them. */
const jwtOf = async (userId: string, actor?: string, scope = 'openid'): Promise<string> => {
  const actorForm = actor === undefined ? {} : { actor_token: actor, actor_token_type: accessTokenType }
  const answer = await issuer.exchange(client, await issuer.subjectToken(userId), {
    resource: orders,
    scope,
    ...actorForm,
  })
  expect(answer.status).toBe(200)
  return answer.body.access_token
}

const actOf = async (answer: { body: { access_token: string } }) =>
  (await issuer.verify(answer.body.access_token, orders))['act']

const refusal = (reason: string) => ({ status: 400, body: { error: 'invalid_grant', reason } })

test('with an opaque actor token the access token carries act', async () => {
  const answer = await exchangeAs(await issuer.actorToken(client, agent.id))
  expect(answer.status).toBe(200)
  expect(await actOf(answer)).toEqual({ sub: agent.id })
})

test('a JWT of this issuer with openid is an actor token too', async () => {
  expect(await actOf(await exchangeAs(await jwtOf(agent.id)))).toEqual({ sub: agent.id })
})

test('without an actor token there is no act', async () => {
  const answer = await issuer.exchange(client, await issuer.subjectToken(customer.id), { resource: orders })
  expect(await issuer.verify(answer.body.access_token, orders)).not.toHaveProperty('act')
})

test('the session records whether the actor signed in or came from a subject token', async () => {
  const viaOf = async (actorToken: string) => {
    const { sid } = await issuer.verify((await exchangeAs(actorToken)).body.access_token, orders)
    const [row] = await issuer.sql('SELECT actor_id, actor_via FROM impersonation_sessions WHERE id = $1', [sid])
    return row
  }
  await issuer.sql(
    `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at) VALUES ($1, $2, $3, 'profile openid', now() + interval '1 h')`,
    [tokenDigest('opaque-token', 'signed-in'), agent.id, client.id],
  )
  expect(await viaOf('signed-in')).toEqual({ actor_id: agent.id, actor_via: 'sign_in' })
  expect(await viaOf(await jwtOf(agent.id))).toEqual({ actor_id: agent.id, actor_via: 'subject_token' })
})

test('who acts through another is nested, four deep and no deeper', async () => {
  const people = await Promise.all([1, 2, 3, 4, 5].map(() => issuer.createUser()))
  const ids = people.map(({ id }) => id)
  let token = await jwtOf(ids[0]!)
  for (const id of ids.slice(1, 4)) token = await jwtOf(id, token)
  const deepest = await exchangeAs(token)
  expect(await actOf(deepest)).toEqual({
    sub: ids[3],
    act: { sub: ids[2], act: { sub: ids[1], act: { sub: ids[0] } } },
  })
  expect(await exchangeAs(await jwtOf(ids[4]!, token))).toMatchObject(refusal('act_chain_too_deep'))
})

test('an opaque actor token keeps its chain', async () => {
  const form = { scope: 'openid', actor_token: await jwtOf(agent.id), actor_token_type: accessTokenType }
  const manager = await issuer.createUser()
  const opaque = await issuer.exchange(client, await issuer.subjectToken(manager.id), form)
  expect(await actOf(await exchangeAs(opaque.body.access_token))).toEqual({ sub: manager.id, act: { sub: agent.id } })
})

describe('the actor token must have been issued with the scope openid, exactly:', () => {
  test.each(['', 'openid2', 'xopenid', 'OPENID', 'profile email'])('"%s"', async (scope) => {
    const token = `scope-${scope}`
    await issuer.sql(
      `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at) VALUES ($1, $2, $3, $4, now() + interval '1 h')`,
      [tokenDigest('opaque-token', token), agent.id, client.id, scope],
    )
    expect(await exchangeAs(token)).toMatchObject(refusal('actor_token_scope'))
  })

  test('in a JWT', async () => {
    expect(await exchangeAs(await jwtOf(agent.id, undefined, 'read:orders'))).toMatchObject(
      refusal('actor_token_scope'),
    )
  })
})

describe('an actor token that is not a valid access token of a user is refused:', () => {
  test('expired or revoked', async () => {
    for (const change of [`expires_at = now() - interval '1 second'`, 'revoked_at = now()']) {
      const token = await issuer.actorToken(client, agent.id)
      await issuer.sql(`UPDATE opaque_tokens SET ${change} WHERE digest = $1`, [tokenDigest('opaque-token', token)])
      expect(await exchangeAs(token)).toMatchObject(refusal('actor_token_invalid'))
    }
  })

  test('of a session that was ended', async () => {
    const [opaque, jwt] = [await issuer.actorToken(client, agent.id), await jwtOf(agent.id)]
    await issuer.sql('UPDATE impersonation_sessions SET ended_at = now() WHERE subject_id = $1', [agent.id])
    expect(await exchangeAs(opaque)).toMatchObject(refusal('actor_token_invalid'))
    expect(await exchangeAs(jwt)).toMatchObject(refusal('actor_token_invalid'))
  })

  test('a machine’s', async () => {
    expect(await exchangeAs(await issuer.managementToken())).toMatchObject(refusal('actor_token_invalid'))
  })

  test('a subject token, a secret, nonsense', async () => {
    for (const token of [await issuer.subjectToken(agent.id), client.secret!, 'a.b.c', 'nothing']) {
      expect(await exchangeAs(token)).toMatchObject(refusal('actor_token_invalid'))
    }
  })

  test('tampered with, unsigned, signed by somebody else, of another issuer or type', async () => {
    const token = await jwtOf(agent.id)
    const [header, payload, signature] = token.split('.') as [string, string, string]
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString())
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const { privateKey } = await generateKeyPair('ES256', { extractable: true })
    const sign = (members: object, head: object = {}) =>
      new SignJWT({ ...claims, ...members })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid, ...head })
        .sign(privateKey)
    // Algorithm confusion: the public key as the secret of an HMAC.
    const { body } = await request(`${issuer.url}/oidc/jwks`)
    const hmac = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid })
      .sign(Buffer.from(JSON.stringify(body.keys[0])))

    const forged = [
      `${header}.${encode({ ...claims, sub: customer.id })}.${signature}`,
      `${encode({ alg: 'none', typ: 'at+jwt', kid })}.${payload}.`,
      hmac,
      await sign({}),
      await sign({ iss: 'https://other.example/oidc' }),
      await sign({}, { jwk: await exportJWK(privateKey) }),
      await sign({}, { kid: '../../etc/passwd' }),
      await sign({}, { typ: 'JWT' }),
    ]
    for (const actorToken of forged) expect(await exchangeAs(actorToken)).toMatchObject(refusal('actor_token_invalid'))
    expect((await exchangeAs(token)).status).toBe(200)
  })

  test('of a user who was suspended or deleted', async () => {
    const user = await issuer.createUser()
    const tokens = [await issuer.actorToken(client, user.id), await jwtOf(user.id)]
    await issuer.suspend(user.id)
    for (const token of tokens) expect(await exchangeAs(token)).toMatchObject(refusal('actor_suspended'))
    await issuer.sql('DELETE FROM users WHERE id = $1', [user.id])
    for (const token of tokens) expect(await exchangeAs(token)).toMatchObject(refusal('actor_token_invalid'))
  })
})
