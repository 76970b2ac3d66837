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
