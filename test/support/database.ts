import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { createDatabase, type Database, type Migration, migrate } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'

export interface PostgresConnection {
  host: string
  port: number
  user: string
  password: string
  database: string
}

/** Migrated once per run by the global setup. */
export const templateDatabase = 'surrogate_template'

export interface TestDatabase {
  database: Database
  /** For a second pool on the same database: `createDatabase({ connection, … })`. Close it before `close()`. */
  connection: PostgresConnection
  /**
   * Closes `database`, drops the database, and throws when connections to it stay open: somebody leaked them. A session
   * ends a moment after its socket is closed, on a busy machine a longer one.
   */
  close(): Promise<void>
}

/**
 * A database of its own with the current schema. About 20 ms; make one per test file, or per test where data must not
 * mix.
 */
export const createTestDatabase = async ({
  poolSize,
  schema,
  leakedAfterMs = 10_000,
}: {
  poolSize?: number
  /** Of an older version: without its last steps. */
  schema?: readonly Migration[]
  /** Connections that are open for so long after the end were leaked. */
  leakedAfterMs?: number
} = {}): Promise<TestDatabase> => {
  const server = inject('postgres')
  const name = `test_${randomBytes(8).toString('hex')}`
  await withAdmin(server, (admin) =>
    // Its files as they are: by the log, which is the default, the copy takes twice the processor time.
    admin.query(`CREATE DATABASE ${name} TEMPLATE ${schema ? 'template0' : templateDatabase} STRATEGY FILE_COPY`),
  )
  const connection = { ...server, database: name }
  const database = createDatabase({ connection, logger: silentLogger, ...(poolSize ? { poolSize } : {}) })
  if (schema) await migrate(database, schema)
  return {
    database,
    connection,
    async close() {
      await database.close()
      await withAdmin(server, async (admin) => {
        const leaked = await connectionsLeft(admin, name, leakedAfterMs)
        await admin.query(`DROP DATABASE ${name} WITH (FORCE)`)
        if (leaked.length > 0)
          throw new Error(`${leaked.length} database connections leaked; last statements:\n${leaked.join('\n')}`)
      })
    },
  }
}

const connectionsLeft = async (admin: pg.Client, name: string, leakedAfterMs: number): Promise<string[]> => {
  const until = Date.now() + leakedAfterMs
  for (;;) {
    const { rows } = await admin.query<{ state: string | null; query: string }>(
      `SELECT state, query FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'`,
      [name],
    )
    if (rows.length === 0 || Date.now() > until) return rows.map(({ state, query }) => `  ${state}: ${query}`)
    await delay(10)
  }
}

const withAdmin = async <Result>(server: PostgresConnection, work: (admin: pg.Client) => Promise<Result>) => {
  const admin = new pg.Client(server)
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.end()
  }
}
