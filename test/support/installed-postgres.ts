import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { PostgresConnection } from './database.ts'

const run = promisify(execFile)

/**
 * A PostgreSQL that is installed on this machine, as operators have one: of another version than ours, with the settings it comes with, and
 * with a sort order of a language (ICU, en-US).
 */
export const startInstalledPostgres = async ({
  programs,
  folder,
  settings,
}: {
  /** The folder of `initdb` and `postgres`: `/usr/lib/postgresql/15/bin` on Debian. */
  programs: string
  /** Of ours, exists; others may pass through it. */
  folder: string
  settings: Readonly<Record<string, string>>
}): Promise<{ connection: PostgresConnection; pid: number; stop(): Promise<void> }> => {
  const home = join(folder, 'installed')
  await mkdir(home, { mode: 0o700 })
  // It refuses to run as root.
  const identity = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const password = randomBytes(16).toString('hex')
  const secret = join(home, 'password')
  await writeFile(secret, password)
  if (identity.uid !== undefined) for (const path of [home, secret]) await chown(path, identity.uid, identity.gid)
  const data = join(home, 'data')
  const order = ['--locale', 'C', '--locale-provider', 'icu', '--icu-locale', 'en-US']
  const account = ['--username', 'surrogate', '--pwfile', secret, '--auth', 'scram-sha-256']
  const options = { ...identity, cwd: '/' }
  await run(join(programs, 'initdb'), ['-D', data, '--encoding', 'UTF8', ...order, ...account, '--no-sync'], options)
  const given = { ...settings, listen_addresses: '', unix_socket_directories: home }
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', data, ...Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { ...options, stdio: 'ignore' },
  )
  const exited = new Promise<void>((resolve) => server.once('exit', () => resolve()))
  const connection = { host: home, port: 5432, user: 'surrogate', password, database: 'postgres' }
  const answers = async () => {
    const client = new pg.Client(connection)
    try {
      await client.connect()
      return true
    } catch {
      return false
    } finally {
      await client.end().catch(() => {})
    }
  }
  while (!(await answers())) {
    if (server.exitCode !== null) throw new Error(`${programs}/postgres ended with ${server.exitCode}`)
    await delay(20)
  }
  return {
    connection,
    pid: server.pid!,
    async stop() {
      server.kill('SIGINT')
      await exited
    },
  }
}
