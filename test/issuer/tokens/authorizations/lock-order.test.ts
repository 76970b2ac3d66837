import { afterAll, beforeAll, expect, test } from 'vitest'
import { endSessionHere } from '../../../../issuer/tokens/authorizations/end.ts'
import { createDatabase, type Database, statement } from '../../../../platform/database/database.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { authorize, signIn } from '../../../support/authorizations.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'
import { recordingIn } from '../../../support/recording.ts'
import { until } from '../../../support/until.ts'

/** Everybody locks in one order: users, sessions, authorizations. Whoever does not could wait in a circle. */

let testDatabase: TestDatabase
let other: Database
let issuer: TestIssuer
beforeAll(async () => {
  testDatabase = await createTestDatabase()
  other = createDatabase({ connection: testDatabase.connection, logger: silentLogger })
  issuer = await startTestIssuer({ test: testDatabase })
})
afterAll(async () => {
  await other.close()
  await issuer.close()
})

test('an authorization that waits for its user holds no session that the other one may want', async () => {
  const user = await issuer.createUser()
  const app = await issuer.createApplication({ type: 'SPA' })
  const sessionId = await signIn(issuer, user.id)

  const suspended = await other.transaction(async (query) => {
    await query(statement('', 'UPDATE users SET is_suspended = true WHERE id = $1'), [user.id])
    const authorized = authorize(issuer, app, user.id, { sessionId }).then(
      () => 'it was made',
      (error: Error) => error.message,
    )
    await until(async () => {
      const waiting = await issuer.sql<{ query: string }>(
        `SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO authorizations%'`,
      )
      expect(waiting).toHaveLength(1)
    })
    const ended = await endSessionHere(recordingIn(query), { sessionId, reason: 'user_suspended', endedBy: user.id })
    return { ended, authorized }
  })

  expect(suspended.ended).toBe(true)
  expect(await suspended.authorized).toBe('The session or its user does not count.')
})
