import { readFile } from 'node:fs/promises'
import pg from 'pg'
import type { Connection } from './database-store.ts'

/**
 * What PostgreSQL works for one issuer: the CPU time of the server processes that hold its connections, as the kernel's
 * scheduler accounts it (`/proc/<pid>/schedstat`, in ns). Left out is what works for all databases together:
 * checkpointer, WAL writer, autovacuum; and other connections to the same database, which prepare the rounds.
 */
export type DatabaseCpu = {
  /** CPU microseconds up to now. Ask twice and subtract. */
  micros: () => Promise<number>
  close: () => Promise<void>
}

const backends = `SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND backend_type = 'client backend' AND application_name = 'surrogate'`

export const watchDatabaseCpu = async (connection: Connection): Promise<DatabaseCpu> => {
  const client = new pg.Client(connection)
  await client.connect()
  /** Also of connections that have been closed since: otherwise the sum would fall. */
  const seen = new Map<number, number>()
  return {
    micros: async () => {
      const { rows } = await client.query<{ pid: number }>(backends)
      for (const { pid } of rows) seen.set(pid, await cpuMicrosOf(pid))
      return [...seen.values()].reduce((sum, micros) => sum + micros, 0)
    },
    close: () => client.end(),
  }
}

const cpuMicrosOf = async (pid: number): Promise<number> => {
  const text = await readFile(`/proc/${pid}/schedstat`, 'latin1').catch((cause: unknown) => {
    throw new Error('The CPU time of PostgreSQL is read from /proc/<pid>/schedstat: this comparison needs Linux.', {
      cause,
    })
  })
  return Number(text.split(' ')[0]) / 1000
}
