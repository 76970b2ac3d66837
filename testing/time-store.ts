import pg from 'pg'

/** Time, as far as the database of an issuer knows it: for tests that cannot wait for days. */
export interface TestTime {
  /**
   * Everything that sessions, grants, codes, refresh tokens, opaque tokens, open sign-ins, devices, limits and locks
   * know of time is so much longer ago. A JWT says itself until when it is good, and so does not age.
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
  ...['subject_tokens', 'impersonation_sessions', 'sign_in_failures', 'message_counts'],
]

const columns = `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
  WHERE table_schema = current_schema() AND table_name = ANY ($1) AND data_type = 'timestamp with time zone'
    AND is_generated = 'NEVER'`

/** `databaseUrl`: of a database that is for tests alone. */
export const createTestTime = ({ databaseUrl }: { databaseUrl: string }): TestTime => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  // A server that is stopped ends idle connections; the next query says so.
  pool.on('error', () => {})
  return {
    async pass(seconds) {
      const client = await pool.connect()
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
      await pool.query('UPDATE sessions SET expires_at = now() WHERE user_id = $1 AND ended_at IS NULL', [userId])
    },
    async expireRefreshTokens(sid) {
      await pool.query('UPDATE refresh_tokens SET expires_at = now() WHERE authorization_id = $1', [sid])
    },
    close: () => pool.end(),
  }
}
