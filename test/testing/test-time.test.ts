import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate, statement } from '../../platform/database/database.ts'
import { startEmbeddedPostgres } from '../../platform/embedded-postgres/index.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createTestTime } from '../../testing/index.ts'
import { startAskedFirst } from '../support/asked-first.ts'
import { createTestDatabase } from '../support/database.ts'
import { createDataFolder } from '../support/folder.ts'
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

test('time passes in the database of a data folder, beside the process that runs it', async () => {
  const folder = await createDataFolder('surrogate-test-')
  await chmod(folder, 0o711)
  const dataDir = join(folder, 'data')
  const server = await startEmbeddedPostgres({ dataDir, logger: silentLogger, settings: { fsync: 'off' } })
  const database = createDatabase({ connection: server.connection, logger: silentLogger })
  const time = createTestTime({ dataDir })
  try {
    await migrate(database, migrations)
    await database.query(statement('', `INSERT INTO message_counts (key, count) VALUES ('\\x00', 5)`), [])
    await time.pass(3_600)
    await time.close()
    const aged = statement('', `SELECT count FROM message_counts WHERE since <= now() - interval '1 hour'`)
    expect(await database.query(aged, [])).toEqual([{ count: 5 }])
  } finally {
    await database.close()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
})

test('a folder without a database is told, and can be closed', async () => {
  const folder = await createDataFolder('surrogate-test-')
  const time = createTestTime({ dataDir: join(folder, 'data') })
  await expect(time.pass(1)).rejects.toThrow(/There is no database in/)
  await time.close()
  await rm(folder, { recursive: true, force: true })
})
