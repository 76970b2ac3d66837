import { afterEach, beforeEach, expect, test } from 'vitest'
import type { BusEvent } from '../../events/bus.ts'
import { recordEvent } from '../../events/outbox.ts'
import { createPublisher } from '../../events/publisher.ts'
import { startReconciler } from '../../events/reconcile.ts'
import { silentLogger } from '../../platform/logger.ts'
import { ingestEvents } from '../../relay/ledger/ingest-store.ts'
import { inOrder, lockPending } from '../../relay/ledger/pending-store.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { userUpdated } from '../support/event-factory.ts'
import { createLossyBus } from '../support/lossy-bus.ts'

let db: TestDatabase
let closers: (() => Promise<unknown>)[]
beforeEach(async () => {
  db = await createTestDatabase()
  closers = []
})
afterEach(async () => {
  for (const close of closers.toReversed()) await close()
  await db.close()
})

const start = (misbehave: Parameters<typeof createLossyBus>[0], { publishers = 1, patienceMs = 30_000 } = {}) => {
  const { database } = db
  const { bus, published } = createLossyBus(misbehave)
  const made = Array.from({ length: publishers }, () => createPublisher({ database, bus, logger: silentLogger }))
  const reconciler = startReconciler({ database, bus, logger: silentLogger, patienceMs })
  const stopping = new AbortController()
  const taken: string[] = []
  const consuming = bus.consume(
    {
      async ingest(messages) {
        const eventIds = messages.map(({ eventId }) => eventId)
        const deferred = await database.transaction(async (query) => {
          const locked = await lockPending(query, eventIds)
          const ready = inOrder(locked)
          await ingestEvents(query, ready)
          return locked.length - ready.length
        })
        taken.push(...eventIds)
        return { deferred, unknown: [] }
      },
      ingestNext: () => Promise.reject(new Error('there is a broker')),
    },
    { signal: stopping.signal },
  )
  closers.push(async () => {
    stopping.abort()
    await Promise.all([consuming, reconciler.close(), ...made.map((publisher) => publisher.close())])
  })
  return { publisher: made[0]!, published, taken }
}

const listen = () =>
  db.database.pool.query(
    `INSERT INTO hooks (id, name, events, url) VALUES ('h1', '', '{User.Data.Updated}', 'https://receiver.test')`,
  )
const record = (userId: string) => db.database.transaction((query) => recordEvent(query, userUpdated(userId)))
const recordMany = async (entities: number, each: number) => {
  for (let round = 0; round < each; round += 1)
    await Promise.all(Array.from({ length: entities }, (_, index) => record(`u${index}`)))
}
const allIngested = async (count: number) => {
  const left = async () => {
    const { rows } = await db.database.pool.query(
      `SELECT count(pending.seq) AS open, count(*) AS total FROM outbox LEFT JOIN outbox_pending AS pending USING (seq)`,
    )
    return `${rows[0].open} of ${rows[0].total}`
  }
  await expect.poll(left).toBe(`0 of ${count}`)
}
const versionsByKey = (events: readonly BusEvent[]) =>
  [...Map.groupBy(events, ({ key }) => key).values()].map((group) => group.map(({ version }) => version))

test('several publishers hand every event over once, in order per entity', async () => {
  const { publisher, published } = start({}, { publishers: 3 })
  await recordMany(10, 20)
  publisher.wake()
  await allIngested(200)
  expect(published).toHaveLength(200)
  const inOrder = Array.from({ length: 20 }, (_, index) => index + 1)
  for (const versions of versionsByKey(published)) expect(versions).toEqual(inOrder)
})

test('an event that the broker refuses is not overtaken by later ones of its entity', async () => {
  let refusals = 0
  const refuses = ({ key, version }: BusEvent) => key === 'user:u0' && version === 2 && refusals++ < 3
  const { publisher, published } = start({ refuses })
  await recordMany(3, 4)
  publisher.wake()
  await allIngested(12)
  expect(refusals).toBeGreaterThan(3)
  for (const versions of versionsByKey(published)) expect(versions).toEqual([1, 2, 3, 4])
})

test('what the broker confirms and loses is published again, and later events wait for it', async () => {
  await listen()
  let losses = 0
  const loses = () => losses++ < 10
  const { publisher } = start({ loses }, { patienceMs: 100 })
  await recordMany(5, 4)
  publisher.wake()
  await allIngested(20)
  expect(losses).toBeGreaterThan(20)
  const { rows } = await db.database.pool.query(
    `SELECT array_agg(version ORDER BY id)::int[] AS versions FROM deliveries GROUP BY entity_id`,
  )
  expect(rows).toHaveLength(5)
  for (const { versions } of rows) expect(versions).toEqual([1, 2, 3, 4])
})

test('repeated and reordered batches make one delivery an event', async () => {
  await listen()
  const { publisher } = start({ scrambles: true })
  await recordMany(5, 10)
  publisher.wake()
  await allIngested(50)
  const { rows } = await db.database.pool.query(
    `SELECT entity_id, array_agg(version ORDER BY id)::int[] AS versions FROM deliveries GROUP BY entity_id`,
  )
  expect(rows).toHaveLength(5)
  for (const { versions } of rows) expect(versions).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})
