import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await startTestIssuer({ instances: 2 })
})
afterAll(() => issuer.close())

test('of fifty parallel exchanges of one subject token, over two instances, exactly one succeeds', async () => {
  const resource = await issuer.createResource({ scopes: ['read:orders'] })
  const client = await issuer.createApplication()
  const user = await issuer.createUser()
  for (let round = 0; round < 3; round++) {
    const subjectToken = await issuer.subjectToken(user.id, { ticket: `round ${round}` })
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        issuer.exchange(client, subjectToken, { resource }, { instance: index % 2 }),
      ),
    )
    const [issued, ...others] = answers.toSorted((one, two) => one.status - two.status)
    expect(issued!.status).toBe(200)
    for (const other of others) {
      expect(other).toMatchObject({ status: 400, body: { error: 'invalid_grant', reason: 'subject_token_consumed' } })
    }
    const { sid, jti } = await issuer.verify(issued!.body.access_token, resource)
    const sessions = await issuer.sql('SELECT id, token_id FROM impersonation_sessions WHERE ticket = $1', [
      `round ${round}`,
    ])
    expect(sessions).toEqual([{ id: sid, token_id: jti }])
  }
  const rows = await issuer.sql(
    `SELECT id FROM logs WHERE key = 'ExchangeTokenBy.TokenExchange' AND result = 'Success'`,
  )
  expect(rows).toHaveLength(3)
})

test('a suspension that is under way is waited for, and refuses the exchange', async () => {
  const client = await issuer.createApplication()
  const user = await issuer.createUser()
  const subjectToken = await issuer.subjectToken(user.id)
  const suspension = await issuer.database.pool.connect()
  try {
    await suspension.query('BEGIN')
    await suspension.query('UPDATE users SET is_suspended = true WHERE id = $1', [user.id])
    const exchange = issuer.exchange(client, subjectToken, { scope: 'openid' }, { instance: 1 })
    await expect
      .poll(async () => {
        const waiting = await issuer.sql(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
        return waiting.length
      })
      .toBe(1)
    await suspension.query('COMMIT')
    expect(await exchange).toMatchObject({ status: 400, body: { reason: 'subject_suspended' } })
  } finally {
    suspension.release()
  }
})
