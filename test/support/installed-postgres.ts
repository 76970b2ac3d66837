import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { plainEnvironment, runAs, serverUser } from '../../platform/embedded-postgres/server-user.ts'
import type { PostgresConnection } from './database.ts'

const startsWithinMs = 30_000

/**
 * A PostgreSQL that is installed on this machine, as operators have one: of another version than ours, with the
 * settings it comes with, and with a sort order of a language (ICU, en-US).
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
  const user = serverUser()
  const password = randomBytes(16).toString('hex')
  const secret = join(home, 'password')
  await writeFile(secret, password)
  for (const path of [home, secret]) await chown(path, user.uid, user.identity.gid ?? -1)
  const data = join(home, 'data')
  const order = ['--locale', 'C', '--locale-provider', 'icu', '--icu-locale', 'en-US']
  const account = ['--username', 'surrogate', '--pwfile', secret, '--auth', 'scram-sha-256']
  const initdb = ['-D', data, '--encoding', 'UTF8', ...order, ...account, '--no-sync']
  const { code, output } = await runAs(user, join(programs, 'initdb'), initdb)
  if (code !== 0) throw new Error(`${programs}/initdb failed (${code}): ${output}`)
  const given = { ...settings, listen_addresses: '', unix_socket_directories: home }
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', data, ...Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    { ...user.identity, cwd: '/', env: plainEnvironment, stdio: 'ignore' },
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
  const until = performance.now() + startsWithinMs
  while (!(await answers())) {
    if (server.exitCode !== null || performance.now() > until) {
      server.kill('SIGKILL')
      throw new Error(`${programs}/postgres did not start (${server.exitCode ?? 'no answer'})`)
    }
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
