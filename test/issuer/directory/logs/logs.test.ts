import { afterAll, beforeAll, expect, test } from 'vitest'
import { insertLog } from '../../../../issuer/base/audit/log-store.ts'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

/** Reading the audit trail. What mutations write: `test/issuer/directory/users/users.test.ts`. */

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
  await api.database.knex.transaction(async (trx) => {
    for (const [key, userId, applicationId] of [
      ['ExchangeTokenBy.TokenExchange', 'ada', 'backend'],
      ['ExchangeTokenBy.TokenExchange', 'grace', 'backend'],
      ['ExchangeTokenBy.ClientCredentials', undefined, 'worker'],
    ] as const) {
      await insertLog(trx, { key, result: 'Success', userId, applicationId, payload: { ip: '203.0.113.7' } })
    }
    await trx('logs')
      .where({ user_id: 'ada' })
      .update({ created_at: new Date(1_700_000_000_000) })
  })
})
afterAll(() => api.close())

const users = async (query: string) =>
  (await api.expect(200, 'GET', `/logs?${query}`)).map(
    ({ payload }: { payload: { userId?: string } }) => payload.userId,
  )

test('rows are found by who, through what, of what kind and when', async () => {
  expect(await users('userId=ada')).toEqual(['ada'])
  expect(await users('applicationId=worker')).toEqual([undefined])
  expect(await users('logKey=ExchangeTokenBy.TokenExchange')).toEqual(['grace', 'ada'])
  expect(await users('result=Success&userId=grace')).toEqual(['grace'])
  expect(await users('result=Error')).toEqual([])
  expect(await users('end_time=1700000000000')).toEqual(['ada'])
  expect(await users('start_time=1700000000001&applicationId=backend')).toEqual(['grace'])
  expect(await users('start_time=1600000000000&end_time=1650000000000')).toEqual([])
})

test('the count may be capped, which is said', async () => {
  const whole = await api.call('GET', '/logs?page_size=1')
  expect(whole.headers.get('total-number')).toBe('3')
  expect(whole.headers.get('total-number-is-capped')).toBeNull()
  await api.database.knex.raw(
    `INSERT INTO logs (id, key, result, payload) SELECT n, 'Many', 'Success', '{}' FROM generate_series(1, 10001) n`,
  )
  const capped = await api.call('GET', '/logs?page_size=1&enableCap=true')
  expect(capped.headers.get('total-number')).toBe('10000')
  expect(capped.headers.get('total-number-is-capped')).toBe('true')
  expect((await api.call('GET', '/logs?page_size=1')).headers.get('total-number')).toBe('10004')
})

test('an unknown row is 404, and a time that is none 400', async () => {
  expect(await api.call('GET', '/logs/none')).toMatchObject({
    status: 404,
    body: { code: 'entity.not_exists_with_id' },
  })
  for (const query of ['start_time=yesterday', 'end_time=-1', 'start_time=999999999999999999']) {
    expect(await api.call('GET', `/logs?${query}`)).toMatchObject({
      status: 400,
      body: { code: 'guard.invalid_input' },
    })
  }
})
