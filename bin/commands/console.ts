import { resolve } from 'node:path'
import { consoleRoleNames } from '../../issuer/base/console-roles.ts'
import { consoleSettingsOf, consoleUrlOf } from '../../issuer/console/console-settings.ts'
import { inviteToConsole } from '../../issuer/console/invitations.ts'
import { migrations } from '../../migrations/index.ts'
import { loadConfig } from '../../platform/config.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { visitEmbeddedPostgres } from '../../platform/embedded-postgres/visit.ts'
import { createLogger } from '../../platform/logger.ts'
import { StartupError } from '../../platform/startup-error.ts'
import { parseOptions } from '../cli/options.ts'
import { settings } from '../cli/settings.ts'

/**
 * `surrogate console invite`: prints a link that makes whoever opens it a member of the console, on the database of
 * DATABASE_URL or the one in the data folder, beside a running issuer or without one.
 */
export const consoleCommand = async ([verb = '', ...args]: readonly string[]): Promise<number> => {
  if (verb !== 'invite') {
    const message =
      verb === '' ? 'A subcommand of surrogate console is missing.' : `surrogate console has no "${verb}".`
    throw new StartupError(message, { hint: 'Use surrogate console invite.' })
  }
  const { values } = parseOptions(args, { role: { type: 'string' } })
  const role = consoleRoleNames.find((name) => name === values.role)
  if (role === undefined)
    throw new StartupError(values.role === undefined ? '--role is missing.' : `There is no role "${values.role}".`, {
      hint: `Use one of ${consoleRoleNames.join(', ')}.`,
    })
  const own = loadConfig(settings.console, process.env)
  const consoleUrl = consoleUrlOf(consoleSettingsOf(own), own.BASE_URL ?? `http://localhost:${own.PORT}`)
  if (consoleUrl === undefined) throw new StartupError('CONSOLE is off.', { hint: 'Set it as the issuer has it.' })
  const logger = createLogger({ name: 'console', level: own.LOG_LEVEL })
  const place =
    own.DATABASE_URL === undefined
      ? await visitEmbeddedPostgres({ dataDir: resolve(own.SURROGATE_DATA_DIR), logger, exclusive: false })
      : { connection: own.DATABASE_URL, release: async () => undefined }
  try {
    const database = createDatabase({ connection: place.connection, logger })
    try {
      await database.ping()
      await migrate(database, migrations)
      process.stdout.write(`${await inviteToConsole(database.query, { role, consoleUrl })}\n`)
      process.stderr.write('It can be used once, within 30 minutes.\n')
      return 0
    } finally {
      await database.close()
    }
  } finally {
    await place.release()
  }
}
