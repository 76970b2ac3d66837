import { generateKeyPair, SignJWT } from 'jose'
import {
  allowInsecureRequests,
  ClientSecretBasic,
  introspectionRequest,
  processIntrospectionResponse,
} from 'oauth4webapi'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tokenDigest } from '../../../issuer/tokens/token-digest.ts'
import { accessTokenType, basic, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

let issuer: TestIssuer
let orders: string
let app: TestApplication
let machine: TestApplication
/** Holds the management permission `revocations`. */
let auditor: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  app = await issuer.createApplication()
  machine = await issuer.createMachine(orders, ['read:orders'])
  auditor = await issuer.createMachine(issuer.managementResource, ['revocations'])
})
afterAll(() => issuer.close())

const introspect = (token: string | undefined, caller: TestApplication | undefined = auditor, form = {}) =>
  request(`${issuer.url}/oidc/token/introspection`, {
    method: 'POST',
    headers: caller ? { authorization: basic(caller) } : {},
    body: formOf({ token, ...form }),
  })
const isActive = async (token: string, caller?: TestApplication): Promise<boolean> => {
  const answer = await introspect(token, caller)
  expect(answer.status).toBe(200)
  if (!answer.body.active) expect(answer.body).toEqual({ active: false })
  return answer.body.active
}

const userWithOrders = async () => {
  const { id } = await issuer.createUser()
  await issuer.grantUser(id, orders, ['read:orders'])
  return id
}
/** An access token for `subject` (a JWT for orders, or opaque), acted with by the holder of `actorToken`. */
const impersonate = async (
  subject: string,
  { actorToken, opaque = false }: { actorToken?: string; opaque?: boolean } = {},
) => {
  const answer = await issuer.exchange(app, await issuer.subjectToken(subject), {
    ...(opaque ? { scope: 'openid' } : { resource: orders, scope: 'read:orders openid' }),
    ...(actorToken && { actor_token: actorToken, actor_token_type: accessTokenType }),
  })
  expect(answer.status).toBe(200)
  return answer.body.access_token as string
}

describe('what is told', () => {
  test('a JWT: its claims, with the session and who acts', async () => {
    const [subject, actor] = [await userWithOrders(), await userWithOrders()]
    const token = await impersonate(subject, { actorToken: await issuer.actorToken(app, actor) })
    const claims = await issuer.verify(token, orders)
    const answer = await introspect(token)
    expect(answer.body).toEqual({ ...claims, active: true, token_type: 'Bearer' })
    expect(answer.body).toMatchObject({
      iss: issuer.issuer,
      sub: subject,
      aud: orders,
      client_id: app.id,
      scope: 'read:orders openid',
      sid: expect.any(String),
      act: { sub: actor },
    })
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('an opaque token: the same, without an audience', async () => {
    const [subject, actor] = [await userWithOrders(), await userWithOrders()]
    const actorToken = await issuer.actorToken(app, actor)
    const token = await impersonate(subject, { opaque: true, actorToken })
    const [session] = await issuer.sql('SELECT id FROM impersonation_sessions WHERE subject_id = $1', [subject])
    const { body } = await introspect(token)
    expect(body).toEqual({
      active: true,
      token_type: 'Bearer',
      iss: issuer.issuer,
      sub: subject,
      client_id: app.id,
      scope: 'openid',
      iat: expect.any(Number),
      exp: expect.any(Number),
      sid: session!['id'],
      act: { sub: actor },
    })
    expect(body.exp - body.iat).toBe(3600)
  })

  test('oauth4webapi reads the answer', async () => {
    const token = await issuer.clientToken(machine, orders, 'read:orders')
    const server = { issuer: issuer.issuer, introspection_endpoint: `${issuer.url}/oidc/token/introspection` }
    const response = await introspectionRequest(
      server,
      { client_id: machine.id },
      ClientSecretBasic(machine.secret!),
      token,
      {
        [allowInsecureRequests]: true,
      },
    )
    const answer = await processIntrospectionResponse(server, { client_id: machine.id }, response)
    expect(answer).toMatchObject({ active: true, sub: machine.id, aud: orders })
  })
})

describe('who may know', () => {
  test('a client knows its own tokens, and those for a resource on which it holds a permission', async () => {
    const token = await impersonate(await userWithOrders())
    expect(await isActive(token, app)).toBe(true)
    expect(await isActive(token, machine)).toBe(true)
  })

  test('to everybody else a token is inactive, like one that does not exist', async () => {
    const jwt = await impersonate(await userWithOrders())
    const opaque = await impersonate(await userWithOrders(), { opaque: true })
    const stranger = await issuer.createMachine(await issuer.createResource({ scopes: ['other'] }), ['other'])
    expect(await isActive(jwt, stranger)).toBe(false)
    expect(await isActive(opaque, stranger)).toBe(false)
    expect(await isActive(opaque, machine)).toBe(false)
    expect(await isActive(opaque, app)).toBe(true)
    expect(await isActive(opaque, auditor)).toBe(true)
  })

  test('without authentication there is no answer, not even "inactive"', async () => {
    const token = await impersonate(await userWithOrders())
    const browserApp = await issuer.createApplication({ type: 'SPA' })
    const refused = { status: 401, body: { error: 'invalid_client', code: 'oidc.invalid_client' } }
    const { url } = issuer
    const anonymous = { method: 'POST', body: formOf({ token }) }
    expect(await request(`${url}/oidc/token/introspection`, anonymous)).toMatchObject(refused)
    expect(await introspect(token, { id: app.id, secret: 'wrong' })).toMatchObject(refused)
    const naming = { method: 'POST', body: formOf({ token, client_id: browserApp.id }) }
    expect(await request(`${url}/oidc/token/introspection`, naming)).toMatchObject(refused)
  })

  test('a request without a token is refused', async () => {
    expect(await introspect(undefined)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })
})

describe('what is inactive', () => {
  test.each(['garbage', 'a.b.c', 'sub_unknown'])('%s', async (token) => {
    expect(await isActive(token)).toBe(false)
  })

  test('a subject token: it is no access token, and asking does not use it up', async () => {
    const user = await userWithOrders()
    const subjectToken = await issuer.subjectToken(user)
    expect(await isActive(subjectToken)).toBe(false)
    expect((await issuer.exchange(app, subjectToken, { resource: orders })).status).toBe(200)
  })

  test('a token signed by somebody else with our names in it', async () => {
    const claims = await issuer.verify(await impersonate(await userWithOrders()), orders)
    const { privateKey } = await generateKeyPair('ES256')
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'k' })
      .sign(privateKey)
    expect(await isActive(forged)).toBe(false)
  })

  test('an opaque token that has expired', async () => {
    const token = await impersonate(await userWithOrders(), { opaque: true })
    await issuer.sql(`UPDATE opaque_tokens SET expires_at = now() - interval '1 s' WHERE digest = $1`, [
      tokenDigest('opaque-token', token),
    ])
    expect(await isActive(token)).toBe(false)
  })

  test.each([
    ['a JWT', { opaque: false }],
    ['an opaque token', { opaque: true }],
  ])('%s at once after its session was ended', async (_name, options) => {
    const user = await userWithOrders()
    const token = await impersonate(user, options)
    expect(await isActive(token)).toBe(true)
    const [session] = await issuer.sql('SELECT id FROM impersonation_sessions WHERE subject_id = $1', [user])
    await issuer.api('POST', `/impersonations/${session!['id']}/end`)
    expect(await isActive(token)).toBe(false)
  })

  test.each([
    ['a JWT', 'its subject', { opaque: false, suspended: 'subject' }],
    ['a JWT', 'who acts', { opaque: false, suspended: 'actor' }],
    ['a JWT', 'who stands behind the actor', { opaque: false, suspended: 'behind' }],
    ['an opaque token', 'its subject', { opaque: true, suspended: 'subject' }],
    ['an opaque token', 'who acts', { opaque: true, suspended: 'actor' }],
    ['an opaque token', 'who stands behind the actor', { opaque: true, suspended: 'behind' }],
  ] as const)('%s at once after %s was suspended, and it stays so', async (_kind, _who, { opaque, suspended }) => {
    const people = { subject: await userWithOrders(), actor: await userWithOrders(), behind: await userWithOrders() }
    const behindToken = await issuer.actorToken(app, people.behind)
    const actorToken = await impersonate(people.actor, { actorToken: behindToken })
    const token = await impersonate(people.subject, { actorToken, opaque })
    expect((await introspect(token)).body.act).toEqual({ sub: people.actor, act: { sub: people.behind } })
    const suspend = (isSuspended: boolean) =>
      issuer.api('PATCH', `/users/${people[suspended]}/is-suspended`, { isSuspended })
    await suspend(true)
    expect(await isActive(token)).toBe(false)
    await suspend(false)
    expect(await isActive(token)).toBe(false)
  })

  test('a token whose user or client was deleted', async () => {
    const user = await userWithOrders()
    const token = await impersonate(user)
    await issuer.api('DELETE', `/users/${user}`)
    expect(await isActive(token)).toBe(false)

    const shortLived = await issuer.createMachine(orders, ['read:orders'])
    const own = await issuer.clientToken(shortLived, orders, 'read:orders')
    await issuer.api('DELETE', `/applications/${shortLived.id}`)
    expect(await isActive(own)).toBe(false)
  })

  test('what a client was issued before one of its secrets was removed; a secret that had expired takes nothing along', async () => {
    const client = await issuer.createMachine(orders, ['read:orders'])
    const yesterday = new Date(Date.now() - 86_400_000)
    await issuer.addSecret(client, { name: 'old', value: 'x'.repeat(43), expiresAt: yesterday })
    await issuer.addSecret(client, { name: 'leaked', value: 'y'.repeat(43) })
    const token = await issuer.clientToken(client, orders, 'read:orders')
    await issuer.api('DELETE', `/applications/${client.id}/secrets/old`)
    expect(await isActive(token)).toBe(true)
    await issuer.api('DELETE', `/applications/${client.id}/secrets/leaked`)
    expect(await isActive(token)).toBe(false)
  })
})

test('a management token that was revoked opens nothing any more', async () => {
  const admin = await issuer.createMachine(issuer.managementResource, ['read'])
  const token = await issuer.clientToken(admin, issuer.managementResource, 'read')
  expect((await issuer.api('GET', '/users', undefined, { token })).status).toBe(200)
  await request(`${issuer.url}/oidc/token/revocation`, {
    method: 'POST',
    headers: { authorization: basic(admin) },
    body: formOf({ token }),
  })
  expect(await issuer.api('GET', '/users', undefined, { token })).toMatchObject({
    status: 401,
    body: { code: 'auth.unauthorized' },
  })
})
