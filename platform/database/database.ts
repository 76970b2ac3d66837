import knexFactory, { type Knex } from 'knex'
import pg from 'pg'
import type { Logger } from '../logger.ts'
import { StartupError } from '../startup-error.ts'
import { withArrayText } from './array-parameter.ts'
import { createPipelinedQuery } from './pipelined-query.ts'
import { parametersOf } from './shared-statement.ts'
import { runTransaction } from './transaction.ts'

export type DatabaseConnection =
  | string
  | { host: string; port: number; user: string; password: string; database: string }

/** One SQL statement. With a `name` it is prepared once per connection; `text` uses `$1`, `$2`, …. */
export interface Statement {
  name: string
  text: string
}

/**
 * Runs one statement and returns its rows, on the pool, in a `pg` transaction or in a knex transaction (see `queryOf`).
 */
export type Query = <Row extends object = Record<string, unknown>>(
  statement: Statement,
  values: readonly unknown[],
) => Promise<Row[]>

/** What a function that must be part of a caller's transaction takes. */
export type Transaction = Knex.Transaction | Query

export interface Database {
  /** Migrations and the Management API. */
  knex: Knex
  /**
   * The token path: short named statements, each its own transaction, over a few shared connections
   * (`pipelined-query.ts`).
   */
  query: Query
  /**
   * A transaction of named statements: commits when `work` resolves, rolls back when it rejects. It begins with the
   * first of them, so waiting before that holds no locks. Statements that do not wait for each other are sent together,
   * and done in order. When it is over, `query` rejects: of several things done at once, one may go on after another
   * has failed.
   */
  transaction<Result>(work: (query: Query) => Promise<Result>): Promise<Result>
  /** For LISTEN and other uses that need a connection of their own. */
  pool: pg.Pool
  ping(): Promise<void>
  close(): Promise<void>
}

// bigint columns hold versions, sequence numbers and counts, all far below 2^53.
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8 && format !== 'binary'
      ? Number
      : pg.types.getTypeParser(oid, format as 'text')) as typeof pg.types.getTypeParser,
}

const pipelinedConnections = 4
/**
 * PostgreSQL would compile statements that it thinks dear, at every execution. Ours are short; and before version 18 it
 * thinks any dear that scans a table against our wish.
 */
const notCompiled = '-c jit=off'

export const statement = (name: string, text: string): Statement => ({ name, text })

/** The row of a statement that always answers one. */
export const oneRow = async <Row>(rows: Promise<readonly Row[]>): Promise<Row> => {
  const [row] = await rows
  if (row === undefined) throw new Error('a statement that always answers a row answered none')
  return row
}

/** `$n` of a statement as knex's own placeholders, and which value each of them takes. */
const translate = ({ text }: Statement): { sql: string; order: number[] } => {
  const order: number[] = []
  const sql = text.replaceAll('?', '\\?').replace(/\$(\d+)/g, (_, index) => {
    order.push(Number(index) - 1)
    return '?'
  })
  return { sql, order }
}

const translations = new WeakMap<Statement, ReturnType<typeof translate>>()

const translationOf = (statement: Statement) => {
  let known = translations.get(statement)
  if (!known) {
    known = translate(statement)
    translations.set(statement, known)
  }
  return known
}

const knexQuery =
  (trx: Knex.Transaction): Query =>
  async <Row extends object>(statement: Statement, values: readonly unknown[]) => {
    const parameters = withArrayText(parametersOf(statement, values))
    const { sql, order } = translationOf(statement)
    const bindings = order.map((index) => parameters[index] ?? null) as Knex.RawBinding[]
    // Prepared once per connection, like those outside knex: planning anew takes longer than most of them run.
    const { name } = statement
    return (await trx.raw<{ rows: Row[] }>(sql, bindings).options({ name })).rows
  }

/** The same statements inside a transaction of either kind. */
export const queryOf = (transaction: Transaction): Query =>
  'raw' in transaction ? knexQuery(transaction as Knex.Transaction) : (transaction as Query)

export interface DatabaseOptions {
  connection: DatabaseConnection
  logger: Logger
  /**
   * Connections of the pool for transactions and, separately, of knex's pool. Default 10 each; four more carry single
   * statements.
   */
  poolSize?: number
  /**
   * How long the server keeps a transaction of `transaction()` whose process does nothing, in ms: one that hangs gives
   * its locks back. Default 15 000.
   */
  transactionIdleMs?: number
}

/** Opens nothing yet: connections are made when first used. `ping()` says whether the database answers. */
export const createDatabase = ({
  connection,
  logger,
  poolSize = 10,
  transactionIdleMs = 15_000,
}: DatabaseOptions): Database => {
  const settings: pg.PoolConfig = {
    ...(typeof connection === 'string' ? { connectionString: connection } : connection),
    application_name: 'surrogate',
    connectionTimeoutMillis: 10_000,
    types,
    options: notCompiled,
  }
  // Named statements look rows up by key: one plan is right for all values, and planning anew takes several times what
  // they take. Nor may a plan depend on how small a table was when it was made: those of the ledger fill within
  // seconds.
  const planned = { ...settings, options: `${notCompiled} -c plan_cache_mode=force_generic_plan -c enable_seqscan=off` }
  const pool = new pg.Pool({
    ...planned,
    idle_in_transaction_session_timeout: transactionIdleMs,
    ...{ pipeline: true, max: poolSize, idleTimeoutMillis: 30_000 },
  })
  let closing = false
  // An idle connection that breaks is replaced at the next use; without a listener it would end the process. The pool
  // adds the whole client to the error, so only what it says is logged.
  const onBroken = ({ message, ...error }: NodeJS.ErrnoException) => {
    if (!closing) logger.warn({ reason: message, code: error.code }, 'a database connection broke')
  }
  pool.on('error', onBroken)
  // In use, a connection fails the next statement, and the pool does not take it back. It may break before whoever
  // wanted it has it.
  pool.on('connect', (client) => client.on('error', () => {}))
  const pipelined = createPipelinedQuery({ settings: planned, connections: pipelinedConnections, onBroken })
  const sayOfKnex = (message: unknown) => {
    if (!closing) logger.warn({ reason: String(message) }, 'a database connection of knex broke')
  }
  const knex = knexFactory({
    client: 'pg',
    connection: settings as Knex.PgConnectionConfig,
    pool: { min: 0, max: poolSize },
    acquireConnectionTimeout: 10_000,
    // Otherwise the message of an error quotes the statement with its values, and so logs them.
    compileSqlOnError: false,
    // By itself knex writes to the console, between our lines of JSON.
    log: { warn: sayOfKnex, error: sayOfKnex },
  })

  return {
    knex,
    pool,
    query: pipelined.query,
    transaction: async (work) => runTransaction(await pool.connect(), work),
    async ping() {
      try {
        await pool.query('SELECT 1')
      } catch (cause) {
        throw new StartupError(
          `The database cannot be reached: ${(cause as Error).message || (cause as NodeJS.ErrnoException).code}`,
          {
            hint: 'Check DATABASE_URL and that PostgreSQL accepts connections. Only "surrogate start" brings a PostgreSQL of its own.',
            exitCode: 3,
            cause,
          },
        )
      }
    },
    async close() {
      closing = true
      await Promise.all([pipelined.close(), pool.end(), knex.destroy()])
    },
  }
}

/** One step of the schema. `name` never changes: it is what the database remembers. */
export interface Migration {
  name: string
  up(knex: Knex): Promise<unknown>
}

/**
 * Brings the schema up to date; several instances may call it at once (knex takes a lock; the loser waits and finds
 * nothing to do).
 */
export const migrate = async ({ knex }: Database, migrations: readonly Migration[]): Promise<string[]> => {
  const migrationSource: Knex.MigrationSource<Migration> = {
    getMigrations: async () => [...migrations],
    getMigrationName: ({ name }) => name,
    getMigration: async ({ up }) => ({
      up: async (trx) => {
        await up(trx)
      },
      down: async () => {
        throw new Error('Migrations only go forward.')
      },
    }),
  }
  // One session at a time; knex's own lock table makes the others fail instead of wait.
  return knex.transaction(async (lock) => {
    await lock.raw('SELECT pg_advisory_xact_lock(7305170)')
    const [, names] = (await knex.migrate.latest({ migrationSource })) as [number, string[]]
    return names
  })
}
