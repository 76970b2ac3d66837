import pg from 'pg'

/** How to reach a database; as `startEmbeddedPostgres` gives it. */
export type Connection = { host: string; port: number; user: string; password: string; database: string }

/** A new, empty database beside the one that `server` names. */
export const addDatabase = async (server: Connection, name: string): Promise<Connection> => {
  const admin = new pg.Client(server)
  await admin.connect()
  try {
    await admin.query(`CREATE DATABASE ${admin.escapeIdentifier(name)}`)
  } finally {
    await admin.end()
  }
  return { ...server, database: name }
}

/**
 * How many transactions of the server, in whatever database, have written or locked something up to now. Ask twice
 * and subtract.
 */
export const countWriting = async (connection: Connection): Promise<number> => {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rows } = await client.query<{ next: string }>(
      'SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next',
    )
    return Number(rows[0]?.next)
  } finally {
    await client.end()
  }
}
