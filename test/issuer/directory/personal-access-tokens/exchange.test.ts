import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { accessTokenType, basic, formOf, request, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

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

const waitingForLocks = (count: number) =>
  expect
    .poll(async () => {
      const waiting = await issuer.sql(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      return waiting.length
    })
    .toBe(count)

test('a deletion or suspension that is under way is waited for, and refuses the exchange', async () => {
  for (const [change, reason] of [
    ['DELETE FROM personal_access_tokens WHERE user_id = $1', 'subject_token_unknown'],
    ['UPDATE users SET is_suspended = true WHERE id = $1', 'subject_suspended'],
  ] as const) {
    const token = await make()
    const other = await issuer.database.pool.connect()
    try {
      await other.query('BEGIN')
      await other.query(change, [user.id])
      const pending = exchange(token)
      await waitingForLocks(1)
      await other.query('COMMIT')
      expect(await pending).toMatchObject(refusal(reason))
    } finally {
      other.release()
    }
  }
})

const introspect = async (token: string) => {
  const reader = await issuer.createMachine(issuer.managementResource, ['revocations'])
  const answer = await request(`${issuer.urls[1]}/oidc/token/introspection`, {
    method: 'POST',
    headers: { authorization: basic(reader) },
    body: formOf({ token }),
  })
  return answer.body.active as boolean
}

test('deleting it ends what it was exchanged for, JWTs and opaque tokens, and nothing else', async () => {
  const [leaked, other] = [await make({ name: 'leaked' }), await make({ name: 'other' })]
  const tokensOf = async (token: string): Promise<string[]> => [
    (await exchange(token)).body.access_token,
    (await exchange(token, {}, { instance: 1 })).body.access_token,
    (await exchange(token, { resource: undefined, scope: 'openid' })).body.access_token,
  ]
  const [ended, kept] = [await tokensOf(leaked), await tokensOf(other)]
  for (const token of [...ended, ...kept]) expect(await introspect(token)).toBe(true)
  const path = `/users/${user.id}/personal-access-tokens`
  expect((await issuer.api('POST', `${path}/delete`, { name: 'leaked' })).status).toBe(204)
  for (const token of ended) expect(await introspect(token)).toBe(false)
  for (const token of kept) expect(await introspect(token)).toBe(true)
  // The feed tells verifiers of the two JWTs.
  const jtis = await Promise.all(ended.slice(0, 2).map(async (jwt) => (await issuer.verify(jwt, orders)).jti))
  const revoked = await issuer.sql<{ value: string }>(
    `SELECT value FROM revocations WHERE kind = 'jti' AND value = ANY ($1)`,
    [jtis],
  )
  expect(revoked).toHaveLength(2)
})

test('of exchanges that race with a deletion, over two instances, none leaves a token that counts', async () => {
  const token = await make()
  const deletion = () => issuer.api('POST', `/users/${user.id}/personal-access-tokens/delete`, { name: 'CI' })
  const exchanges = Array.from({ length: 30 }, (_, index) => exchange(token, {}, { instance: index % 2 }))
  const [deleted, ...answers] = await Promise.all([deletion(), ...exchanges])
  expect(deleted.status).toBe(204)
  for (const answer of answers) {
    if (answer.status === 200) expect(await introspect(answer.body.access_token)).toBe(false)
    else expect(answer).toMatchObject(refusal('subject_token_unknown'))
  }
})

test('issues that have expired go when new ones come', async () => {
  const token = await make()
  await exchange(token)
  await issuer.sql(`UPDATE personal_access_token_issues SET expires_at = now() - interval '1 second'`)
  await exchange(token)
  const left = await issuer.sql(
    'SELECT FROM personal_access_token_issues i JOIN personal_access_tokens p USING (digest) WHERE p.user_id = $1',
    [user.id],
  )
  expect(left).toHaveLength(1)
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
