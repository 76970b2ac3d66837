import { expect, test } from 'vitest'
import { createTestTime } from '../../testing/index.ts'
import { startAskedFirst } from '../support/asked-first.ts'
import { createTestDatabase } from '../support/database.ts'
import { databaseUrl } from '../support/surrogate-process.ts'

test('a customer who is asked lets the time for an answer pass', async () => {
  const database = await createTestDatabase()
  const asked = await startAskedFirst({ test: database })
  const time = createTestTime({ databaseUrl: databaseUrl(database.connection) })
  try {
    const customer = await asked.customer()
    const { status, body } = await asked.mint({ userId: customer.id, reason: 'The invoice is wrong' })
    expect(status, JSON.stringify(body)).toBe(202)
    const statusNow = async () =>
      (await asked.issuer.api('GET', `/impersonation-requests/${body.requestId}`)).body.status
    expect(await statusNow()).toBe('pending')
    await time.pass(600)
    expect(await statusNow()).toBe('expired')
    expect(await customer.approve(body)).toMatchObject({ status: 409 })
  } finally {
    await time.close()
    await asked.close()
  }
})
