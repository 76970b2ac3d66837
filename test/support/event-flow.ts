import type { BusMessage, EventConsumer } from '../../events/bus.ts'
import { createBus } from '../../events/create-bus.ts'
import { createEventMetrics } from '../../events/event-metrics.ts'
import { recordEvent } from '../../events/outbox.ts'
import { createPublisher } from '../../events/publisher.ts'
import { startReconciler } from '../../events/reconcile.ts'
import type { Logger } from '../../platform/logger.ts'
import { createLogger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import type { NatsServers } from '../../platform/nats/nats-url.ts'
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
    /** `before` runs with each batch of messages, none when the bus is the ledger, and may throw. */
    async openConsumer({
      before = async () => {},
      patienceMs = 30_000,
    }: {
      before?: (messages: readonly BusMessage[]) => Promise<void>
      patienceMs?: number
    } = {}) {
      const bus = await openBus()
      const ingest = createIngest({
        database,
        logger,
        metrics: createEventMetrics(metrics),
        onDeliveries: () => {},
      })
      const stopping = new AbortController()
      const batches: number[] = []
      const consumer: EventConsumer = {
        async ingest(messages) {
          batches.push(messages.length)
          await before(messages)
          return ingest.ingest(messages)
        },
        async ingestNext(limit) {
          await before([])
          const result = await ingest.ingestNext(limit)
          if (result.found > 0) batches.push(result.found)
          return result
        },
      }
      const consuming = bus.consume(consumer, { signal: stopping.signal })
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
    ingested: () => count('pending.seq IS NULL'),
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
