/**
 * A process that owns an embedded PostgreSQL, for tests that kill it. Arguments: the module's URL, the data folder.
 * Prints one JSON line when ready or refused, another when it drains after SIGINT. Input: `stop`, or `exit` to end
 * without stopping.
 */
import { createInterface } from 'node:readline'
import pg from 'pg'
import { silentLogger } from '../../platform/logger.ts'

const [moduleUrl = '', dataDir = ''] = process.argv.slice(2)
const { startEmbeddedPostgres } = (await import(
  moduleUrl
)) as typeof import('../../platform/embedded-postgres/index.ts')
const say = (message: unknown) => process.stdout.write(`${JSON.stringify(message)}\n`)

try {
  const server = await startEmbeddedPostgres({ dataDir, logger: silentLogger, settings: { fsync: 'off' } })
  process.on('SIGINT', async () => {
    const client = new pg.Client(server.connection)
    await client.connect()
    const { rows } = await client.query<{ one: number }>('SELECT 1 AS one')
    await client.end()
    await server.stop()
    say({ drained: rows[0]?.one === 1 })
    process.exit(0)
  })
  say({ ...server, stop: undefined })
  for await (const command of createInterface({ input: process.stdin })) {
    if (command === 'stop') await server.stop()
    process.exit(0)
  }
} catch (error) {
  const { name, message, hint } = error as { name: string; message: string; hint?: string }
  say({ error: name, message, hint })
  process.exit(1)
}
