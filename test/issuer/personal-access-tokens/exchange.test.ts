import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { accessTokenType, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'
import type { TestApplication } from '../../support/issuer-data.ts'

const personalAccessTokenType = 'urn:logto:token-type:personal_access_token'

let issuer: TestIssuer
let orders: string
let client: TestApplication
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  orders = await issuer.createResource({ scopes: ['read:orders', 'write:orders', 'delete:orders'] })
  client = await issuer.createApplication({ type: 'SPA' })
})
afterAll(() => issuer.close())

let user: { id: string }
beforeEach(async () => {
  user = await issuer.createUser()
  await issuer.grantUser(user.id, orders, ['read:orders', 'write:orders'])
})

const make = async (members: object = {}): Promise<string> => {
  const answer = await issuer.api('POST', `/users/${user.id}/personal-access-tokens`, { name: 'CI', ...members })
  expect(answer.status).toBe(201)
  return answer.body.value
}
const exchange = (token: string, form = {}, options = {}) =>
  issuer.exchange(
    client,
    token,
    { subject_token_type: personalAccessTokenType, resource: orders, scope: 'read:orders write:orders', ...form },
    options,
  )
const refusal = (reason: string) => ({ status: 400, body: { error: 'invalid_grant', reason } })

test('a personal access token is exchanged, again and again, for an access token of its user, and opens no session', async () => {
  const token = await make()
  const answers = [await exchange(token), await exchange(token, {}, { instance: 1 })]
  for (const answer of answers) {
    expect(answer).toMatchObject({
      status: 200,
      body: {
        issued_token_type: accessTokenType,
        token_type: 'Bearer',
        expires_in: 3600,
        scope: 'read:orders write:orders',
      },
    })
    expect(answer.body).not.toHaveProperty('refresh_token')
    const claims = await issuer.verify(answer.body.access_token, orders)
    expect(claims).toMatchObject({ sub: user.id, client_id: client.id, amr: ['pat'] })
    expect(claims).not.toHaveProperty('sid')
    expect(claims).not.toHaveProperty('act')
  }
  expect(answers[0]!.body.access_token).not.toBe(answers[1]!.body.access_token)
  expect(await issuer.sql('SELECT FROM impersonation_sessions WHERE subject_id = $1', [user.id])).toEqual([])
  const rows = await issuer.sql<{ payload: object }>(
    'SELECT result, payload FROM logs WHERE user_id = $1 AND key = $2',
    [user.id, 'ExchangeTokenBy.TokenExchange'],
  )
  expect(rows).toMatchObject(Array(2).fill({ result: 'Success', payload: { personalAccessToken: 'CI' } }))
  expect(JSON.stringify(rows) + issuer.logged()).not.toContain(token.slice(4))
})

test('its scopes narrow what is granted, whatever the user holds', async () => {
  const token = await make({ scopes: ['read:orders', 'delete:orders'] })
  expect((await exchange(token)).body.scope).toBe('read:orders')
  expect((await exchange(token, { scope: 'openid delete:orders' })).body.scope).toBe('')
})

test('what came from it cannot be exchanged for more than its scopes allow', async () => {
  const token = await make({ scopes: ['read:orders', 'openid'] })
  const jwt = (await exchange(token, { scope: 'read:orders openid' })).body.access_token
  const opaque = (await exchange(token, { scope: 'openid', resource: undefined })).body.access_token
  for (const subject of [jwt, opaque]) {
    const more = await issuer.exchange(client, subject, { resource: orders, scope: 'write:orders' })
    expect(more).toMatchObject(refusal('subject_token_bound'))
  }
})

test('it ends: expired, deleted, with its user suspended or deleted', async () => {
  const path = `/users/${user.id}/personal-access-tokens`
  const expired = await make({ name: 'expired', expiresAt: Date.now() + 60_000 })
  await issuer.sql(`UPDATE personal_access_tokens SET expires_at = now() - interval '1 second' WHERE name = 'expired'`)
  expect(await exchange(expired)).toMatchObject(refusal('subject_token_expired'))

  const deleted = await make({ name: 'deleted' })
  expect((await exchange(deleted, {}, { instance: 1 })).status).toBe(200)
  expect((await issuer.api('POST', `${path}/delete`, { name: 'deleted' })).status).toBe(204)
  expect(await exchange(deleted, {}, { instance: 1 })).toMatchObject(refusal('subject_token_unknown'))

  const token = await make()
  await issuer.api('PATCH', `/users/${user.id}/is-suspended`, { isSuspended: true })
  expect(await exchange(token)).toMatchObject(refusal('subject_suspended'))
  // A suspension ends what was issued, not what the user has to ask for more.
  await issuer.api('PATCH', `/users/${user.id}/is-suspended`, { isSuspended: false })
  expect((await exchange(token)).status).toBe(200)
  await issuer.api('DELETE', `/users/${user.id}`)
  expect(await exchange(token)).toMatchObject(refusal('subject_token_unknown'))
})

test('an access token does not outlive it', async () => {
  const token = await make({ expiresAt: Date.now() + 60_000 })
  const { body } = await exchange(token)
  expect(body.expires_in).toBeGreaterThan(50)
  expect(body.expires_in).toBeLessThanOrEqual(60)
})

test('a deletion that is under way when an exchange begins is seen by the time the token is issued', async () => {
  const token = await make()
  const block = await issuer.database.pool.connect()
  try {
    // The exchange has read the token and waits to hold its user.
    await block.query('BEGIN')
    await block.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [user.id])
    const pending = exchange(token)
    await expect
      .poll(async () => {
        const waiting = await issuer.sql(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
        return waiting.length
      })
      .toBe(1)
    await block.query('UPDATE users SET is_suspended = true WHERE id = $1', [user.id])
    await block.query('COMMIT')
    expect(await pending).toMatchObject(refusal('subject_suspended'))
  } finally {
    block.release()
  }
})

test('it is a subject token under its own name only, exactly as it was shown', async () => {
  const token = await make()
  expect(await exchange(token, { subject_token_type: accessTokenType })).toMatchObject(refusal('subject_token_unknown'))
  const subjectToken = await issuer.subjectToken(user.id)
  for (const wrong of [token.slice(0, -1), `${token}x`, token.toUpperCase(), token.slice(4), 'pat_', subjectToken]) {
    expect(await exchange(wrong)).toMatchObject(refusal('subject_token_unknown'))
  }
  expect((await issuer.exchange(client, subjectToken, { scope: 'openid' })).status).toBe(200)
})

test('it is no access token: not for the Management API, not as actor token, not for introspection', async () => {
  const token = await make()
  expect(await issuer.api('GET', '/users', undefined, { token })).toMatchObject({ status: 401 })
  const subjectToken = await issuer.subjectToken((await issuer.createUser()).id)
  const form = { resource: orders, actor_token: token, actor_token_type: accessTokenType }
  expect(await issuer.exchange(client, subjectToken, form)).toMatchObject({ body: { reason: 'actor_token_invalid' } })
})

test('an actor proven by one is recorded as such, and only with openid among its scopes', async () => {
  const act = async (token: string, form = {}) => {
    const actor = await exchange(token, { scope: 'openid', ...form })
    expect(actor.status).toBe(200)
    const subject = await issuer.createUser()
    return issuer.exchange(client, await issuer.subjectToken(subject.id), {
      resource: orders,
      actor_token: actor.body.access_token,
      actor_token_type: accessTokenType,
    })
  }
  const token = await make()
  for (const form of [{}, { resource: undefined }]) {
    const answer = await act(token, form)
    const { sid, act: actClaim } = await issuer.verify(answer.body.access_token, orders)
    expect(actClaim).toEqual({ sub: user.id })
    const session = await issuer.api('GET', `/impersonations/${sid}`)
    expect(session.body).toMatchObject({ actorId: user.id, actorVia: 'personal_access_token' })
  }
  const narrow = await make({ name: 'narrow', scopes: ['read:orders'] })
  expect(await act(narrow)).toMatchObject({ status: 400, body: { reason: 'actor_token_scope' } })
})

test('a client that may not exchange cannot use it', async () => {
  const token = await make()
  const form = { subject_token_type: personalAccessTokenType, resource: orders }
  for (const options of [{ isThirdParty: true }, { allowTokenExchange: false }]) {
    const other = await issuer.createApplication(options)
    expect(await issuer.exchange(other, token, form)).toMatchObject({
      status: 400,
      body: { error: 'unauthorized_client' },
    })
  }
})

test('its last use is noted, to the minute', async () => {
  const token = await make()
  const lastUsedAt = async () =>
    (await issuer.api('GET', `/users/${user.id}/personal-access-tokens`)).body[0].lastUsedAt as number | null
  expect(await lastUsedAt()).toBeNull()
  await exchange(token)
  await expect.poll(lastUsedAt).toEqual(expect.any(Number))
  const first = await lastUsedAt()
  expect(Math.abs(Date.now() - first!)).toBeLessThan(60_000)

  // Within the minute nothing is written, after it is.
  const before = await issuer.sql('SELECT xmin::text FROM personal_access_tokens WHERE user_id = $1', [user.id])
  await Promise.all(Array.from({ length: 10 }, () => exchange(token)))
  expect(await issuer.sql('SELECT xmin::text FROM personal_access_tokens WHERE user_id = $1', [user.id])).toEqual(
    before,
  )
  await issuer.sql(
    `UPDATE personal_access_tokens SET last_used_at = now() - interval '61 seconds' WHERE user_id = $1`,
    [user.id],
  )
  await Promise.all(Array.from({ length: 10 }, () => exchange(token)))
  await expect.poll(lastUsedAt).toBeGreaterThanOrEqual(first!)
})
