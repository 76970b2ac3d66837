import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createTestFlow, type TestFlow, upTo } from '../support/event-flow.ts'
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
    let flow: TestFlow
    beforeEach(async () => {
      db = await createTestDatabase({ poolSize: 20 })
      nats = broker ? await startTestNats() : undefined
      flow = createTestFlow(db, nats && { servers: nats.servers })
    })
    afterEach(async () => {
      await flow.close()
      await nats?.close()
      await db.close()
    })
    const allIngested = (count: number) => expect.poll(flow.ingested).toBe(count)

    test('carries events in order per entity, with several publishers and several consumers', async () => {
      await flow.listen()
      const publishers = [await flow.openPublisher(), await flow.openPublisher(), await flow.openPublisher()]
      for (let consumer = 0; consumer < 3; consumer += 1) await flow.openConsumer()
      await flow.recordMany(10, 20)
      for (const publisher of publishers) publisher.wake()
      await allIngested(200)
      const versions = await flow.deliveredVersions()
      expect(versions).toHaveLength(10)
      for (const each of versions) expect(each).toEqual(upTo(20))
    })

    test('many events of one entity come in order', async () => {
      await flow.listen()
      for (let index = 0; index < 700; index += 1) await flow.record('busy')
      await flow.openConsumer()
      const publisher = await flow.openPublisher()
      publisher.wake()
      await allIngested(700)
      expect(await flow.deliveredVersions()).toEqual([upTo(700)])
    })

    test('an event is there soon after its commit, however long nothing happened', async () => {
      const publisher = await flow.openPublisher()
      await flow.openConsumer()
      // Left to the polls of a second, this would outlast the test's time limit.
      for (let count = 1; count <= 40; count += 1) {
        await flow.record('quiet')
        publisher.wake()
        await allIngested(count)
      }
    })

    test('a batch whose handler throws comes again', async () => {
      await flow.listen()
      let failures = 3
      const publisher = await flow.openPublisher()
      await flow.openConsumer({
        before: async () => {
          if (failures-- > 0) throw new Error('not now')
        },
      })
      await flow.recordMany(5, 4)
      publisher.wake()
      await allIngested(20)
      expect(failures).toBeLessThan(0)
      for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(4))
    })

    test('what is handed over twice is taken in once', async () => {
      await flow.listen()
      const publisher = await flow.openPublisher()
      await flow.recordMany(3, 5)
      publisher.wake()
      // As when the publisher dies between the confirmation and its mark.
      if (broker) {
        await expect.poll(flow.unpublished).toBe(0)
        await db.database.pool.query('UPDATE outbox_pending SET published_at = NULL')
        publisher.wake()
        await expect.poll(flow.unpublished).toBe(0)
      }
      await flow.openConsumer()
      await allIngested(15)
      for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(5))
    })
    test('a consumer that ends in the middle leaves the rest to the next', async () => {
      await flow.listen()
      const publisher = await flow.openPublisher()
      const first = await flow.openConsumer()
      await flow.recordMany(20, 10)
      publisher.wake()
      await expect.poll(flow.ingested, { interval: 1 }).toBeGreaterThan(0)
      await first.close()
      await flow.recordMany(20, 5)
      await flow.openConsumer()
      publisher.wake()
      await allIngested(300)
      for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(15))
    })

    test('a slow handler is not drowned: batches are bounded and few at a time', async () => {
      let running = 0
      let most = 0
      const publisher = await flow.openPublisher()
      await flow.recordMany(300, 5)
      publisher.wake()
      const { batches } = await flow.openConsumer({
        before: async () => {
          running += 1
          most = Math.max(most, running)
          await db.database.pool.query('SELECT pg_sleep(0.02)')
          running -= 1
        },
      })
      await allIngested(1_500)
      expect(most).toBe(1)
      expect(Math.max(...batches)).toBeLessThanOrEqual(500)
    })

    test('a backlog of thousands is worked off in order', async () => {
      await flow.listen()
      await db.database.pool.query(
        `WITH event AS (
           INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
           SELECT gen_random_uuid(), 'user', 'u' || entity, version, 'User.Data.Updated', gen_random_uuid(), '{}'
           FROM generate_series(1, 20) AS version, generate_series(1, 250) AS entity ORDER BY version, entity
           RETURNING seq)
         INSERT INTO outbox_pending (seq) SELECT seq FROM event`,
      )
      await flow.openConsumer()
      await flow.openConsumer()
      const publishers = [await flow.openPublisher(), await flow.openPublisher()]
      for (const publisher of publishers) publisher.wake()
      await allIngested(5_000)
      const versions = await flow.deliveredVersions()
      expect(versions).toHaveLength(250)
      for (const each of versions) expect(each).toEqual(upTo(20))
    })

    test('payloads from empty to huge travel', async () => {
      await flow.listen()
      await db.database.pool.query(
        `WITH event AS (
           INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
           SELECT gen_random_uuid(), 'user', 'u' || size, 1, 'User.Data.Updated', gen_random_uuid(), convert_to(repeat('x', size), 'UTF8')
           FROM unnest('{0,1,16384,16385,65536,65537,1048576,3000000}'::int[]) AS size
           RETURNING seq)
         INSERT INTO outbox_pending (seq) SELECT seq FROM event`,
      )
      await flow.openConsumer()
      const publisher = await flow.openPublisher()
      publisher.wake()
      await allIngested(8)
    })
  })
})
