import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { BusBatch, EventBus } from '../../events/bus.ts'
import { createBus } from '../../events/create-bus.ts'
import { createEventFlow } from '../../events/event-flow.ts'
import { recordEvent } from '../../events/outbox.ts'
import { createPublisher } from '../../events/publisher.ts'
import { startReconciler } from '../../events/reconcile.ts'
import { silentLogger } from '../../platform/logger.ts'
import { createIngest } from '../../relay/ingest.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { userUpdated } from '../support/event-factory.ts'
import { natsMissing, startTestNats, type TestNats } from '../support/nats.ts'

/** What every bus promises, held against each of them: the outbox on one side, the ingest of the relay on the other. */
const missing = natsMissing()

describe.each([
  { name: 'PostgresBus', broker: false },
  { name: 'JetStreamBus', broker: true },
])('$name', ({ broker }) => {
  describe.skipIf(broker && missing !== undefined)('contract', () => {
    let db: TestDatabase
    let nats: TestNats | undefined
    let closers: (() => Promise<unknown>)[]
    beforeEach(async () => {
      db = await createTestDatabase({ poolSize: 20 })
      nats = broker ? await startTestNats() : undefined
      closers = []
    })
    afterEach(async () => {
      for (const close of closers.splice(0).toReversed()) await close()
      await nats?.close()
      await db.close()
    })

    const openBus = async (): Promise<EventBus> => {
      const { database } = db
      const bus = await createBus({
        database,
        logger: silentLogger,
        ...(nats && { nats: { servers: nats.servers } }),
      })
      closers.push(() => bus.close())
      return bus
    }
    const openPublisher = async () => {
      const publisher = createPublisher({ database: db.database, bus: await openBus(), logger: silentLogger })
      closers.push(() => publisher.close())
      return publisher
    }
    /** A relay as far as the ledger. `before` runs with each batch, and may throw. */
    const openConsumer = async ({ before = async (_batch: BusBatch) => {}, patienceMs = 30_000 } = {}) => {
      const { database } = db
      const bus = await openBus()
      const ingest = createIngest({ database, logger: silentLogger, flow: createEventFlow(), onDeliveries: () => {} })
      const stopping = new AbortController()
      const batches: number[] = []
      const consuming = bus.consume(
        async (batch) => {
          batches.push(batch.eventIds.length)
          await before(batch)
          return ingest(batch)
        },
        { signal: stopping.signal },
      )
      const reconciler = startReconciler({ database, bus, logger: silentLogger, patienceMs })
      const close = async () => {
        stopping.abort()
        await Promise.all([consuming, reconciler.close()])
      }
      closers.push(close)
      return { batches, close }
    }

    const record = (userId: string) => db.database.transaction((query) => recordEvent(query, userUpdated(userId)))
    const recordMany = async (entities: number, each: number) => {
      for (let round = 0; round < each; round += 1)
        await Promise.all(Array.from({ length: entities }, (_, index) => record(`u${index}`)))
    }
    const takenIn = async () => {
      const { rows } = await db.database.pool.query(
        `SELECT count(*) FILTER (WHERE ingested_at IS NOT NULL) AS count FROM outbox`,
      )
      return rows[0].count as number
    }
    const allTakenIn = (count: number) => expect.poll(takenIn, { interval: 10, timeout: 25_000 }).toBe(count)
    const listen = () =>
      db.database.pool.query(
        `INSERT INTO hooks (id, name, events, url) VALUES ('h1', '', '{User.Data.Updated}', 'https://receiver.test')`,
      )
    /** The versions of each entity in the order in which their deliveries were made. */
    const deliveredVersions = async () => {
      const { rows } = await db.database.pool.query(
        `SELECT entity_id, array_agg(version ORDER BY id)::int[] AS versions FROM deliveries GROUP BY entity_id`,
      )
      return rows.map(({ versions }) => versions as number[])
    }
    const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

    test('carries events in order per entity, with several publishers and several consumers', async () => {
      await listen()
      const publishers = [await openPublisher(), await openPublisher(), await openPublisher()]
      for (let consumer = 0; consumer < 3; consumer += 1) await openConsumer()
      await recordMany(10, 20)
      for (const publisher of publishers) publisher.wake()
      await allTakenIn(200)
      const versions = await deliveredVersions()
      expect(versions).toHaveLength(10)
      for (const each of versions) expect(each).toEqual(upTo(20))
    })

    test('many events of one entity come in order', async () => {
      await listen()
      for (let index = 0; index < 700; index += 1) await record('busy')
      await openConsumer()
      const publisher = await openPublisher()
      publisher.wake()
      await allTakenIn(700)
      expect(await deliveredVersions()).toEqual([upTo(700)])
    })

    test('an event is there soon after its commit, however long nothing happened', async () => {
      const publisher = await openPublisher()
      await openConsumer()
      // Left to the polls of a second, this would outlast the test's time limit.
      for (let count = 1; count <= 40; count += 1) {
        await record('quiet')
        publisher.wake()
        await allTakenIn(count)
      }
    })

    test('a batch whose handler throws comes again', async () => {
      await listen()
      let failures = 3
      const publisher = await openPublisher()
      await openConsumer({
        before: async () => {
          if (failures-- > 0) throw new Error('not now')
        },
      })
      await recordMany(5, 4)
      publisher.wake()
      await allTakenIn(20)
      expect(failures).toBeLessThan(0)
      for (const versions of await deliveredVersions()) expect(versions).toEqual(upTo(4))
    })

    test('what is handed over twice is taken in once', async () => {
      await listen()
      const publisher = await openPublisher()
      await recordMany(3, 5)
      publisher.wake()
      // As when the publisher dies between the confirmation and its mark.
      if (broker) {
        await expect.poll(unpublished).toBe(0)
        await db.database.pool.query('UPDATE outbox SET published_at = NULL')
        publisher.wake()
        await expect.poll(unpublished).toBe(0)
      }
      await openConsumer()
      await allTakenIn(15)
      for (const versions of await deliveredVersions()) expect(versions).toEqual(upTo(5))
    })
    const unpublished = async () => {
      const { rows } = await db.database.pool.query(
        'SELECT count(*) AS count FROM outbox WHERE published_at IS NULL AND ingested_at IS NULL',
      )
      return rows[0].count as number
    }

    test('a consumer that ends in the middle leaves the rest to the next', async () => {
      await listen()
      const publisher = await openPublisher()
      const first = await openConsumer()
      await recordMany(20, 10)
      publisher.wake()
      await expect.poll(takenIn, { interval: 1 }).toBeGreaterThan(0)
      await first.close()
      await recordMany(20, 5)
      await openConsumer()
      publisher.wake()
      await allTakenIn(300)
      for (const versions of await deliveredVersions()) expect(versions).toEqual(upTo(15))
    })

    test('a slow handler is not drowned: batches are bounded and one at a time', async () => {
      let running = 0
      let most = 0
      const publisher = await openPublisher()
      await recordMany(300, 5)
      publisher.wake()
      const { batches } = await openConsumer({
        before: async () => {
          running += 1
          most = Math.max(most, running)
          await db.database.pool.query('SELECT pg_sleep(0.02)')
          running -= 1
        },
      })
      await allTakenIn(1_500)
      expect(most).toBe(1)
      expect(Math.max(...batches)).toBeLessThanOrEqual(500)
    })

    test('a backlog of thousands is worked off in order', async () => {
      await listen()
      await db.database.pool.query(
        `INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
         SELECT gen_random_uuid(), 'user', 'u' || entity, version, 'User.Data.Updated', gen_random_uuid(), '{}'
         FROM generate_series(1, 20) AS version, generate_series(1, 250) AS entity ORDER BY version, entity`,
      )
      await openConsumer()
      await openConsumer()
      const publishers = [await openPublisher(), await openPublisher()]
      for (const publisher of publishers) publisher.wake()
      await allTakenIn(5_000)
      const versions = await deliveredVersions()
      expect(versions).toHaveLength(250)
      for (const each of versions) expect(each).toEqual(upTo(20))
    })

    test('payloads from empty to huge travel', async () => {
      await listen()
      await db.database.pool.query(
        `INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
         SELECT gen_random_uuid(), 'user', 'u' || size, 1, 'User.Data.Updated', gen_random_uuid(), convert_to(repeat('x', size), 'UTF8')
         FROM unnest('{0,1,16384,16385,1048000,1048576,3000000}'::int[]) AS size`,
      )
      await openConsumer()
      const publisher = await openPublisher()
      publisher.wake()
      await allTakenIn(7)
    })
  })
})
