import { afterAll, beforeAll, expect, test } from 'vitest'
import { accessTokenType, startTestIssuer, type TestIssuer, tokenExchange } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

/** Who tried to act as somebody and was refused stands in the audit trail as well. */

let issuer: TestIssuer
let orders: string
let desk: TestApplication
let alice: string
let agent: string
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  desk = await issuer.createApplication()
  ;[alice, agent] = [(await issuer.createUser()).id, (await issuer.createUser()).id]
})
afterAll(() => issuer.close())

interface Row {
  result: string
  application_id: string
  user_id: string | null
  payload: Record<string, unknown>
}
/** The rows that answer the condition, as soon as there are `count` of them. They are written in batches. */
const rowsOf = async (count: number, condition: string, values: unknown[]): Promise<Row[]> => {
  let rows: Row[] = []
  await expect
    .poll(
      async () => {
        rows = await issuer.sql<Row>(
          `SELECT result, application_id, user_id, payload FROM logs WHERE ${condition} ORDER BY created_at, id`,
          values,
        )
        return rows.length
      },
      { timeout: 10_000 },
    )
    .toBe(count)
  return rows
}
const refusedBy = (client: TestApplication, count: number) =>
  rowsOf(count, `key = 'ExchangeTokenBy.TokenExchange' AND result = 'Error' AND application_id = $1`, [client.id])

test('a refused exchange says who tried to act as whom, through which client, why, with which ticket, and what was wrong', async () => {
  const subjectToken = await issuer.subjectToken(alice, {
    clientId: desk.id,
    reason: 'wrong invoice',
    ticket: 'T-7',
  })
  const thief = await issuer.createApplication()
  const actor_token = await issuer.actorToken(desk, agent)
  const form = { resource: orders, scope: 'read:orders', actor_token, actor_token_type: accessTokenType }
  const refused = await issuer.exchange(thief, subjectToken, form)
  expect(refused).toMatchObject({ status: 400, body: { reason: 'subject_token_bound' } })

  const [row] = await refusedBy(thief, 1)
  expect(row).toEqual({
    result: 'Error',
    application_id: thief.id,
    user_id: alice,
    payload: {
      key: 'ExchangeTokenBy.TokenExchange',
      result: 'Error',
      applicationId: thief.id,
      applicationSecret: { name: 'Default secret' },
      userId: alice,
      ip: '127.0.0.1',
      userAgent: expect.any(String),
      params: {
        grant_type: tokenExchange,
        subject_token_type: accessTokenType,
        resource: orders,
        scope: 'read:orders',
      },
      actorId: agent,
      creatorId: issuer.bootstrap.id,
      error: { code: 'invalid_grant', reason: 'subject_token_bound', message: refused.body.error_description },
      reason: 'wrong invoice',
      ticket: 'T-7',
    },
  })
  for (const token of [subjectToken, actor_token, thief.secret!]) {
    expect(JSON.stringify(row) + issuer.logged()).not.toContain(token)
  }
})

test('of parallel exchanges over two instances one succeeds, and every other is a row', async () => {
  const client = await issuer.createApplication()
  const subjectToken = await issuer.subjectToken(alice)
  await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      issuer.exchange(client, subjectToken, { resource: orders }, { instance: index % 2 }),
    ),
  )
  const rows = await refusedBy(client, 19)
  for (const { user_id, payload } of rows) {
    expect(user_id).toBe(alice)
    expect(payload['error']).toMatchObject({ reason: 'subject_token_consumed' })
  }
})

test('what names nobody is a row only when the client has proven who it is', async () => {
  const publicClient = await issuer.createApplication({ type: 'SPA' })
  const client = await issuer.createApplication()
  for (const one of [publicClient, client]) {
    const answer = await issuer.exchange(one, 'sub_nonsense', { resource: orders })
    expect(answer).toMatchObject({ body: { reason: 'subject_token_unknown' } })
    const wrongTarget = await issuer.exchange(one, await issuer.subjectToken(alice), { resource: `${orders}/` })
    expect(wrongTarget).toMatchObject({ body: { error: 'invalid_target' } })
  }
  expect((await refusedBy(client, 2)).map(({ user_id }) => user_id)).toEqual([null, alice])
  expect((await refusedBy(publicClient, 1)).map(({ user_id }) => user_id)).toEqual([alice])
})

test('a client that may not exchange and tries is a row', async () => {
  const thirdParty = await issuer.createApplication({ isThirdParty: true })
  const answer = await issuer.exchange(thirdParty, await issuer.subjectToken(alice), { resource: orders })
  expect(answer).toMatchObject({ status: 400, body: { error: 'unauthorized_client' } })
  expect(await refusedBy(thirdParty, 1)).toMatchObject([
    { user_id: null, payload: { ip: '127.0.0.1', error: { code: 'unauthorized_client' } } },
  ])
})

test('a refused request for a subject token is a row, and one that succeeds says for whom and why', async () => {
  await issuer.suspend(agent)
  const asked = { reason: 'curious', ticket: 'T-9', actorId: alice, clientId: desk.id }
  expect((await issuer.api('POST', '/subject-tokens', { userId: agent, ...asked })).status).toBe(422)
  expect((await issuer.api('POST', '/subject-tokens', { userId: 'nobody', reason: 'curious' })).status).toBe(404)
  await issuer.suspend(agent, false)
  const { subjectToken } = (await issuer.api('POST', '/subject-tokens', { userId: agent, ...asked })).body

  const rows = await rowsOf(3, `key = 'Management.createSubjectToken' AND payload->>'reason' = 'curious'`, [])
  const byOutcome = Object.groupBy(rows, ({ result, user_id }) => `${result} ${user_id === agent}`)
  expect(byOutcome['Error true']).toMatchObject([
    {
      application_id: issuer.bootstrap.id,
      payload: { error: { code: 'user.suspended' }, ticket: 'T-9', actorId: alice, boundClientId: desk.id },
    },
  ])
  expect(byOutcome['Error false']).toMatchObject([
    { user_id: 'nobody', payload: { error: { code: 'entity.relation_foreign_key_not_found' } } },
  ])
  expect(byOutcome['Success true']).toMatchObject([
    { application_id: issuer.bootstrap.id, payload: { ticket: 'T-9', actorId: alice, boundClientId: desk.id } },
  ])
  expect(JSON.stringify(rows)).not.toContain(subjectToken)
})
