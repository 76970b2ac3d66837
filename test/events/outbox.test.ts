import { afterAll, beforeAll, expect, test } from 'vitest'
import { type NewEvent, recordEvent } from '../../events/outbox.ts'
import { statement } from '../../platform/database/database.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { userUpdated } from '../support/event-factory.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase({ poolSize: 10 })
})
afterAll(() => db.close())

const all = statement(
  'test-outbox',
  `SELECT id, version, seq, type, organization_id, correlation_id, convert_from(payload, 'UTF8') AS payload
   FROM outbox WHERE entity_id = $1 ORDER BY seq`,
)
const outboxOf = (entityId: string) =>
  db.database.query<{ id: string; version: number; seq: number; correlation_id: string; payload: string }>(all, [
    entityId,
  ])

test('an event is stored with the change that caused it, as the bytes that receivers get', async () => {
  await db.database.transaction(async (query) => {
    await recordEvent(query, {
      ...userUpdated('payload', { name: 'Zoë "Z" \u0000 \u2028' }),
      organizationId: 'org1',
      extras: { addedUserIds: ['a'], version: 99, hookId: 'forged', data: 'forged' },
      request: { ...userUpdated('payload').request, correlationId: '0190c2a4-0000-7000-8000-000000000001' },
    })
  })
  const [row] = await outboxOf('payload')
  const payload = JSON.parse(row!.payload)
  expect(payload).toEqual({
    id: row!.id,
    event: 'User.Data.Updated',
    version: 1,
    apiVersion: '1',
    correlationId: '0190c2a4-0000-7000-8000-000000000001',
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    organizationId: 'org1',
    userAgent: 'test',
    ip: '203.0.113.7',
    path: '/users/payload',
    method: 'PATCH',
    status: 200,
    params: { userId: 'payload' },
    matchedRoute: '/users/:userId',
    data: { id: 'payload', name: 'Zoë "Z" \u0000 \u2028' },
    addedUserIds: ['a'],
  })
  expect(row).toMatchObject({ version: 1, type: 'User.Data.Updated', organization_id: 'org1' })
  expect(row!.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/)
})

test('it works the same in a knex transaction', async () => {
  const recorded = await db.database.knex.transaction(async (trx) => {
    await recordEvent(trx, userUpdated('knex', { question: '? ?? $1 \\?' }))
    return recordEvent(trx, userUpdated('knex'))
  })
  const rows = await outboxOf('knex')
  expect(rows.map(({ version }) => version)).toEqual([1, 2])
  expect(recorded).toEqual({ id: rows[1]!.id, version: 2 })
  expect(JSON.parse(rows[0]!.payload).data.question).toBe('? ?? $1 \\?')
})

test('a change that is rolled back leaves no event and no gap', async () => {
  const refused = db.database.transaction(async (query) => {
    await recordEvent(query, userUpdated('rollback'))
    throw new Error('refused')
  })
  await expect(refused).rejects.toThrow('refused')
  expect(await outboxOf('rollback')).toEqual([])
  await db.database.transaction((query) => recordEvent(query, userUpdated('rollback')))
  expect((await outboxOf('rollback')).map(({ version }) => version)).toEqual([1])
})

test('versions are gap-free and in commit order under concurrent writers, some of which fail', async () => {
  const write = async (index: number) => {
    const work = db.database.transaction(async (query) => {
      await recordEvent(query, userUpdated('busy', { index }))
      if (index % 7 === 0) throw new Error('refused')
    })
    await work.catch(() => {})
  }
  await Promise.all(Array.from({ length: 140 }, (_, index) => write(index)))
  const rows = await outboxOf('busy')
  expect(rows.map(({ version }) => version)).toEqual(Array.from({ length: 120 }, (_, index) => index + 1))
  for (const row of rows) expect(JSON.parse(row.payload).version).toBe(row.version)
})

test('what is not of the catalogue, is of another entity or has other data does not compile', () => {
  const { request } = userUpdated('x')
  const entity = { kind: 'role', id: 'r1' } as const
  const fitting: NewEvent = { type: 'Role.Deleted', entity, data: null, request }
  // @ts-expect-error: there is no such type
  const unknown: NewEvent = { type: 'Role.Exploded', entity, data: null, request }
  // @ts-expect-error: users have no roles' events
  const another: NewEvent = { type: 'Role.Deleted', entity: { kind: 'user', id: 'u1' }, data: null, request }
  // @ts-expect-error: a role has more members
  const partial: NewEvent = { type: 'Role.Created', entity, data: { id: 'r1', name: 'Reader' }, request }
  expect([fitting, unknown, another, partial]).toHaveLength(4)
})
