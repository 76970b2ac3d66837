import { migrations } from '../../migrations/index.ts'
import { loadConfig } from '../../platform/config.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { createLogger } from '../../platform/logger.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'

/** `surrogate migrate`: brings the schema up to date and ends. Every other command does the same at its start. */
export const migrateCommand = async (args: readonly string[]): Promise<number> => {
  parseOptions(args, {})
  const { LOG_LEVEL, DATABASE_URL } = loadConfig(settings.migrate, process.env)
  const database = createDatabase({
    connection: DATABASE_URL,
    logger: createLogger({ name: 'migrate', level: LOG_LEVEL }),
  })
  try {
    await database.ping()
    const applied = await migrate(database, migrations)
    process.stdout.write(applied.length === 0 ? 'The schema is up to date.\n' : `Applied ${applied.join(', ')}.\n`)
    return 0
  } finally {
    await database.close()
  }
}
