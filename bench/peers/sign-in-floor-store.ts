import pg from 'pg'
import type { Connection } from '../harness/database-store.ts'

/** One row each, named statements, each a transaction of its own: what asking PostgreSQL anything costs. */
export const createFloorStore = async (connection: Connection) => {
  const pool = new pg.Pool(connection)
  // One rejected idle connection must not end the process.
  pool.on('error', () => {})
  await pool.query('CREATE TABLE noted (id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY, value text NOT NULL)')
  const run = async (name: string, text: string, value: unknown) => {
    await pool.query({ name, text, values: [value] })
  }
  return {
    read: () => run('read', 'SELECT value FROM noted WHERE id = $1', 1),
    write: () => run('write', 'INSERT INTO noted (value) VALUES ($1)', 'a row'),
    close: () => pool.end(),
  }
}
