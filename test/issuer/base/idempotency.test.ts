import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createIdempotency } from '../../../issuer/base/idempotency.ts'
import { reencrypt } from '../../../issuer/maintenance/reencrypt.ts'
import { createRetentionJob, retentionDefaults } from '../../../issuer/maintenance/retention.ts'
import { createEnvelope, type Envelope } from '../../../platform/envelope.ts'
import { silentLogger } from '../../../platform/logger.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { request, startTestIssuer, type TestIssuer } from '../../support/issuer.ts'

/** Two instances on one database, as a caller behind a balancer meets them. */

let issuer: TestIssuer
let token: string
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
})
beforeEach(async () => {
  token = await issuer.managementToken()
})
afterAll(() => issuer.close())

interface Options {
  key?: string | undefined
  instance?: number
  token?: string
}
const post = (path: string, body: unknown, { key, instance = 0, token: own = token }: Options = {}) =>
  request(`${issuer.urls[instance]}/api${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${own}`,
      'content-type': 'application/json',
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const isReplay = (answer: { headers: Headers }) => answer.headers.get('idempotent-replayed') === 'true'
const numberOf = async (statement: string, ...values: unknown[]) =>
  (await issuer.sql<{ count: number }>(`SELECT count(*)::int AS count FROM ${statement}`, values))[0]!.count

describe('the same request again', () => {
  test('is answered as the first time, on either instance, and does nothing', async () => {
    const key = randomUUID()
    const first = await post('/users', { username: 'ada' }, { key })
    expect(first).toMatchObject({ status: 200, body: { username: 'ada' } })
    expect(isReplay(first)).toBe(false)
    for (const instance of [0, 1]) {
      // White space is not another request.
      const again = await post('/users', '{ "username":  "ada" }', { key, instance })
      expect(again).toMatchObject({ status: 200, body: first.body })
      expect(isReplay(again)).toBe(true)
    }
    expect(await numberOf('users WHERE username = $1', 'ada')).toBe(1)
    expect(await numberOf(`outbox WHERE type = 'User.Created' AND entity_id = $1`, first.body.id)).toBe(1)
    expect(await numberOf(`logs WHERE key = 'Management.createUser' AND user_id = $1`, first.body.id)).toBe(1)
  })

  test('gets secrets that are otherwise shown once, and answers without a body', async () => {
    const key = randomUUID()
    const input = { name: 'Backend', type: 'MachineToMachine' }
    const created = await post('/applications', input, { key })
    expect(created.body.secret).toEqual(expect.any(String))
    expect((await post('/applications', input, { key })).body).toEqual(created.body)
    const rows = await issuer.sql<{ sealed: Buffer }>('SELECT sealed FROM idempotency_answers')
    for (const { sealed } of rows) expect(sealed.includes(created.body.secret)).toBe(false)

    const role = (await post('/roles', { name: 'Reader', description: 'Reads' })).body
    const user = await issuer.createUser()
    for (const replay of [false, true]) {
      const assigned = await post(`/roles/${role.id}/users`, { userIds: [user.id] }, { key: `assign ${user.id}` })
      expect(assigned).toMatchObject({ status: 201, body: '' })
      expect(isReplay(assigned)).toBe(replay)
    }
  })

  test('is refused as the first time, even when it would do now', async () => {
    const input = { username: 'taken' }
    const { id } = (await post('/users', input)).body
    const key = randomUUID()
    const refused = await post('/users', input, { key })
    expect(refused).toMatchObject({ status: 422, body: { code: 'user.username_already_in_use' } })
    await issuer.api('DELETE', `/users/${id}`)
    expect(await post('/users', input, { key })).toMatchObject({ status: 422, body: refused.body })
    expect(await post('/users', input, { key: randomUUID() })).toMatchObject({ status: 200 })
  })

  test('twenty times at once over two instances, is carried out once', async () => {
    const key = randomUUID()
    const send = (_: unknown, index: number) => post('/users', { name: 'Once' }, { key, instance: index % 2 })
    const answers = await Promise.all(Array.from({ length: 20 }, send))
    const created = answers.filter(({ status }) => status === 200)
    expect(created.length).toBeGreaterThan(0)
    expect(new Set(created.map(({ body }) => body.id)).size).toBe(1)
    expect(created.filter((answer) => !isReplay(answer))).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(answer).toMatchObject({ status: 409, body: { code: 'idempotency.in_progress' } })
      expect(answer.headers.get('retry-after')).toBe('1')
    }
    expect(await numberOf('users WHERE name = $1', 'Once')).toBe(1)
  })
})

test('a key stands for one request of one client', async () => {
  const key = randomUUID()
  const first = await post('/users', { name: 'Grace' }, { key })
  expect(await post('/users', { name: 'Edsger' }, { key })).toMatchObject({
    status: 422,
    body: { code: 'idempotency.mismatch' },
  })
  const one = await issuer.createUser()
  const other = await issuer.createUser()
  const name = { name: 'laptop' }
  expect(await post(`/users/${one.id}/personal-access-tokens`, name, { key })).toMatchObject({ status: 201 })
  expect(await post(`/users/${other.id}/personal-access-tokens`, name, { key })).toMatchObject({
    status: 422,
    body: { code: 'idempotency.mismatch' },
  })

  const backend = await issuer.createMachine(issuer.managementResource, ['all'])
  const own = await issuer.clientToken(backend, issuer.managementResource, 'all')
  const second = await post('/users', { name: 'Grace' }, { key, token: own })
  expect(second.status).toBe(200)
  expect(second.body.id).not.toBe(first.body.id)
})

test('the second of two is told that the first still runs, and the answer when it has ended', async () => {
  const key = randomUUID()
  const { id } = await issuer.createUser()
  const released = Promise.withResolvers<void>()
  const holding = Promise.withResolvers<void>()
  // Somebody holds the row that the request needs.
  const blocking = issuer.database.transaction(async (query) => {
    await query({ name: '', text: 'SELECT 1 FROM users WHERE id = $1 FOR UPDATE' }, [id])
    holding.resolve()
    await released.promise
  })
  await holding.promise
  const role = (await post('/roles', { name: 'Waiting', description: 'Waits' })).body
  const first = post(`/roles/${role.id}/users`, { userIds: [id] }, { key })
  const second = async () => post(`/roles/${role.id}/users`, { userIds: [id] }, { key, instance: 1 })
  const waiting = `pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  while ((await numberOf(waiting)) === 0) await delay(5)
  expect(await second()).toMatchObject({ status: 409, body: { code: 'idempotency.in_progress' } })
  released.resolve()
  await blocking
  expect(await first).toMatchObject({ status: 201 })
  expect(isReplay(await second())).toBe(true)
})

describe('what failed on our side is not kept', () => {
  const breakInserts = async (table: string) => {
    await issuer.sql(`CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$`)
    await issuer.sql(`CREATE TRIGGER broken BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION broken()`)
  }

  test.each([
    ['the change', 'outbox', 'Barbara'],
    // Neither stands without the other, so no crash can come between them.
    ['keeping the answer', 'idempotency_answers', 'Margaret'],
  ])('when it was %s that failed: nothing of it stays behind', async (_what, table, name) => {
    const key = randomUUID()
    await breakInserts(table)
    try {
      expect(await post('/users', { name }, { key })).toMatchObject({ status: 500 })
    } finally {
      await issuer.sql('DROP FUNCTION broken CASCADE')
    }
    expect(await numberOf('users WHERE name = $1', name)).toBe(0)
    const again = await post('/users', { name }, { key })
    expect(again.status).toBe(200)
    expect(isReplay(again)).toBe(false)
  })
})

test('a change whose answer was lost on the way is not made again', async () => {
  const key = randomUUID()
  // The connection breaks after the request was sent: nobody reads the answer.
  const lost = new AbortController()
  const sent = fetch(`${issuer.url}/api/users`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': key },
    body: '{"name":"Lost"}',
    signal: lost.signal,
  }).catch(() => undefined)
  while ((await numberOf('users WHERE name = $1', 'Lost')) === 0) await delay(2)
  lost.abort()
  await sent
  // The change and its answer are there together.
  const again = await post('/users', { name: 'Lost' }, { key, instance: 1 })
  expect(again.status).toBe(200)
  expect(isReplay(again)).toBe(true)
  expect(await numberOf('users WHERE name = $1', 'Lost')).toBe(1)
})

test('requests under keys of their own, many more than there are connections, all end', async () => {
  const answers = await Promise.all(
    Array.from({ length: 60 }, (_, index) => post('/users', { name: `Many ${index}` }, { key: `many-${index}` })),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
})

test('a new signing key is published once, and signs on the instance that was asked', async () => {
  const key = randomUUID()
  const first = await post('/configs/oidc/private-keys/rotate', {}, { key })
  expect(first.status).toBe(200)
  expect((await post('/configs/oidc/private-keys/rotate', {}, { key, instance: 1 })).body).toEqual(first.body)
})

test('an answer is kept for a day', async () => {
  const [old, young] = [randomUUID(), randomUUID()]
  const input = { name: 'Yesterday' }
  const first = (await post('/users', input, { key: old })).body
  await issuer.sql(`UPDATE idempotency_answers SET created_at = now() - interval '23 hours'`)
  const kept = (await post('/users', input, { key: young })).body
  await issuer.sql(`UPDATE idempotency_answers SET created_at = created_at - interval '90 minutes'`)
  const logger = silentLogger
  const dependencies = { database: issuer.database, retention: retentionDefaults, logger, metrics: createMetrics() }
  await createRetentionJob(dependencies).run()
  expect((await post('/users', input, { key: young })).body).toEqual(kept)
  expect((await post('/users', input, { key: old })).body.id).not.toBe(first.id)
})

test('answers stay readable under another key-encryption key', async () => {
  const [before, after] = [randomBytes(32), randomBytes(32)]
  const envelopes = {
    before: createEnvelope({ current: before }),
    during: createEnvelope({ current: after, previous: before }),
    after: createEnvelope({ current: after }),
  }
  const { knex } = issuer.database
  const answerWith = (envelope: Envelope, id: string) =>
    createIdempotency({ knex, envelope }).run(callUnder('a key of two times'), async () => ({ body: { id } }))
  await issuer.sql('TRUNCATE idempotency_answers')
  expect(await answerWith(envelopes.before, 'first')).toEqual({ body: { id: 'first' } })
  expect(await reencrypt({ database: issuer.database, envelope: envelopes.during })).toMatchObject({ missed: 0 })
  expect(await answerWith(envelopes.after, 'second')).toMatchObject({ body: { id: 'first' } })
})

/** A call as the router makes it. */
const callUnder = (key: string) => ({
  key,
  route: { method: 'POST' as const, path: '/things', status: 201 },
  body: {},
  context: {
    operationId: 'createThing',
    caller: { subject: 'c1', clientId: 'c1', scopes: new Set(['all']) },
    fields: [],
    request: {
      ip: '203.0.113.7',
      userAgent: undefined,
      method: 'POST',
      path: '/things',
      matchedRoute: '/things',
      params: {},
      status: 201,
    },
  },
})

test('a password is verified each time, whatever the key', async () => {
  const { id } = (await post('/users', { password: 'correct horse' })).body
  const key = randomUUID()
  const verify = () => post(`/users/${id}/password/verify`, { password: 'correct horse' }, { key })
  expect(await verify()).toMatchObject({ status: 204 })
  await issuer.api('PATCH', `/users/${id}/password`, { password: 'another horse' })
  expect(await verify()).toMatchObject({ status: 422, body: { code: 'session.invalid_credentials' } })
})

test('a key that cannot be one is refused', async () => {
  for (const key of ['', 'x'.repeat(256), 'ключ'.normalize()].map((text) => Buffer.from(text).toString('latin1'))) {
    expect(await post('/users', {}, { key })).toMatchObject({ status: 400, body: { code: 'guard.invalid_input' } })
  }
})
