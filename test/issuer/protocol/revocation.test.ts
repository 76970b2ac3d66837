import { allowInsecureRequests, ClientSecretBasic, processRevocationResponse, revocationRequest } from 'oauth4webapi'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tokenDigest } from '../../../issuer/tokens/token-digest.ts'
import { accessTokenType, basic, formOf, request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

let issuer: TestIssuer
let orders: string
let app: TestApplication
let machine: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer()
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  app = await issuer.createApplication()
  machine = await issuer.createMachine(orders, ['read:orders'])
})
afterAll(() => issuer.close())

const revoke = (token: string | undefined, client: TestApplication, form = {}) =>
  request(`${issuer.url}/oidc/token/revocation`, {
    method: 'POST',
    headers: client.secret === undefined ? {} : { authorization: basic(client) },
    body: formOf({ token, ...(client.secret === undefined && { client_id: client.id }), ...form }),
  })
const isActive = async (token: string): Promise<boolean> => {
  const answer = await request(`${issuer.url}/oidc/token/introspection`, {
    method: 'POST',
    headers: { authorization: basic(issuer.bootstrap) },
    body: formOf({ token }),
  })
  return answer.body.active
}
const done = { status: 200, body: {} }
const countOf = async (text: string, values: unknown[]) => (await issuer.sql<{ count: number }>(text, values))[0]!.count
const logged = (clientId: string) =>
  countOf(`SELECT count(*) FROM logs WHERE key = 'RevokeToken' AND application_id = $1`, [clientId])

test('a client revokes its JWT; once more changes nothing', async () => {
  const token = await issuer.clientToken(machine, orders, 'read:orders')
  const other = await issuer.clientToken(machine, orders, 'read:orders')
  expect(await revoke(token, machine)).toMatchObject(done)
  expect([await isActive(token), await isActive(other)]).toEqual([false, true])
  expect(await revoke(token, machine, { token_type_hint: 'refresh_token' })).toMatchObject(done)
  const { jti } = await issuer.verify(token, orders)
  expect(await issuer.sql('SELECT kind FROM revocations WHERE value = $1', [jti])).toEqual([{ kind: 'jti' }])
})

test('oauth4webapi revokes', async () => {
  const token = await issuer.clientToken(machine, orders, 'read:orders')
  const server = { issuer: issuer.issuer, revocation_endpoint: `${issuer.url}/oidc/token/revocation` }
  const client = { client_id: machine.id }
  const options = { [allowInsecureRequests]: true } as const
  const response = await revocationRequest(server, client, ClientSecretBasic(machine.secret!), token, options)
  expect(await processRevocationResponse(response)).toBeUndefined()
  expect(await isActive(token)).toBe(false)
})

test.each([
  ['a JWT', { resource: true }],
  ['an opaque token', { resource: false }],
])('an impersonation ends with its token: %s', async (_name, { resource }) => {
  const user = await issuer.createUser()
  const answer = await issuer.exchange(app, await issuer.subjectToken(user.id), {
    ...(resource ? { resource: orders } : { scope: 'openid' }),
  })
  expect(answer.status).toBe(200)
  expect(await revoke(answer.body.access_token, app)).toMatchObject(done)
  expect(await isActive(answer.body.access_token)).toBe(false)
  const [session] = await issuer.sql(
    'SELECT id, ended_at, ended_by FROM impersonation_sessions WHERE subject_id = $1',
    [user.id],
  )
  expect(session).toMatchObject({ ended_at: expect.any(Date), ended_by: app.id })
  const events = await issuer.sql<{ type: string; payload: string }>(
    `SELECT type, convert_from(payload, 'UTF8') AS payload FROM outbox WHERE entity_id = $1 ORDER BY seq`,
    [session!['id']],
  )
  expect(events.map(({ type }) => type)).toEqual(['Impersonation.Started', 'Impersonation.Ended'])
  expect(JSON.parse(events[1]!.payload)).toMatchObject({
    path: '/oidc/token/revocation',
    data: { id: session!['id'], subjectId: user.id, endedBy: app.id },
  })
})

test('the token of another client: 200, and it still counts', async () => {
  const stranger = await issuer.createApplication()
  const jwt = await issuer.clientToken(machine, orders, 'read:orders')
  const user = await issuer.createUser()
  const opaque = await issuer.actorToken(app, user.id)
  expect(await revoke(jwt, stranger)).toMatchObject(done)
  expect(await revoke(opaque, stranger)).toMatchObject(done)
  expect([await isActive(jwt), await isActive(opaque)]).toEqual([true, true])
  expect(await logged(stranger.id)).toBe(0)
})

test.each(['garbage', 'a.b.c', 'sub_unknown'])('%s is no token: 200 all the same', async (token) => {
  expect(await revoke(token, app)).toMatchObject(done)
})

test('a subject token is not revoked here', async () => {
  const user = await issuer.createUser()
  const subjectToken = await issuer.subjectToken(user.id)
  expect(await revoke(subjectToken, app)).toMatchObject(done)
  expect((await issuer.exchange(app, subjectToken, { resource: orders })).status).toBe(200)
})

test('a public client revokes its own token by naming itself', async () => {
  const browserApp = await issuer.createApplication({ type: 'SPA', allowTokenExchange: true })
  const user = await issuer.createUser()
  const answer = await issuer.exchange(browserApp, await issuer.subjectToken(user.id), { resource: orders })
  expect(answer.status).toBe(200)
  expect(await revoke(answer.body.access_token, browserApp)).toMatchObject(done)
  expect(await isActive(answer.body.access_token)).toBe(false)
})

test('who cannot prove to be the client revokes nothing', async () => {
  const token = await issuer.clientToken(machine, orders, 'read:orders')
  expect(await revoke(token, { id: machine.id, secret: 'wrong' })).toMatchObject({
    status: 401,
    body: { error: 'invalid_client' },
  })
  expect(await revoke(token, { id: machine.id })).toMatchObject({ status: 401, body: { error: 'invalid_client' } })
  expect(await revoke(undefined, machine)).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  expect(await isActive(token)).toBe(true)
})

test('when it cannot be stored the answer is 503, not 200, and nothing is half done', async () => {
  const user = await issuer.createUser()
  const { body } = await issuer.exchange(app, await issuer.subjectToken(user.id), { resource: orders })
  await issuer.sql('ALTER TABLE revocations RENAME TO revocations_away')
  const answer = await revoke(body.access_token, app).finally(() =>
    issuer.sql('ALTER TABLE revocations_away RENAME TO revocations'),
  )
  expect(answer).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } })
  expect(answer.headers.get('retry-after')).toBe('5')
  expect(await isActive(body.access_token)).toBe(true)
})

test('no token stands in the audit trail or the log', async () => {
  const token = await issuer.clientToken(machine, orders, 'read:orders')
  await revoke(token, machine)
  const { jti } = await issuer.verify(token, orders)
  const rows = await issuer.sql<{ payload: object }>(
    `SELECT payload FROM logs WHERE payload->>'tokenId' = $1 AND key = 'RevokeToken'`,
    [jti],
  )
  expect(rows).toHaveLength(1)
  expect(JSON.stringify(rows) + issuer.logged()).not.toContain(token)
})

test('a revoked token is neither subject nor actor of an exchange', async () => {
  const [subject, actor] = [await issuer.createUser(), await issuer.createUser()]
  const actorAnswer = await issuer.exchange(app, await issuer.subjectToken(actor.id), {
    resource: orders,
    scope: 'openid',
  })
  const actorToken = actorAnswer.body.access_token
  const exchangeAs = async () =>
    issuer.exchange(app, await issuer.subjectToken(subject.id), {
      ...{ resource: orders, actor_token: actorToken, actor_token_type: accessTokenType },
    })
  expect((await exchangeAs()).status).toBe(200)
  await revoke(actorToken, app)
  expect(await exchangeAs()).toMatchObject({
    status: 400,
    body: { error: 'invalid_grant', reason: 'actor_token_invalid' },
  })
})

test('an actor token is worth nothing once somebody behind its actor is suspended', async () => {
  const [subject, actor, behind] = [await issuer.createUser(), await issuer.createUser(), await issuer.createUser()]
  const exchange = async (user: { id: string }, actor_token: string, form = {}) =>
    issuer.exchange(app, await issuer.subjectToken(user.id), {
      ...{ scope: 'openid', actor_token, actor_token_type: accessTokenType, ...form },
    })
  const behindToken = await issuer.actorToken(app, behind.id)
  const opaque = (await exchange(actor, behindToken)).body.access_token
  const jwt = (await exchange(actor, behindToken, { resource: orders })).body.access_token
  expect((await exchange(subject, opaque)).status).toBe(200)
  expect((await exchange(subject, jwt)).status).toBe(200)
  await issuer.api('PATCH', `/users/${behind.id}/is-suspended`, { isSuspended: true })
  const refused = { status: 400, body: { error: 'invalid_grant', reason: 'actor_token_invalid' } }
  expect(await exchange(subject, opaque)).toMatchObject(refused)
  expect(await exchange(subject, jwt)).toMatchObject(refused)
})

test('a revoked access token cannot be exchanged as subject', async () => {
  const user = await issuer.createUser()
  // As signing in will issue it: without a session.
  await issuer.sql(
    `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at) VALUES ($1, $2, $3, 'openid', now() + interval '1 h')`,
    [tokenDigest('opaque-token', 'signed-in'), user.id, app.id],
  )
  const exchange = (subject: string) => issuer.exchange(app, subject, { resource: orders })
  const refused = { status: 400, body: { error: 'invalid_grant', reason: 'subject_token_expired' } }

  const jwt = (await exchange('signed-in')).body.access_token
  expect((await exchange(jwt)).status).toBe(200)
  await revoke(jwt, app)
  expect(await exchange(jwt)).toMatchObject(refused)
  await revoke('signed-in', app)
  expect(await exchange('signed-in')).toMatchObject(refused)
})
