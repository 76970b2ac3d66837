import pg from 'pg'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'

test('a test database has the current schema and data of its own', async () => {
  const first = await createTestDatabase()
  const second = await createTestDatabase()
  await first.database.knex('users').insert({ id: 'alice' })
  expect(await first.database.knex('users').select('id')).toEqual([{ id: 'alice' }])
  expect(await second.database.knex('users').select('id')).toEqual([])
  await first.close()
  await second.close()
})

test('a connection that a test forgot fails it, and the database is dropped all the same', async () => {
  const { close, connection } = await createTestDatabase({ leakedAfterMs: 100 })
  const forgotten = new pg.Client(connection)
  forgotten.on('error', () => undefined)
  await forgotten.connect()
  await forgotten.query('SELECT 42 AS forgotten')
  await expect(close()).rejects.toThrow(
    '1 database connections leaked; last statements:\n  idle: SELECT 42 AS forgotten',
  )
  await forgotten.end()
  const again = new pg.Client(connection)
  await expect(again.connect()).rejects.toMatchObject({ code: '3D000' })
})
