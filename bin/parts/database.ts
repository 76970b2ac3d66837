import type { EventBus } from '../../events/bus.ts'
import { createBus } from '../../events/postgres-bus.ts'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, type Database, type DatabaseConnection, migrate } from '../../platform/database.ts'
import type { Service } from '../serve.ts'

/** Connected, and with the schema of this version. */
export const openDatabase = async (
  { lifecycle, logger, health }: Service,
  connection: DatabaseConnection,
): Promise<Database> => {
  const database = createDatabase({ connection, logger })
  lifecycle.onStop('database connections', () => database.close())
  await database.ping()
  const applied = await migrate(database, migrations)
  if (applied.length > 0) logger.info({ applied }, 'the schema was brought up to date')
  health.addCheck('database', async () => {
    await database.ping()
    return { ok: true }
  })
  return database
}

export const openBus = ({ lifecycle, logger }: Service, database: Database): EventBus => {
  const bus = createBus({ database, logger })
  lifecycle.onStop('event bus', () => bus.close())
  return bus
}
