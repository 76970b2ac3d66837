import { chmod, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../platform/embedded-postgres/index.ts'
import { silentLogger } from '../../platform/logger.ts'
import { freePort } from '../support/free-port.ts'
import { startTestNats } from '../support/nats.ts'
import { startProcess, type TestProcess } from '../support/process.ts'
import { databaseUrl, testClient, testKey } from '../support/surrogate-process.ts'
import { replacements, type Variant } from './variants.ts'

const surrogate = fileURLToPath(new URL('../../bin/surrogate.ts', import.meta.url))
const relayProcess = fileURLToPath(new URL('./relay-process.ts', import.meta.url))

/** One thing that can be killed and started again. */
export interface Actor {
  name: string
  pid(): number
  start(): Promise<void>
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  signal(signal: NodeJS.Signals): void
}

export interface Stage {
  issuerUrl: string
  actors: { postgres: Actor; nats: Actor; issuer: Actor; relays: Actor[] }
  /** Removes what the broker has stored; it must be down. */
  wipe(): Promise<void>
  query<Row extends object>(sql: string, values?: unknown[]): Promise<Row[]>
  /** Processes that ended although nobody killed them, with what they said. */
  crashes: readonly string[]
  /** The last that each process said. */
  lastWords(): string
  close(): Promise<void>
}

/** PostgreSQL, nats-server, an issuer and relays, each a process of its own. */
export const openStage = async ({ variant, relays }: { variant: Variant; relays: number }): Promise<Stage> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'surrogate-chaos-')))
  await chmod(folder, 0o711)
  const postgres = await postgresActor(folder)
  const nats = await startTestNats()
  const port = await freePort()
  const crashes: string[] = []
  const words = new Map<string, TestProcess>()

  const node = (name: string, args: string[], env: Record<string, string>, ready: RegExp): Actor => {
    let child: TestProcess | undefined
    let expected = false
    return {
      name,
      pid: () => child!.pid,
      async start() {
        const started = startProcess(process.execPath, args, { cwd: folder, env })
        child = started
        expected = false
        words.set(name, started)
        // It may be killed before it is ready, or find its database away: then it is for the caller to start it again.
        await started.waitFor(ready, 60_000)
        void started.exited.then(() => {
          if (!expected) crashes.push(`${name}\n${started.output().slice(-2_000)}`)
        })
      },
      async kill() {
        expected = true
        child?.signal('SIGKILL')
        await child?.exited
      },
      signal: (signal) => child?.signal(signal),
    }
  }
  const issuer = node(
    'issuer',
    [surrogate, 'issuer'],
    {
      DATABASE_URL: databaseUrl(postgres.connection),
      KEY_ENCRYPTION_KEY: testKey,
      NATS_URL: nats.url,
      BOOTSTRAP_CLIENT_ID: testClient.id,
      BOOTSTRAP_CLIENT_SECRET: testClient.secret,
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      PORT: String(port),
      ADMIN_PORT: '0',
      LOG_LEVEL: 'info',
    },
    /issuer ready/,
  )
  const relayOptions = JSON.stringify({
    connection: postgres.connection,
    key: testKey,
    nats: `127.0.0.1:${nats.port}`,
    variant,
  })
  const relayActors = Array.from({ length: relays }, (_, index) =>
    node(`relay ${index + 1}`, [relayProcess, relayOptions], {}, /^started/m),
  )
  const broker: Actor = {
    name: 'nats',
    pid: nats.pid,
    start: nats.start,
    kill: () => nats.stop('SIGKILL'),
    signal: nats.signal,
  }
  const pool = new pg.Pool({ ...postgres.connection, max: 4 })
  pool.on('error', () => {})

  const close = async () => {
    for (const actor of [issuer, ...relayActors]) {
      actor.signal('SIGCONT')
      await actor.kill()
    }
    await pool.end()
    await nats.close()
    await postgres.close()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await prepareSchema(postgres.connection, variant)
    for (const actor of [issuer, ...relayActors]) await actor.start()
  } catch (error) {
    await close()
    throw error
  }
  return {
    issuerUrl: `http://localhost:${port}`,
    actors: { postgres: postgres.actor, nats: broker, issuer, relays: relayActors },
    wipe: nats.wipe,
    query: async (sql, values) => (await pool.query(sql, values)).rows,
    crashes,
    lastWords: () => [...words].map(([name, child]) => `--- ${name}\n${child.output().slice(-2_000)}`).join('\n'),
    close,
  }
}

const prepareSchema = async (connection: pg.ClientConfig & { host: string }, variant: Variant) => {
  const database = createDatabase({ connection: connection as never, logger: silentLogger, poolSize: 2 })
  try {
    await migrate(database, migrations)
    const { schema } = replacements[variant]
    if (schema !== undefined) await database.pool.query(schema)
  } finally {
    await database.close()
  }
}

/** The embedded PostgreSQL. Each start has another folder for its socket; a link of ours leads to the present one. */
const postgresActor = async (folder: string) => {
  const link = join(folder, 'socket')
  let server: EmbeddedPostgres | undefined
  const start = async () => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        server = await startEmbeddedPostgres({
          dataDir: join(folder, 'postgres'),
          logger: silentLogger,
          settings: { max_connections: '200' },
        })
        break
      } catch (error) {
        // Its predecessor's processes end a moment after it.
        if (attempt === 50) throw error
        await delay(200)
      }
    }
    await rm(link, { force: true })
    await symlink(server.connection.host, link)
  }
  await start()
  const actor: Actor = {
    name: 'postgres',
    pid: () => server!.pid,
    start,
    async kill() {
      process.kill(server!.pid, 'SIGKILL')
      await delay(50)
    },
    signal: (signal) => void process.kill(server!.pid, signal),
  }
  return {
    actor,
    connection: { ...server!.connection, host: link },
    async close() {
      await server?.stop()
    },
  }
}
