import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { hookSecrets, newSigningKey } from '../../deliveries/hook-secrets.ts'
import { createNotifier } from '../../events/notifier.ts'
import { type NewEvent, recordEvent } from '../../events/outbox.ts'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate, statement } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { newId } from '../../platform/ids.ts'
import { silentLogger } from '../../platform/logger.ts'
import { addDatabase, type Connection } from '../harness/database-store.ts'

/** What the relay works on: hooks and events, as an issuer would leave them in the ledger. */
export type RelayWorld = Awaited<ReturnType<typeof seedRelay>>

/** Events of each of them go to one hook. */
const types = ['User.Data.Updated', 'User.Created', 'User.SuspensionStatus.Updated', 'User.Deleted'] as const
/** Bytes of a payload: an answer of the Management API for a user, with its request. */
export const payloadBytes = 900

const insertHook = statement('bench-hook', `INSERT INTO hooks (id, name, events, url) VALUES ($1, 'bench', $2, $3)`)
const insertKey = statement('bench-key', `INSERT INTO hook_signing_keys (id, hook_id, sealed) VALUES ($1, $2, $3)`)
const emptied = 'outbox, outbox_pending, entity_versions, deliveries, delivery_attempts, lanes'
const lockNotAvailable = '55P03'
// Five changes of each entity, spread over the whole.
const backlog = `
  WITH numbered AS (SELECT n, 'user-' || n % ($1::int / 5) AS entity, 1 + n / ($1::int / 5) AS version FROM generate_series(0, $1::int - 1) n),
  event AS (
    INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
    SELECT gen_random_uuid(), 'user', entity, version, ($2::text[])[1 + n % 4], gen_random_uuid(),
      convert_to('{"id":"' || n || '","event":"x","version":' || version || ',"data":{"fill":"' || repeat('x', $3) || '"}}', 'UTF8')
    FROM numbered ORDER BY version, n RETURNING seq)
  INSERT INTO outbox_pending (seq) SELECT seq FROM event ORDER BY seq`

export const seedRelay = async (server: Connection) => {
  const connection = await addDatabase(server, 'relay')
  const database = createDatabase({ connection, logger: silentLogger })
  await migrate(database, migrations)
  const key = randomBytes(32)
  const secrets = hookSecrets(createEnvelope({ current: key }))
  const notifier = createNotifier({ database, logger: silentLogger })
  const client = new pg.Client(connection)
  await client.connect()

  const addHook = async (url: string, events: readonly string[]) => {
    const id = newId()
    await database.query(insertHook, [id, events, url])
    await database.query(insertKey, [newId(), id, secrets.sealSigningKey(id, newSigningKey())])
    return id
  }

  return {
    connection,
    key: key.toString('hex'),
    /** Four hooks, one for each type. */
    async addHooks(url: string) {
      for (const type of types) await addHook(url, [type])
    },
    /** One that gets everything. Returns what removes it. */
    async addHungHook(url: string) {
      const id = await addHook(url, types)
      return async () => {
        await client.query('DELETE FROM hooks WHERE id = $1', [id])
        await client.query('DELETE FROM deliveries WHERE hook_id = $1', [id])
      }
    },
    /**
     * An empty ledger, but for the hooks. A relay may be storing its last results, and takes events in in another order
     * of tables: never waits for one lock while holding another, so that neither ends in a deadlock.
     */
    async clear() {
      for (;;) {
        try {
          await client.query(`BEGIN; LOCK TABLE ${emptied} NOWAIT; TRUNCATE ${emptied}; COMMIT`)
          return
        } catch (error) {
          await client.query('ROLLBACK')
          if ((error as { code?: string }).code !== lockNotAvailable) throw error
          await delay(5)
        }
      }
    },
    /** Commits so many events, a multiple of 5, at once. Tells nobody: `wake`. */
    async addBacklog(events: number) {
      await client.query(backlog, [events, types, payloadBytes - 60])
    },
    /** Of write-ahead log that PostgreSQL has written up to now. Ask twice and subtract. */
    async walBytes(): Promise<number> {
      const { rows } = await client.query(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes`)
      return rows[0].bytes
    },
    wake: notifier.notify,
    /**
     * Records one event of one of 500 users as an issuer does. Returns its id and when it was committed, in ms since
     * the epoch.
     */
    async change(number: number) {
      const userId = `live-${number % 500}`
      const { id } = await database.transaction((query) =>
        recordEvent(query, {
          type: types[number % types.length],
          entity: { kind: 'user', id: userId },
          data: { id: userId, fill: 'x'.repeat(payloadBytes - 400) },
          request: {
            ip: '203.0.113.7',
            userAgent: 'bench',
            method: 'PATCH',
            path: `/users/${userId}`,
            matchedRoute: '/users/:userId',
            params: { userId },
            status: 200,
          },
          // As large as a real one, and as little as matters here.
        } as NewEvent),
      )
      const committedAt = performance.timeOrigin + performance.now()
      notifier.notify()
      return { id, committedAt }
    },
    async close() {
      await notifier.close()
      await client.end()
      await database.close()
    },
  }
}
