import { resolve } from 'node:path'
import pg from 'pg'
import { visitEmbeddedPostgres } from '../platform/embedded-postgres/visit.ts'
import { silentLogger } from '../platform/logger.ts'

/** Time, as far as the database of an issuer knows it: for tests that cannot wait for days. */
export interface TestTime {
  /**
   * Everything that sessions, grants, codes, refresh tokens, opaque tokens, open sign-ins, devices, impersonations,
   * limits and locks know of time is so much longer ago. A JWT says itself until when it is good, and so does not age.
   */
  pass(seconds: number): Promise<void>
  /** The sign-ins of a person are over, as if they had lasted too long; grants with `offline_access` go on. */
  expireSessions(userId: string): Promise<void>
  /** The refresh tokens of a grant are over; `sid` is the claim of its tokens. */
  expireRefreshTokens(sid: string): Promise<void>
  close(): Promise<void>
}

const tables = [
  ...['sessions', 'authorizations', 'authorization_codes', 'refresh_tokens', 'opaque_tokens', 'consents'],
  ...['interactions', 'proofs', 'pushed_requests', 'device_codes', 'one_time_tokens', 'known_devices'],
  ...['identity_provider_requests', 'subject_tokens', 'impersonation_requests', 'impersonation_sessions'],
  ...['sign_in_failures', 'message_counts'],
]

const columns = `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
  WHERE table_schema = current_schema() AND table_name = ANY ($1) AND data_type = 'timestamp with time zone'
    AND is_generated = 'NEVER'`

/** A database that is for tests alone: of a server, or the one in the data folder of `surrogate start`. */
export type TestDatabase = { databaseUrl: string } | { dataDir: string }

/** Throws `StartupError`, at the first use, when there is no database in the folder. */
export const createTestTime = (database: TestDatabase): TestTime => {
  let opened: Promise<Opened> | undefined
  const open = () => (opened ??= openDatabase(database))
  return {
    async pass(seconds) {
      const client = await (await open()).pool.connect()
      try {
        await client.query('BEGIN')
        const { rows } = await client.query<{ table: string; column: string }>(columns, [tables])
        for (const table of tables) {
          const own = rows.filter((row) => row.table === table).map(({ column }) => pg.escapeIdentifier(column))
          if (own.length === 0) continue
          const earlier = own.map((column) => `${column} = ${column} - $1 * interval '1 second'`)
          await client.query(`UPDATE ${pg.escapeIdentifier(table)} SET ${earlier.join(', ')}`, [seconds])
        }
        await client.query('COMMIT')
      } catch (error) {
        await client.query('ROLLBACK').catch(() => {})
        throw error
      } finally {
        client.release()
      }
    },
    async expireSessions(userId) {
      const { pool } = await open()
      await pool.query('UPDATE sessions SET expires_at = now() WHERE user_id = $1 AND ended_at IS NULL', [userId])
    },
    async expireRefreshTokens(sid) {
      const { pool } = await open()
      await pool.query('UPDATE refresh_tokens SET expires_at = now() WHERE authorization_id = $1', [sid])
    },
    async close() {
      const done = await opened?.catch(() => undefined)
      await done?.pool.end()
      await done?.release()
    },
  }
}

interface Opened {
  pool: pg.Pool
  release(): Promise<void>
}

const openDatabase = async (database: TestDatabase): Promise<Opened> => {
  const visit =
    'dataDir' in database
      ? await visitEmbeddedPostgres({ dataDir: resolve(database.dataDir), logger: silentLogger })
      : undefined
  const connection = visit?.connection ?? { connectionString: (database as { databaseUrl: string }).databaseUrl }
  const pool = new pg.Pool({ ...connection, max: 1 })
  // A server that is stopped ends idle connections; the next query says so.
  pool.on('error', () => {})
  return { pool, release: async () => visit?.release() }
}
