import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { examples } from '../../../events/records.ts'
import { createMutate, type Mutate } from '../../../issuer/base/mutate.ts'
import type { OperationContext } from '../../../issuer/base/route.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

/** A change, its events and its audit row stand or fall together. */

let database: TestDatabase
let mutate: Mutate
let wakes: number
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.close())
beforeEach(async () => {
  wakes = 0
  mutate = createMutate({ knex: database.database.knex, events: { wake: () => void wakes++ } })
  await database.database.knex.raw('TRUNCATE roles, logs, outbox CASCADE')
})

const context: OperationContext = {
  operationId: 'createRole',
  caller: { subject: 'backend', clientId: 'backend', scopes: new Set(['all']) },
  request: {
    ip: '203.0.113.7',
    userAgent: undefined,
    method: 'POST',
    path: '/roles',
    matchedRoute: '/roles',
    params: {},
    status: 200,
  },
  fields: ['name'],
}

const role = (id: string) => ({ id, name: id, description: 'x', type: 'User' })
const about = (id: string) => ({
  entity: { kind: 'role' as const, id },
  data: { ...examples.role, id },
})
const created = (id: string) => ({ type: 'Role.Created' as const, ...about(id) })

const counts = async () => {
  const { rows } = await database.database.knex.raw<{ rows: [object] }>(
    'SELECT (SELECT count(*) FROM roles) AS roles, (SELECT count(*) FROM logs) AS logs, (SELECT count(*) FROM outbox) AS events',
  )
  return rows[0]
}

test('all are there when it is done, and the publisher is woken after the commit', async () => {
  const seen: unknown[] = []
  const waking = createMutate({ knex: database.database.knex, events: { wake: () => void seen.push(counts()) } })
  await waking(context, async ({ trx, record }) => {
    await trx('roles').insert(role('a'))
    await record(created('a'))
    expect(await counts()).toEqual({ roles: 0, logs: 0, events: 0 })
  })
  expect(await Promise.all(seen)).toEqual([{ roles: 1, logs: 1, events: 1 }])
})

test('nothing is there when the work fails after its writes', async () => {
  const failing = mutate(context, async ({ trx, record }) => {
    await trx('roles').insert(role('a'))
    await record(created('a'))
    throw new Error('afterwards')
  })
  await expect(failing).rejects.toThrow('afterwards')
  expect(await counts()).toEqual({ roles: 0, logs: 0, events: 0 })
  expect(wakes).toBe(0)
})

test('nothing is there when the event cannot be recorded', async () => {
  const failing = mutate(context, async ({ trx, record }) => {
    await trx('roles').insert(role('a'))
    // PostgreSQL stores no text with it.
    await record(created('a\0'))
  })
  await expect(failing).rejects.toThrow('invalid byte sequence')
  expect(await counts()).toEqual({ roles: 0, logs: 0, events: 0 })
})

test('two writers that meet in opposite order both succeed, each once', async () => {
  await database.database.knex('roles').insert([role('a'), role('b')])
  const { promise: bothHoldOne, resolve } = Promise.withResolvers<void>()
  let holding = 0
  const touch = (first: string, second: string) =>
    mutate(context, async ({ trx, record }) => {
      await trx('roles').where({ id: first }).update({ description: 'touched' })
      if (++holding === 2) resolve()
      await bothHoldOne
      await trx('roles').where({ id: second }).update({ description: 'touched' })
      await record({ type: 'Role.Data.Updated', ...about(first) })
    })
  await Promise.all([touch('a', 'b'), touch('b', 'a')])
  // One of them at least was made to go again.
  expect(holding).toBeGreaterThanOrEqual(3)
  expect(await counts()).toEqual({ roles: 2, logs: 2, events: 2 })
  expect(wakes).toBe(2)
})

test('a violated constraint is its problem', async () => {
  await database.database.knex('roles').insert(role('a'))
  const failing = mutate(context, ({ trx }) => trx('roles').insert({ ...role('b'), name: 'a' }))
  await expect(failing).rejects.toMatchObject({ code: 'role.name_in_use', status: 422 })
})
