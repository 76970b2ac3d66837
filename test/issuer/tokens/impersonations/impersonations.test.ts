import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventTypes } from '../../../../events/catalogue.ts'
import { accessTokenType, startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import type { TestApplication } from '../../../support/issuer-data.ts'

let issuer: TestIssuer
let orders: string
let app: TestApplication
let alice: string
let bob: string
let agent: string
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
  orders = await issuer.createResource({ scopes: ['read:orders'] })
  app = await issuer.createApplication()
  const people = [await issuer.createUser(), await issuer.createUser(), await issuer.createUser()]
  ;[alice, bob, agent] = people.map(({ id }) => id) as [string, string, string]
  await issuer.grantUser(alice, orders, ['read:orders'])
})
afterAll(() => issuer.close())

/** Acts as the user; answers the id of the session. */
const impersonate = async (
  userId: string,
  { actor, ...members }: { actor?: string; [member: string]: unknown } = {},
) => {
  const answer = await issuer.exchange(app, await issuer.subjectToken(userId, members), {
    resource: orders,
    scope: 'read:orders',
    ...(actor && { actor_token: await issuer.actorToken(app, actor), actor_token_type: accessTokenType }),
  })
  expect(answer.status).toBe(200)
  return String((await issuer.verify(answer.body.access_token, orders))['sid'])
}
const end = (id: string, options = {}) => issuer.api('POST', `/impersonations/${id}/end`, undefined, options)
const idsOf = async (query: string): Promise<string[]> => {
  const answer = await issuer.api('GET', `/impersonations?${query}`)
  expect(answer.status).toBe(200)
  return answer.body.map(({ id }: { id: string }) => id)
}
const linesOf = (text: string): { id: string; startedAt: number }[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
const eventsOf = (id: string) =>
  issuer.sql<{ type: string; payload: string }>(
    `SELECT type, convert_from(payload, 'UTF8') AS payload FROM outbox WHERE entity_kind = 'impersonation' AND entity_id = $1 ORDER BY version`,
    [id],
  )
const endedTypes = async (id: string) => (await eventsOf(id)).map(({ type }) => type)

test('a list has names where they are asked for, of people and applications, and not of who was deleted', async () => {
  const [customer, leaver] = [await issuer.createUser({ name: 'Ada' }), await issuer.createUser({ name: 'Lee' })]
  await issuer.grantUser(customer.id, orders, ['read:orders'])
  const [named, left] = [
    await impersonate(customer.id, { actor: agent }),
    await impersonate(customer.id, { actor: leaver.id }),
  ]
  expect((await issuer.api('DELETE', `/users/${leaver.id}`)).status).toBe(204)
  const { body, headers } = await issuer.api('GET', `/impersonations?userId=${customer.id}&includeNames=true`)
  expect(headers.get('total-number')).toBe('2')
  const names = { [customer.id]: 'Ada', [app.id]: 'An application' }
  const one = await issuer.api('GET', `/impersonations/${named}`)
  expect(body.find(({ id }: { id: string }) => id === named)).toEqual({
    ...one.body,
    names: { ...names, [agent]: 'Somebody' },
  })
  expect(body.find(({ id }: { id: string }) => id === left)).toMatchObject({ actorId: leaver.id, names })
  expect(body.find(({ id }: { id: string }) => id === left).names).toEqual(names)
  const plain = await issuer.api('GET', `/impersonations?userId=${customer.id}`)
  expect(plain.body.map((row: object) => 'names' in row)).toEqual([false, false])
})

test('a session tells who acted as whom, when, why, with which ticket and through which client', async () => {
  const members = { context: { channel: 'phone' }, reason: 'cannot log in', ticket: 'T-1' }
  const id = await impersonate(alice, { actor: agent, ...members })
  const answer = await issuer.api('GET', `/impersonations/${id}`)
  expect(answer).toMatchObject({ status: 200 })
  expect(answer.body).toEqual({
    id,
    subjectId: alice,
    actorId: agent,
    actorVia: 'subject_token',
    actorSid: expect.stringMatching(/^(?!ps_)/),
    clientId: app.id,
    creatorId: issuer.bootstrap.id,
    resource: orders,
    scopes: ['read:orders'],
    ...members,
    access: null,
    approvalId: null,
    startedAt: expect.any(Number),
    expiresAt: expect.any(Number),
    endedAt: null,
    endedBy: null,
  })
  expect(Math.abs(answer.body.startedAt + 3_600_000 - answer.body.expiresAt)).toBeLessThan(60_000)
})

test('sessions are listed newest first, in pages, by user, by actor and by whether they go on', async () => {
  const [first, second, third] = [
    await impersonate(bob),
    await impersonate(bob, { actor: agent }),
    await impersonate(bob),
  ]
  expect(await idsOf(`userId=${bob}`)).toEqual([third, second, first])
  expect(await idsOf(`userId=${bob}&actorId=${agent}`)).toEqual([second])
  expect(await idsOf(`actorId=${bob}`)).toEqual([])
  await end(third)
  await issuer.sql(`UPDATE impersonation_sessions SET expires_at = now() - interval '1 h' WHERE id = $1`, [first])
  expect(await idsOf(`userId=${bob}&active=true`)).toEqual([second])
  expect(await idsOf(`userId=${bob}&active=false`)).toEqual([third, first])

  const page = await issuer.api('GET', `/impersonations?userId=${bob}&page=2&page_size=2`)
  expect(page.body.map(({ id }: { id: string }) => id)).toEqual([first])
  expect(page.headers.get('total-number')).toBe('3')
  expect(page.headers.get('link')).toContain('rel="prev"')
  expect(await issuer.api('GET', '/impersonations?active=perhaps')).toMatchObject({
    status: 400,
    body: { code: 'guard.invalid_input' },
  })
})

test('sessions are found by client, backend, ticket, reason and time', async () => {
  const [carol, desk] = [(await issuer.createUser()).id, await issuer.createApplication()]
  const first = await impersonate(carol, { reason: 'Refund of 50 % asked for', ticket: 'T-50' })
  const answer = await issuer.exchange(desk, await issuer.subjectToken(carol, { ticket: 'T-51' }), { resource: orders })
  const second = String((await issuer.verify(answer.body.access_token, orders))['sid'])
  await issuer.sql(`UPDATE impersonation_sessions SET started_at = '2026-01-01Z' WHERE id = $1`, [first])
  await issuer.sql(`UPDATE impersonation_sessions SET started_at = '2026-02-01Z' WHERE id = $1`, [second])
  const [january, february] = [Date.parse('2026-01-01T00:00:00Z'), Date.parse('2026-02-01T00:00:00Z')]

  for (const [query, ids] of [
    [`clientId=${app.id}`, [first]],
    [`clientId=${desk.id}`, [second]],
    [`creatorId=${issuer.bootstrap.id}`, [second, first]],
    ['creatorId=nobody', []],
    ['ticket=T-50', [first]],
    ['ticket=T-5', []],
    ['reason=refund%20OF', [first]],
    // A text, not a pattern.
    ['reason=50%20%25', [first]],
    ['reason=R%25d', []],
    [`from=${january}`, [second, first]],
    [`from=${january + 1}`, [second]],
    [`from=${january}&to=${february}`, [first]],
    [`to=${january}`, []],
    [`to=${february}&ticket=T-51`, []],
  ] as const) {
    expect([query, await idsOf(`userId=${carol}&${query}`)]).toEqual([query, ids])
  }
  for (const query of ['from=yesterday', 'to=-1', `from=${'9'.repeat(16)}`, 'ticket=', 'reason=']) {
    expect(await issuer.api('GET', `/impersonations?${query}`)).toMatchObject({ status: 400 })
  }
})

test('the trail is exported as lines of JSON, newest first, filtered as the list is', async () => {
  const dave = (await issuer.createUser()).id
  const [first, second] = [
    await impersonate(dave, { reason: 'two\nlines' }),
    await impersonate(dave, { ticket: 'T-2' }),
  ]
  await end(first)
  const answer = await issuer.api('GET', `/impersonations/export?userId=${dave}`)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
  const { body: listed } = await issuer.api('GET', `/impersonations?userId=${dave}`)
  expect(linesOf(answer.body)).toEqual(listed)
  expect(listed.map(({ id }: { id: string }) => id)).toEqual([second, first])

  expect(linesOf((await issuer.api('GET', `/impersonations/export?userId=${dave}&active=true`)).body)).toMatchObject([
    { id: second },
  ])
  expect(await issuer.api('GET', '/impersonations/export?userId=nobody')).toMatchObject({ status: 200, body: '' })
  expect(await issuer.api('GET', '/impersonations/export?active=perhaps')).toMatchObject({ status: 400 })
})

test('an export of many batches has every session once, also where thousands began at the same moment', async () => {
  const erin = (await issuer.createUser()).id
  await issuer.sql(
    `INSERT INTO impersonation_sessions (id, subject_id, client_id, creator_id, scopes, context, token_id, started_at, expires_at)
     SELECT lpad(n::text, 21, '0'), $1, 'c', 'c', '{}', '{}', 't', timestamptz '2026-01-01Z' + (n / 1200) * interval '1 microsecond', now()
     FROM generate_series(1, 3000) n`,
    [erin],
  )
  const rows = linesOf((await issuer.api('GET', `/impersonations/export?userId=${erin}`)).body)
  const ids = rows.map(({ id }) => id)
  expect(new Set(ids).size).toBe(3000)
  const starts = rows.map(({ startedAt }) => startedAt)
  expect(starts).toEqual(starts.toSorted((one, other) => other - one))
})

test('ending a session: 204, one event, one revocation, one audit row; again: 204 and nothing more', async () => {
  const id = await impersonate(alice)
  expect(await end(id)).toMatchObject({ status: 204, body: '' })
  expect(await end(id)).toMatchObject({ status: 204, body: '' })

  const { body } = await issuer.api('GET', `/impersonations/${id}`)
  expect(body).toMatchObject({ endedAt: expect.any(Number), endedBy: issuer.bootstrap.id })
  const events = await eventsOf(id)
  expect(events.map(({ type }) => type)).toEqual(['Impersonation.Started', 'Impersonation.Ended'])
  const payload = JSON.parse(events[1]!.payload)
  expect(payload).toMatchObject({
    event: 'Impersonation.Ended',
    method: 'POST',
    path: `/impersonations/${id}/end`,
    matchedRoute: '/impersonations/:id/end',
    params: { id },
    status: 204,
    data: body,
  })
  expect(eventTypes.get('Impersonation.Ended')!.data.safeParse(payload.data).success).toBe(true)
  expect(await issuer.sql(`SELECT kind FROM revocations WHERE value = $1`, [id])).toEqual([{ kind: 'sid' }])
  const audit = await issuer.sql(
    `SELECT payload FROM logs WHERE key = 'Management.endImpersonation' AND payload->'params'->>'id' = $1 ORDER BY created_at`,
    [id],
  )
  expect(audit[0]).toMatchObject({ payload: { events: [{ type: 'Impersonation.Ended' }] } })
})

test('of parallel ends over two instances one ends it', async () => {
  const id = await impersonate(alice)
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => end(id, { instance: index % 2 })))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([204]))
  expect(await endedTypes(id)).toEqual(['Impersonation.Started', 'Impersonation.Ended'])
})

test('a session that expired by itself was not ended', async () => {
  const id = await impersonate(alice)
  await issuer.sql(`UPDATE impersonation_sessions SET expires_at = now() - interval '1 h' WHERE id = $1`, [id])
  expect((await end(id)).status).toBe(204)
  expect((await issuer.api('GET', `/impersonations/${id}`)).body.endedAt).toBeNull()
  expect(await endedTypes(id)).toEqual(['Impersonation.Started'])
})

test('an unknown session is 404', async () => {
  const unknown = { status: 404, body: { code: 'entity.not_exists_with_id' } }
  expect(await issuer.api('GET', '/impersonations/nobody')).toMatchObject(unknown)
  expect(await end('nobody')).toMatchObject(unknown)
})

test('it takes the permission impersonation; read only reads', async () => {
  const id = await impersonate(alice)
  const tokenWith = async (scope: string) => {
    const caller = await issuer.createMachine(issuer.managementResource, [scope])
    return issuer.clientToken(caller, issuer.managementResource, scope)
  }
  const [reader, support, other] = [await tokenWith('read'), await tokenWith('impersonation'), await tokenWith('users')]
  const statuses = async (token: string) => [
    (await issuer.api('GET', '/impersonations', undefined, { token })).status,
    (await issuer.api('GET', `/impersonations/${id}`, undefined, { token })).status,
    (await end(id, { token })).status,
  ]
  expect(await statuses(other)).toEqual([403, 403, 403])
  expect(await statuses(reader)).toEqual([200, 200, 403])
  expect(await statuses(support)).toEqual([200, 200, 204])
})

test.each([
  ['suspending', (id: string) => issuer.api('PATCH', `/users/${id}/is-suspended`, { isSuspended: true })],
  ['deleting', (id: string) => issuer.api('DELETE', `/users/${id}`)],
])('%s a user ends the sessions as that user and by that user, and no others', async (_name, act) => {
  const [user, other] = [(await issuer.createUser()).id, (await issuer.createUser()).id]
  const [asUser, byUser, unconcerned] = [
    await impersonate(user),
    await impersonate(other, { actor: user }),
    await impersonate(other),
  ]
  expect((await act(user)).status).toBeLessThan(300)
  expect(await endedTypes(asUser)).toEqual(['Impersonation.Started', 'Impersonation.Ended'])
  expect(await endedTypes(byUser)).toEqual(['Impersonation.Started', 'Impersonation.Ended'])
  expect(await endedTypes(unconcerned)).toEqual(['Impersonation.Started'])
  expect((await issuer.api('GET', `/impersonations/${byUser}`)).body.endedBy).toBe(issuer.bootstrap.id)
  expect(await issuer.sql('SELECT count(*) AS left FROM opaque_tokens WHERE user_id = $1', [user])).toEqual([
    { left: 0 },
  ])
  expect(
    await issuer.sql('SELECT kind, value FROM revocations WHERE value = ANY ($1) ORDER BY seq', [
      [asUser, byUser, user],
    ]),
  ).toEqual(
    expect.arrayContaining([
      { kind: 'sid', value: asUser },
      { kind: 'sid', value: byUser },
      { kind: 'sub', value: user },
    ]),
  )
})

test('exchanges that race with a suspension leave no session behind', async () => {
  const user = (await issuer.createUser()).id
  const subjectTokens = await Promise.all(Array.from({ length: 12 }, () => issuer.subjectToken(user)))
  const [, ...answers] = await Promise.all([
    issuer.api('PATCH', `/users/${user}/is-suspended`, { isSuspended: true }),
    ...subjectTokens.map((token, index) => issuer.exchange(app, token, { resource: orders }, { instance: index % 2 })),
  ])
  for (const { status, body } of answers) {
    if (status !== 200) expect(body).toMatchObject({ error: 'invalid_grant', reason: 'subject_suspended' })
  }
  expect(await idsOf(`userId=${user}&active=true`)).toEqual([])
})
