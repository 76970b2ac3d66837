import knexFactory from 'knex'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { constraintError } from '../../../issuer/base/errors/constraint-errors.ts'
import { AppError } from '../../../platform/problem.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

/** What becomes of errors of a real database. Which constraint means what is tested with each resource, over HTTP. */

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.close())

const problemOf = async (work: PromiseLike<unknown>) => {
  const error = await Promise.resolve(work).then(
    () => new Error('It did not fail.'),
    (cause: unknown) => constraintError(cause),
  )
  return error instanceof AppError ? error.code : error
}

const quiet = { warn() {}, error() {} }

const raw = (sql: string) => database.database.knex.raw(sql)

test.each([
  ['a value too long', `INSERT INTO roles VALUES ('${'x'.repeat(22)}', 'a', 'b', 'User')`, 'entity.value_too_long'],
  ['a check', `INSERT INTO roles VALUES ('x', 'a', 'b', 'Other')`, 'entity.db_constraint_violated'],
  ['a missing value', `INSERT INTO roles (id) VALUES ('x')`, 'entity.db_constraint_violated'],
  ['a foreign key', `INSERT INTO user_roles VALUES ('x', 'y')`, 'entity.relation_foreign_key_not_found'],
  [
    'a unique constraint without a code of its own',
    `INSERT INTO roles VALUES ('x', 'a', 'b', 'User'), ('x', 'c', 'd', 'User')`,
    'entity.unique_integrity_violation',
  ],
  [
    'a unique constraint with one',
    `INSERT INTO roles VALUES ('x', 'a', 'b', 'User'), ('y', 'a', 'd', 'User')`,
    'role.name_in_use',
  ],
])('%s', async (_name, sql, code) => {
  expect(await problemOf(raw(sql))).toBe(code)
})

test('a mistake of ours stays what it is', async () => {
  expect(await problemOf(raw('SELECT * FROM nothing'))).toMatchObject({ code: '42P01' })
})

test('the message of an error does not quote the values of its statement', async () => {
  const error = await problemOf(database.database.knex('nothing').insert({ password_digest: 'a digest' }))
  expect(error).toMatchObject({ message: expect.stringContaining('insert into "nothing"') })
  expect((error as Error).message).not.toContain('a digest')
})

test('a connection ended by the server is unavailable', async () => {
  const own = knexFactory({ client: 'pg', connection: database.connection, pool: { min: 0, max: 1 } })
  expect(await problemOf(own.raw('SELECT pg_terminate_backend(pg_backend_pid())'))).toBe('server.unavailable')
  await own.destroy()
})

test.each([
  ['a full disk', 'disk_full'],
  ['no memory', 'out_of_memory'],
  ['no connection left', 'too_many_connections'],
])('a server with %s is unavailable', async (_name, condition) => {
  const refusal = raw(`DO $$ BEGIN RAISE EXCEPTION 'short of something' USING ERRCODE = '${condition}'; END $$`)
  expect(await problemOf(refusal)).toBe('server.unavailable')
})

test('a connection that has broken in the middle of a transaction is unavailable for its next statement too', async () => {
  const own = knexFactory({ client: 'pg', connection: database.connection, pool: { min: 0, max: 1 }, log: quiet })
  const work = own.transaction(async (trx) => {
    const { rows } = await trx.raw('SELECT pg_backend_pid() AS pid')
    await raw(`SELECT pg_terminate_backend(${rows[0].pid})`)
    await trx.raw('SELECT 1').catch(() => {})
    await trx.raw('SELECT 1')
  })
  expect(await problemOf(work)).toBe('server.unavailable')
  await own.destroy()
})

test('a server that is not there, and a pool with no connection left, are unavailable', async () => {
  const nobody = knexFactory({
    client: 'pg',
    connection: { host: '127.0.0.1', port: 1, user: 'x', database: 'x' },
    log: quiet,
  })
  expect(await problemOf(nobody.raw('SELECT 1'))).toBe('server.unavailable')
  await nobody.destroy()

  // As of a container that is being replaced. Longer than a label may be (RFC 1035 §2.3.4), so nobody is asked for its
  // address.
  const nameless = knexFactory({
    client: 'pg',
    connection: { host: 'x'.repeat(64), user: 'x', database: 'x' },
    log: quiet,
  })
  expect(await problemOf(nameless.raw('SELECT 1'))).toBe('server.unavailable')
  await nameless.destroy()

  const full = knexFactory({
    client: 'pg',
    connection: database.connection,
    pool: { min: 0, max: 1 },
    log: quiet,
    acquireConnectionTimeout: 1000,
  })
  await full.transaction(async (holder) => {
    await holder.raw('SELECT 1')
    expect(await problemOf(full.raw('SELECT 1'))).toBe('server.unavailable')
  })
  await full.destroy()
})
