import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { migrations } from '../../../../migrations/index.ts'
import { migrate } from '../../../../platform/database/database.ts'
import { type AskedFirst, startAskedFirst } from '../../../support/asked-first.ts'
import { createTestDatabase } from '../../../support/database.ts'
import { accessTokenType, startTestIssuer } from '../../../support/issuer.ts'

/** `GET /api/impersonations/:id/timeline`: all that the issuer knows of a session, in the order of time. */

let asked: AskedFirst
/** The API that the sessions are for: it changes users because of them. */
let api: { id: string; token: string }
let hook: string
beforeAll(async () => {
  asked = await startAskedFirst()
  const { issuer, orders } = asked
  const application = await issuer.createMachine(orders, ['read:orders'])
  await issuer.grantApplication(application, issuer.managementResource, ['users'])
  api = { id: application.id, token: await issuer.clientToken(application, issuer.managementResource, 'users') }
  const config = { url: 'https://receiver.example.test' }
  hook = (await issuer.api('POST', '/hooks', { name: 'Books', events: ['User.Data.Updated'], config })).body.id
})
afterAll(() => asked?.close())

const timelineOf = async (id: string, query = '') => {
  const answer = await asked.issuer.api('GET', `/impersonations/${id}/timeline${query}`)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body
}
const sidOf = (answer: { body: { access_token: string } }) => String(decodeJwt(answer.body.access_token)['sid'])
const change = async (sid: string, userId: string, name: string) => {
  const headers = { 'surrogate-session': sid }
  expect((await asked.issuer.api('PATCH', `/users/${userId}`, { name }, { token: api.token, headers })).status).toBe(
    200,
  )
}
/** What a relay writes of an event: refused once, then taken. */
const deliver = async (event: {
  eventId: string
  type: string
  entity: { kind: string; id: string }
  version: number
}) => {
  const [delivery] = await asked.issuer.sql<{ id: string }>(
    `INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, state, attempts, last_status, finished_at)
     VALUES ($1, $2, $3, $4, $5, $6, 'succeeded', 2, 200, now()) RETURNING id::text`,
    [hook, event.eventId, event.type, event.entity.kind, event.entity.id, event.version],
  )
  await asked.issuer.sql(
    `INSERT INTO delivery_attempts (delivery_id, hook_id, at, duration_ms, succeeded, request_headers, status, response_body)
     VALUES ($1, $2, now(), 12, false, '{"authorization": "hidden"}', 503, 'secret'), ($1, $2, now(), 7, true, '{}', 200, 'secret')`,
    [delivery!.id, hook],
  )
  return delivery!.id
}

test('asked for, approved, minted, exchanged by which rule, changed, told to hooks, ended: in the order of time', async () => {
  const { issuer, orders, desk } = asked
  const [customer, staff] = [await asked.customer({ name: 'Carol' }), await asked.staff({ name: 'Sam' })]
  const why = { reason: 'The invoice is wrong', ticket: 'T-7' }
  const members = { userId: customer.id, actorToken: staff.token, ...why, resource: orders, scopes: ['read:orders'] }
  const { requestId, number } = (await asked.mint(members)).body
  expect((await customer.approve({ requestId, number }, { readOnly: true, maxTtl: 900 })).status).toBe(204)
  const { subjectToken } = (await asked.mint({ requestId })).body
  const issued = await asked.exchange(subjectToken, staff.token, { resource: orders, scope: 'read:orders' })
  expect(issued.status).toBe(200)
  const id = sidOf(issued)
  await change(id, customer.id, 'Caroline')
  const [first] = (await timelineOf(id)).entries.filter(({ type }: { type?: string }) => type === 'User.Data.Updated')
  const deliveryId = await deliver(first)
  expect((await issuer.api('POST', `/impersonations/${id}/end`)).status).toBe(204)

  const { session, names, entries, more } = await timelineOf(id)
  expect(session).toEqual((await issuer.api('GET', `/impersonations/${id}`)).body)
  expect(session).toMatchObject({ subjectId: customer.id, actorId: staff.id, ...why, access: 'read' })
  expect(names).toMatchObject({ [customer.id]: 'Caroline', [staff.id]: 'Sam', [desk.id]: 'Support desk' })
  expect(more).toBe(false)
  const times = entries.map(({ at }: { at: number }) => at)
  expect(times).toEqual(times.toSorted((one: number, other: number) => one - other))
  const policy = {
    asked: true,
    revision: expect.stringMatching(/./),
    rule: 'surrogate/impersonation/decision',
    grounds: ['approved_by_customer'],
    require: ['approval'],
  }
  const at = expect.any(Number)
  const ofRequest = (type: string) => ({
    kind: 'event',
    type,
    entity: { kind: 'impersonation-request', id: requestId },
  })
  const ofSession = (type: string) => ({ kind: 'event', type, entity: { kind: 'impersonation', id }, deliveries: [] })
  const told = [
    { kind: 'requested', at, requestId },
    ofRequest('Impersonation.Requested'),
    { kind: 'approved', at, requestId, readOnly: true, maxTtl: 900 },
    ofRequest('Impersonation.Approved'),
    { kind: 'minted', at, clientId: issuer.bootstrap.id, policy },
    {
      kind: 'exchanged',
      at: session.startedAt,
      clientId: desk.id,
      policy,
      token: { id: expect.any(String), format: 'jwt', expiresAt: session.expiresAt },
      logId: expect.any(String),
      ip: expect.any(String),
    },
    ofSession('Impersonation.Started'),
    {
      ...{
        kind: 'changed',
        at,
        logId: expect.any(String),
        operation: 'updateUser',
        result: 'Success',
        fields: ['name'],
      },
      ...{ clientId: api.id, userId: customer.id, method: 'PATCH', path: `/users/${customer.id}` },
    },
    {
      ...{
        kind: 'event',
        type: 'User.Data.Updated',
        entity: { kind: 'user', id: customer.id },
        version: first.version,
      },
      deliveries: [
        {
          ...{ id: deliveryId, hookId: hook, hookName: 'Books', state: 'succeeded', attempts: 2, nextAttemptAt: null },
          ...{ finishedAt: at, lastStatus: 200, lastError: null },
          lastAttempts: [
            { at, status: 503, succeeded: false, durationMs: 12, error: null },
            { at, status: 200, succeeded: true, durationMs: 7, error: null },
          ],
        },
      ],
    },
    { kind: 'ended', at: session.endedAt, by: issuer.bootstrap.id },
    ofSession('Impersonation.Ended'),
  ]
  const keyOf = ({ kind, type }: { kind: string; type?: string }) => `${kind} ${type ?? ''}`
  const byKey = (list: { kind: string; type?: string }[]) =>
    list.toSorted((one, other) => keyOf(one).localeCompare(keyOf(other)))
  // What one transaction did has one time, in whatever order.
  expect(byKey(entries)).toMatchObject(byKey(told))
  const happened = entries.map(keyOf).filter((key: string) => !key.startsWith('event '))
  expect(happened).toEqual(['requested ', 'approved ', 'minted ', 'exchanged ', 'changed ', 'ended '])

  const row = (
    await issuer.api('GET', `/logs/${entries.find(({ kind }: { kind: string }) => kind === 'exchanged').logId}`)
  ).body
  expect(row).toMatchObject({ key: 'ExchangeTokenBy.TokenExchange', payload: { sessionId: id } })
})

test('what others changed, and what names another session, is not told', async () => {
  const { issuer, orders, desk } = asked
  const customer = await asked.customer({ isProtected: false })
  const open = async () =>
    sidOf(
      await issuer.exchange(desk, await issuer.subjectToken(customer.id), { resource: orders, scope: 'read:orders' }),
    )
  const [one, other] = [await open(), await open()]
  await Promise.all([
    change(one, customer.id, 'By one'),
    change(other, customer.id, 'By the other'),
    issuer.api('PATCH', `/users/${customer.id}`, { name: 'By nobody' }),
  ])
  await change(one, customer.id, 'By one again')
  const changesOf = async (id: string, query = '') => {
    const { entries, more } = await timelineOf(id, query)
    const of = (kind: string) => entries.filter((entry: { kind: string }) => entry.kind === kind)
    const events = of('event').filter(({ entity }: { entity: { kind: string } }) => entity.kind === 'user')
    return { changed: of('changed').length, events: events.length, more }
  }
  expect(await changesOf(one)).toEqual({ changed: 2, events: 2, more: false })
  expect(await changesOf(other)).toEqual({ changed: 1, events: 1, more: false })
  expect(await changesOf(one, '?limit=1')).toEqual({ changed: 1, events: 1, more: true })
  for (const query of ['?limit=0', '?limit=1001', '?limit=x'])
    expect((await issuer.api('GET', `/impersonations/${one}/timeline${query}`)).status).toBe(400)
})

test('what was opened through it, by nobody else, and its end by time', async () => {
  const { issuer, orders, desk } = asked
  const [customer, colleague] = [
    await asked.customer({ isProtected: false }),
    await asked.customer({ isProtected: false }),
  ]
  const actorToken = await issuer.actorToken(desk, colleague.id)
  const [through] = await issuer.sql<{ id: string }>(
    'SELECT id FROM impersonation_sessions WHERE subject_id = $1 AND resource IS NULL',
    [colleague.id],
  )
  const issued = await issuer.exchange(desk, await issuer.subjectToken(customer.id), {
    ...{ resource: orders, scope: 'read:orders', actor_token: actorToken, actor_token_type: accessTokenType },
  })
  const opened = sidOf(issued)
  await issuer.sql(`UPDATE impersonation_sessions SET expires_at = now() WHERE id = $1`, [through!.id])
  const { entries } = await timelineOf(through!.id)
  expect(entries).toMatchObject([
    { kind: 'minted', policy: { asked: true } },
    { kind: 'exchanged', token: { format: 'opaque' } },
    { kind: 'event', type: 'Impersonation.Started' },
    { kind: 'opened', sessionId: opened, subjectId: customer.id, clientId: desk.id },
    { kind: 'expired' },
  ])
})

test('it takes the permission impersonation, or read; an unknown session is 404', async () => {
  const { issuer, desk, orders } = asked
  const customer = await asked.customer({ isProtected: false })
  const id = sidOf(await issuer.exchange(desk, await issuer.subjectToken(customer.id), { resource: orders }))
  for (const [scope, status] of [
    ['impersonation', 200],
    ['read', 200],
    ['users', 403],
  ] as const) {
    const machine = await issuer.createMachine(issuer.managementResource, [scope])
    const token = await issuer.clientToken(machine, issuer.managementResource, scope)
    expect((await issuer.api('GET', `/impersonations/${id}/timeline`, undefined, { token })).status).toBe(status)
    expect((await issuer.api('GET', '/impersonation-requests', undefined, { token })).status).toBe(status)
  }
  expect(await issuer.api('GET', '/impersonations/nobody/timeline')).toMatchObject({
    ...{ status: 404, body: { code: 'entity.not_exists_with_id' } },
  })
})

test('requests are listed newest first, by who was asked and by what came of them', async () => {
  const { issuer } = asked
  const [customer, other] = [await asked.customer(), await asked.customer()]
  const ask = async (userId: string) => (await asked.mint({ userId, reason: 'why' })).body
  const [first, second, third] = [await ask(customer.id), await ask(customer.id), await ask(other.id)]
  await customer.account('POST', `/my-account/impersonation-requests/${first.requestId}/refuse`)
  const idsOf = async (query: string): Promise<string[]> => {
    const answer = await issuer.api('GET', `/impersonation-requests?${query}`)
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return answer.body.map(({ id }: { id: string }) => id)
  }
  expect(await idsOf(`userId=${customer.id}`)).toEqual([second.requestId, first.requestId])
  expect((await idsOf('status=pending')).slice(0, 2)).toEqual([third.requestId, second.requestId])
  expect(await idsOf(`status=refused&userId=${customer.id}`)).toEqual([first.requestId])
  expect(await idsOf(`status=approved&userId=${customer.id}`)).toEqual([])
  expect((await customer.approve(second, {})).status).toBe(204)
  expect(await idsOf(`status=approved&userId=${customer.id}`)).toEqual([second.requestId])
  expect((await asked.mint({ requestId: second.requestId })).status).toBe(201)
  expect(await idsOf(`status=used&userId=${customer.id}`)).toEqual([second.requestId])
  await issuer.sql(`UPDATE impersonation_requests SET expires_at = now() WHERE id = $1`, [third.requestId])
  expect(await idsOf(`status=expired&userId=${other.id}`)).toEqual([third.requestId])
  expect((await issuer.api('GET', '/impersonation-requests?status=perhaps')).status).toBe(400)
})

test('what an issuer of the version before opens, before and after the upgrade, has a time line without a rule', async () => {
  const steps = migrations.findIndex(({ name }) => name === '0047-impersonation-history')
  const old = await createTestDatabase({ schema: migrations.slice(0, steps) })
  const sql = (text: string, values: unknown[] = []) => old.database.pool.query(text, values)
  await sql(`INSERT INTO users (id, name) VALUES ('ada', 'Ada')`)
  // As that version's statements name columns.
  const open = (id: string) =>
    sql(
      `INSERT INTO impersonation_sessions (id, subject_id, actor_id, actor_via, actor_sid, ends_with_actor, client_id, creator_id,
         resource, scopes, context, reason, ticket, approval_id, access, token_id, started_at, expires_at)
       VALUES ($1, 'ada', NULL, NULL, NULL, false, 'desk', 'backend', NULL, '{}', '{}', 'why', NULL, NULL, NULL, $2, now(),
         now() + interval '1 hour')`,
      [id, randomUUID()],
    )
  const mintAsOldOne = (digest: string) =>
    sql(
      `INSERT INTO subject_tokens (digest, user_id, creator_id, context, client_id, resource, scopes, actor_id, reason, ticket, approval,
         expires_at) VALUES ($1, 'ada', 'backend', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, now() + interval '600 seconds')`,
      [Buffer.from(digest)],
    )
  await open('before')
  await mintAsOldOne('before')
  await migrate(old.database, migrations)
  await open('after')
  await mintAsOldOne('after')

  const issuer = await startTestIssuer({ test: old })
  onTestFinished(issuer.close)
  for (const id of ['before', 'after']) {
    const { status, body } = await issuer.api('GET', `/impersonations/${id}/timeline`)
    expect(status).toBe(200)
    expect(body.entries).toMatchObject([{ kind: 'exchanged', policy: null, logId: null }])
    expect(body.names).toEqual({ ada: 'Ada' })
  }
})
