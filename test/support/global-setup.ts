import { spawn } from 'node:child_process'
import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { consoleFolder } from '../../bin/cli/console-folder.ts'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { startEmbeddedPostgres } from '../../platform/embedded-postgres/index.ts'
import { silentLogger } from '../../platform/logger.ts'
import { type PostgresConnection, templateDatabase } from './database.ts'
import { createDataFolder } from './folder.ts'
import { startInstalledPostgres } from './installed-postgres.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: PostgresConnection
  }
}

/**
 * The console as it is now. And one PostgreSQL for the whole run, with a migrated template that `createTestDatabase`
 * clones: the embedded one, or the installed one whose programs are in `TEST_POSTGRES_BIN`.
 */
export const setup = async (project: TestProject) => {
  // Once for the whole run, where its sources have changed.
  await consoleFolder()
  const folder = await createDataFolder('surrogate-test-')
  // As root the server runs as another user, who must get through.
  await chmod(folder, 0o711)
  const settings = {
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    max_connections: '200',
    max_wal_size: '256MB',
  }
  const programs = process.env['TEST_POSTGRES_BIN']
  const server = programs
    ? await startInstalledPostgres({ programs, folder, settings })
    : await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), logger: silentLogger, settings })
  const socketFolder = programs ? folder : server.connection.host
  const lifeline = endWithUs({ pid: server.pid, folder, socketFolder })
  const teardown = async () => {
    lifeline.cut()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await createTemplate(server.connection)
  } catch (error) {
    await teardown()
    throw error
  }
  project.provide('postgres', server.connection)
  return teardown
}

const createTemplate = async (connection: PostgresConnection) => {
  const admin = new pg.Client(connection)
  await admin.connect()
  await admin.query(`CREATE DATABASE ${templateDatabase}`)
  const database = createDatabase({
    connection: { ...connection, database: templateDatabase },
    logger: silentLogger,
    poolSize: 2,
  })
  try {
    await migrate(database, migrations)
  } finally {
    await database.close()
  }
  // Nobody can write to it by mistake, nor be connected when it is cloned, which would fail.
  await admin.query(`ALTER DATABASE ${templateDatabase} WITH ALLOW_CONNECTIONS false`)
  await admin.end()
}

/** A test run may be killed: then this shell reads the end of its input, stops the server and removes the folder. */
const endWithUs = ({ pid, folder, socketFolder }: { pid: number; folder: string; socketFolder: string }) => {
  const script = 'read -r word; [ "$word" = done ] && exit; kill -INT "$0"; sleep 2; kill -QUIT "$0"; rm -rf "$1" "$2"'
  const shell = spawn('/bin/sh', ['-c', `${script} 2>/dev/null`, String(pid), folder, socketFolder], {
    detached: true,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  shell.unref()
  return { cut: () => shell.stdin.end('done\n') }
}
