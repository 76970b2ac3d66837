import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { hookSecrets, newSigningKey } from '../../deliveries/hook-secrets.ts'
import { type NewEvent, recordEvent } from '../../events/outbox.ts'
import { createPostgresBus } from '../../events/postgres-bus.ts'
import { createPublisher } from '../../events/publisher.ts'
import { createDatabase, type Database, statement } from '../../platform/database/database.ts'
import { createEnvelope } from '../../platform/envelope.ts'
import { createHealth } from '../../platform/health.ts'
import { newId } from '../../platform/ids.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import type { RelayConfig } from '../../relay/config.ts'
import { type RelayOptions, startRelay } from '../../relay/main.ts'
import { createTestDatabase } from './database.ts'

export const testRelayConfig: RelayConfig = { allowedNetworks: ['127.0.0.0/8'], allowHttp: true }

const insertHook = statement(
  'test-hook',
  `INSERT INTO hooks (id, name, events, url, sealed_headers, enabled) VALUES ($1, 'test', $2, $3, $4, $5)`,
)
const insertKey = statement(
  'test-hook-key',
  `INSERT INTO hook_signing_keys (id, hook_id, sealed, expires_at, created_at)
   VALUES ($1, $2, $3, now() + $4 * interval '1 second', now() - $5 * interval '1 second')`,
)

/** A relay in this process that may send to it. `close` may be called twice. */
export const startTestRelay = async (
  options: Partial<RelayOptions> & Pick<RelayOptions, 'database' | 'bus' | 'envelope'>,
) => {
  const relay = await startRelay({
    config: testRelayConfig,
    logger: silentLogger,
    metrics: createMetrics(),
    health: createHealth(),
    ...options,
  })
  let closed: Promise<void> | undefined
  return {
    close() {
      closed ??= relay.close()
      return closed
    },
  }
}

/** A ledger of its own with the parts that run on it: changes on one side, relays on the other. */
export const startTestLedger = async (options: Parameters<typeof createTestDatabase>[0] = {}) => {
  const db = await createTestDatabase(options)
  const { database } = db
  const key = randomBytes(32)
  const envelope = createEnvelope({ current: key })
  const secrets = hookSecrets(envelope)
  const bus = createPostgresBus({ database, logger: silentLogger })
  const publisher = createPublisher({ database, bus, logger: silentLogger })
  const closers: (() => Promise<unknown>)[] = []

  return {
    database,
    connection: db.connection,
    envelope,
    key,
    bus,
    /** Registers a hook by SQL. `oldKeys` still sign, the newest first. */
    async hook(options: {
      url: string
      events?: string[]
      headers?: Record<string, string>
      enabled?: boolean
      oldKeys?: string[]
    }) {
      const id = newId()
      const signingKey = newSigningKey()
      const { url, events = ['User.Data.Updated'], headers = {}, enabled = true, oldKeys = [] } = options
      await database.query(insertHook, [id, events, url, secrets.sealHeaders(id, headers), enabled])
      for (const [age, one] of [signingKey, ...oldKeys].entries())
        await database.query(insertKey, [
          newId(),
          id,
          secrets.sealSigningKey(id, one),
          age === 0 ? null : 3_600 - age,
          age,
        ])
      return { id, signingKey }
    },
    /** Records events in one committed transaction and wakes the publisher, as an issuer does. */
    async record(...events: NewEvent[]) {
      const recorded = await database.transaction(async (query) => {
        const all = []
        for (const event of events) all.push(await recordEvent(query, event))
        return all
      })
      publisher.wake()
      return recorded
    },
    /** A relay in this process. With `ownDatabase` it has its own pool and bus, as another process would. */
    async relay(options: Partial<RelayOptions> & { ownDatabase?: boolean } = {}) {
      const { ownDatabase = false, ...overrides } = options
      const own: Database = ownDatabase ? createDatabase({ connection: db.connection, logger: silentLogger }) : database
      const ownBus = ownDatabase ? createPostgresBus({ database: own, logger: silentLogger }) : bus
      const relay = await startTestRelay({ database: own, bus: ownBus, envelope, ...overrides })
      let closed = false
      const close = async () => {
        if (closed) return
        closed = true
        await relay.close()
        if (ownDatabase) {
          await ownBus.close()
          await own.close()
        }
      }
      closers.push(close)
      return { close }
    },
    async rows<Row extends object = Record<string, unknown>>(sql: string, ...values: unknown[]) {
      return (await database.pool.query<Row>(sql, values)).rows
    },
    /**
     * Resolves once the query's first row says `true`, however often the connection is cut; the test's time limit ends
     * the wait.
     */
    async untilTrue(sql: string, ...values: unknown[]) {
      for (;;) {
        const result = await database.pool.query<Record<string, unknown>>(sql, values).catch(() => undefined)
        const row = result?.rows[0]
        if (row && Object.values(row)[0] === true) return
        await delay(10)
      }
    },
    /** Everything is taken in and delivered, and that is stored. */
    untilSettled(): Promise<void> {
      return this.untilTrue(`SELECT NOT EXISTS (SELECT FROM outbox_pending) AND NOT EXISTS (SELECT FROM lanes)`)
    },
    async close() {
      for (const close of closers.toReversed()) await close()
      await publisher.close()
      await bus.close()
      await db.close()
    },
  }
}

export type TestLedger = Awaited<ReturnType<typeof startTestLedger>>
