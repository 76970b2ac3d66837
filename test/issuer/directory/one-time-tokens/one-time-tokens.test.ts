import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkOneTimeToken, consumeOneTimeToken } from '../../../../issuer/directory/one-time-tokens/use.ts'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
})
afterAll(() => api.close())

const email = 'ada@example.test'
const make = (body: object = {}) => api.expect(201, 'POST', '/one-time-tokens', { email, ...body })
const verify = async (body: object) => {
  const answer = await api.call('POST', '/one-time-tokens/verify', { email, ...body })
  return [answer.status, answer.body.code ?? answer.body.status]
}

test('a token is shown once, kept as a digest, and used once', async () => {
  const before = Date.now()
  const context = { jitOrganizationIds: ['one'], interactionEvent: 'Register' }
  const { token, ...made } = await make({ expiresIn: 60, context })
  expect(made).toEqual({
    ...{ tenantId: 'default', id: expect.any(String), email, context, status: 'active' },
    ...{ createdAt: expect.any(Number), expiresAt: made.createdAt + 60_000 },
  })
  expect(made.createdAt).toBeGreaterThan(before - 60_000)
  expect(await api.expect(200, 'GET', `/one-time-tokens/${made.id}`)).toEqual(made)

  const { rows } = await api.database.pool.query('SELECT one_time_tokens::text AS row FROM one_time_tokens')
  const { rows: logs } = await api.database.pool.query('SELECT logs::text AS row FROM logs')
  for (const { row } of [...rows, ...logs]) expect(row).not.toContain(token)
  expect(api.logged()).not.toContain(token)

  // Somebody else's address uses nothing up.
  expect(await verify({ token, email: 'eve@example.test' })).toEqual([400, 'one_time_token.email_mismatch'])
  expect(await verify({ token, email: 'ADA@example.test' })).toEqual([200, 'consumed'])
  expect(await verify({ token })).toEqual([400, 'one_time_token.token_consumed'])
  expect(await verify({ token: 'unknown' })).toEqual([404, 'one_time_token.token_not_found'])
  expect(await api.events()).toEqual([])
})

test('without a time a token is good for ten minutes', async () => {
  const { createdAt, expiresAt, context } = await make()
  expect([expiresAt - createdAt, context]).toEqual([600_000, {}])
})

test('an expired token, and one that was revoked or ended, is told as such', async () => {
  const expired = await make()
  await api.database.pool.query('UPDATE one_time_tokens SET expires_at = now() WHERE id = $1', [expired.id])
  expect(await verify(expired)).toEqual([400, 'one_time_token.token_expired'])
  expect(await api.expect(200, 'GET', `/one-time-tokens/${expired.id}`)).toMatchObject({ status: 'expired' })
  for (const [status, code] of [
    ['revoked', 'one_time_token.token_revoked'],
    ['expired', 'one_time_token.token_expired'],
    ['consumed', 'one_time_token.token_consumed'],
  ]) {
    const { id, token } = await make()
    expect(await api.expect(200, 'PUT', `/one-time-tokens/${id}/status`, { status })).toMatchObject({ id, status })
    expect(await verify({ token })).toEqual([400, code])
    // What has ended stays as it ended.
    const again = await api.expect(200, 'PUT', `/one-time-tokens/${id}/status`, { status: 'revoked' })
    expect(again).toMatchObject({ status })
    const back = await api.call('PUT', `/one-time-tokens/${id}/status`, { status: 'active' })
    expect([back.status, back.body.code]).toEqual([400, 'one_time_token.cannot_reactivate_token'])
  }
})

test('tokens are listed by address and status, and deleted', async () => {
  const listed = async (query: string) =>
    (await api.expect(200, 'GET', `/one-time-tokens?${query}`)).map(({ id }: { id: string }) => id)
  const one = await make({ email: 'list@example.test' })
  const two = await make({ email: 'List@example.test' })
  await verify({ ...one, email: 'list@example.test' })
  expect(await listed('email=LIST@example.test')).toEqual([two.id, one.id])
  expect(await listed('email=list@example.test&status=consumed')).toEqual([one.id])
  expect(await listed('email=list@example.test&page=1&page_size=1')).toEqual([two.id])
  await api.expect(204, 'DELETE', `/one-time-tokens/${two.id}`)
  await api.expect(404, 'DELETE', `/one-time-tokens/${two.id}`)
  await api.expect(404, 'GET', `/one-time-tokens/${two.id}`)
  await api.expect(404, 'PUT', `/one-time-tokens/${two.id}/status`, { status: 'revoked' })
  expect(await verify({ ...two, email: 'list@example.test' })).toEqual([404, 'one_time_token.token_not_found'])
})

test('a token for one purpose is good for no other, and checking uses nothing up', async () => {
  const { token } = await make({ context: { interactionEvent: 'ForgotPassword' } })
  const { query } = api.database
  const presented = { email, token }
  expect(await checkOneTimeToken(query, { ...presented, event: 'SignIn' })).toEqual({
    refusal: 'one_time_token.interaction_event_mismatch',
  })
  expect(await checkOneTimeToken(query, { ...presented, event: 'ForgotPassword' })).toMatchObject({
    row: { status: 'active' },
  })
  expect(await consumeOneTimeToken(query, { ...presented, event: 'Register' })).toEqual({
    refusal: 'one_time_token.interaction_event_mismatch',
  })
  expect(await consumeOneTimeToken(query, presented)).toMatchObject({ row: { status: 'consumed' } })
})

test('of 50 who present a token at once, one gets it', async () => {
  const { token } = await make()
  const answers = await Promise.all(Array.from({ length: 50 }, () => verify({ token })))
  expect(answers.filter(([status]) => status === 200)).toHaveLength(1)
  expect(answers.filter(([, code]) => code === 'one_time_token.token_consumed')).toHaveLength(49)
})

test('a token needs the permission for users', async () => {
  const options = { token: api.token({ scope: 'organizations read' }) }
  expect((await api.call('POST', '/one-time-tokens', { email }, options)).status).toBe(403)
  await api.expect(201, 'POST', '/one-time-tokens', { email }, { token: api.token({ scope: 'users' }) })
  for (const body of [{}, { email: 'no address' }, { email, expiresIn: 0 }, { email, context: { other: 1 } }]) {
    expect((await api.call('POST', '/one-time-tokens', body)).status).toBe(400)
  }
})
