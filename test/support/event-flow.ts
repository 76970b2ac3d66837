import type { BusHandler } from '../../events/bus.ts'
import { createBus } from '../../events/create-bus.ts'
import { createEventFlow } from '../../events/event-flow.ts'
import type { Locking } from '../../events/ledger-store.ts'
import { recordEvent } from '../../events/outbox.ts'
import { createPublisher } from '../../events/publisher.ts'
import { startReconciler } from '../../events/reconcile.ts'
import type { Query } from '../../platform/database.ts'
import type { Logger } from '../../platform/logger.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import type { NatsServers } from '../../platform/nats-url.ts'
import { createIngest } from '../../relay/ingest.ts'
import type { TestDatabase } from './database.ts'
import { userUpdated } from './event-factory.ts'

/**
 * Issuers and relays as far as events travel, over a bus of their own each: publishers on one side, ingests on the
 * other.
 */
export const createTestFlow = (db: TestDatabase, nats?: { servers: NatsServers; patienceMs?: number }) => {
  const { database } = db
  const metrics = createMetrics()
  const closers: (() => Promise<unknown>)[] = []
  const logged: string[] = []
  const logger: Logger = createLogger({
    name: 'test',
    level: 'info',
    destination: { write: (line) => void logged.push(line) },
  })

  const openBus = async () => {
    const bus = await createBus({ database, logger, metrics, nats })
    closers.push(() => bus.close())
    return bus
  }
  const count = async (condition: string) => {
    const { rows } = await database.pool.query(
      `SELECT count(*) AS count FROM outbox LEFT JOIN outbox_pending AS pending USING (seq) WHERE ${condition}`,
    )
    return rows[0].count as number
  }
  const unpublished = 'pending.seq IS NOT NULL AND published_at IS NULL'

  return {
    metrics,
    /** What the parts have logged so far, as one text. */
    log: () => logged.join(''),
    openBus,
    async openPublisher() {
      const bus = await openBus()
      const publisher = createPublisher({ database, bus, logger, metrics })
      closers.push(() => publisher.close())
      return { ...publisher, bus }
    },
    /** `before` runs with each batch, and may throw. */
    async openConsumer({
      before = async () => {},
      patienceMs = 30_000,
    }: {
      before?: (batch: Parameters<BusHandler>[0]) => Promise<void>
      patienceMs?: number
    } = {}) {
      const bus = await openBus()
      const ingest = createIngest({
        database,
        logger,
        flow: createEventFlow(metrics),
        firstAttempts: { mayBegin: () => false, begin: async () => undefined },
        aliveMs: 5_000,
        onDeliveries: () => {},
        onDoubt: () => {},
      })
      const stopping = new AbortController()
      const batches: number[] = []
      const handler: BusHandler = async (batch) => {
        const { lockNext } = batch
        if (lockNext === undefined) batches.push(batch.eventIds.length)
        await before(batch)
        if (lockNext === undefined) return ingest(batch)
        const counted = async (query: Query, locking: Locking) => {
          const locked = await lockNext(query, locking)
          if (locked.length > 0) batches.push(locked.length)
          return locked
        }
        return ingest({ ...batch, lockNext: counted })
      }
      const consuming = bus.consume(handler, { signal: stopping.signal })
      const reconciler = startReconciler({ database, bus, logger, metrics, patienceMs })
      const close = async () => {
        stopping.abort()
        await Promise.all([consuming, reconciler.close()])
      }
      closers.push(close)
      return { batches, bus, close }
    },
    async record(userId: string) {
      return database.transaction((query) => recordEvent(query, userUpdated(userId)))
    },
    async recordMany(entities: number, each: number) {
      for (let round = 0; round < each; round += 1)
        await Promise.all(
          Array.from({ length: entities }, (_, index) =>
            database.transaction((query) => recordEvent(query, userUpdated(`u${index}`))),
          ),
        )
    },
    /** One hook that listens to what `record` records. */
    listen: () =>
      database.pool.query(
        `INSERT INTO hooks (id, name, events, url) VALUES ('h1', '', '{User.Data.Updated}', 'https://receiver.test')`,
      ),
    takenIn: () => count('pending.seq IS NULL'),
    published: () => count(`NOT (${unpublished})`),
    unpublished: () => count(unpublished),
    /** The versions of each entity in the order in which their deliveries were made. */
    async deliveredVersions() {
      const { rows } = await database.pool.query(
        `SELECT array_agg(version ORDER BY id)::int[] AS versions FROM deliveries GROUP BY entity_id`,
      )
      return rows.map(({ versions }) => versions as number[])
    },
    async close() {
      for (const close of closers.splice(0).toReversed()) await close()
    },
  }
}

export type TestFlow = ReturnType<typeof createTestFlow>

/** 1, 2, … `count`. */
export const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
