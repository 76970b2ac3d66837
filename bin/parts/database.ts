import type { EventBus } from '../../events/bus.ts'
import { createBus } from '../../events/create-bus.ts'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, type Database, type DatabaseConnection, migrate } from '../../platform/database/database.ts'
import type { NatsServers } from '../../platform/nats/nats-url.ts'
import type { Service } from '../cli/serve.ts'

export interface NatsSettings {
  NATS_URL?: NatsServers | undefined
  NATS_CREDS_FILE?: string | undefined
}

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

/** By way of NATS where NATS_URL is set, else through the database. */
export const openBus = async (
  { lifecycle, logger, metrics }: Service,
  { database, nats }: { database: Database; nats: NatsSettings },
): Promise<EventBus> => {
  const { NATS_URL: servers, NATS_CREDS_FILE: credsFile } = nats
  const bus = await createBus({ database, logger, metrics, nats: servers && { servers, credsFile } })
  lifecycle.onStop('event bus', () => bus.close())
  return bus
}
