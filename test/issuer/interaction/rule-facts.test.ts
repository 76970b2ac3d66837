import { afterAll, beforeAll, expect, test } from 'vitest'
import { findRuleFacts } from '../../../issuer/interaction/rule-facts-store.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.close())

const key = (name: string) => Buffer.from(name)
const fail = (name: string, count: number, secondsAgo: number, locked = false) =>
  database.database.pool.query(
    `INSERT INTO sign_in_failures (key, count, since, locked_until)
     VALUES ($1, $2, now() - $3 * interval '1 second', CASE WHEN $4 THEN now() + interval '1 minute' END)`,
    [key(name), count, secondsAgo, locked],
  )
const failuresOf = async (...names: string[]) => {
  const asked = { userId: 'ada', device: null, failureKeys: names.map(key), windowSeconds: 900 }
  return (await findRuleFacts(database.database.query, asked)).failures
}

test('rules are told the failures of the account that still count, and those of a lock', async () => {
  await fail('account', 3, 60)
  await fail('second factor', 2, 60)
  await fail('long ago', 9, 1_000)
  await fail('locked', 10, 1_000, true)
  await fail('of somebody else', 7, 60)
  expect(await failuresOf('account', 'second factor', 'long ago')).toBe(5)
  expect(await failuresOf('locked')).toBe(10)
  expect(await failuresOf('nothing')).toBe(0)
})
