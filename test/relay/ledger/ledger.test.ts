import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { replayDelivery } from '../../../deliveries/reopen-store.ts'
import { giveTestsUp, insertTestSend } from '../../../deliveries/test-send-store.ts'
import { recordEvent } from '../../../events/outbox.ts'
import { type Query, statement } from '../../../platform/database/database.ts'
import { uuidv7 } from '../../../platform/ids.ts'
import { type AttemptRecord, recordAttempts } from '../../../relay/ledger/attempt-store.ts'
import { enterRelay } from '../../../relay/ledger/heartbeat-store.ts'
import { ingestEvents } from '../../../relay/ledger/ingest-store.ts'
import { claimLanes } from '../../../relay/ledger/lane-claim-store.ts'
import { type Lease, openDeliveries } from '../../../relay/ledger/lane-store.ts'
import { inOrder, lockNextPending, lockPending, type PendingEvent } from '../../../relay/ledger/pending-store.ts'
import { removeExpired } from '../../../relay/ledger/retention-store.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { userUpdated } from '../../support/event-factory.ts'

let db: TestDatabase
const relayId = '00000000-0000-4000-8000-000000000001'
beforeAll(async () => {
  db = await createTestDatabase()
  await enterRelay(db.database.query, relayId, 600_000)
})
afterAll(() => db.close())
beforeEach(async () => {
  await db.database.pool.query('TRUNCATE outbox, entity_versions, hooks CASCADE')
  await db.database.pool.query('TRUNCATE deliveries, lanes, delivery_attempts')
  await db.database.pool.query(
    `INSERT INTO hooks (id, name, events, url) VALUES ('h1', '', '{User.Data.Updated}', 'https://receiver.test')`,
  )
})

const record = async (...userIds: string[]) => {
  const ids: string[] = []
  for (const userId of userIds)
    ids.push((await db.database.transaction((query) => recordEvent(query, userUpdated(userId)))).id)
  return ids
}
const ingestLocked = async (query: Query, locked: readonly PendingEvent[]) => {
  const ready = inOrder(locked)
  const deliveries = await ingestEvents(query, ready)
  return { deliveries, ingested: ready.length, deferred: locked.length - ready.length }
}
const ingest = (ids: readonly string[]) =>
  db.database.transaction(async (query) => ingestLocked(query, await lockPending(query, ids)))
const claim = async (leaseMs = 30_000) =>
  (await claimLanes(db.database.query, { relayId, leaseMs, limit: 100, perHook: 10, room: new Map() })).leases
const some = { perLane: 8, maxBytes: 1_000_000 }
const heads = async (leases: readonly Lease[]) =>
  [...(await openDeliveries(db.database.query, leases, some)).values()].flat().map(({ version }) => version)
const succeeded = async (lease: Lease): Promise<AttemptRecord> => {
  const [delivery] = (await openDeliveries(db.database.query, [lease], some)).get(lease.fence)!
  return {
    lease,
    deliveryId: delivery!.id,
    at: new Date(),
    durationMs: 1,
    state: 'succeeded',
    retryInMs: 0,
    requestHeaders: {},
    status: 200,
    responseHeaders: {},
    responseBody: Buffer.from([0]),
    error: null,
    address: null,
    changesHealth: false,
  }
}
const store = (results: AttemptRecord[], released: Lease[]) =>
  db.database.transaction((query) =>
    recordAttempts(
      query,
      results,
      released.map((lease) => ({ lease, goOn: false })),
      { random: () => 0.5 },
    ),
  )

test('events are ingested once and in order; what has no predecessor yet is left', async () => {
  const [first, second, third, other] = (await record('a', 'a', 'a', 'b')) as [string, string, string, string]
  expect(await ingest([third, second, other])).toEqual({ ingested: 1, deliveries: 1, deferred: 2 })
  expect(await ingest([second, first])).toEqual({ ingested: 2, deliveries: 2, deferred: 0 })
  expect(await ingest([first, second, third])).toEqual({ ingested: 1, deliveries: 1, deferred: 0 })
  expect(await ingest([first, second, third, other])).toEqual({ ingested: 0, deliveries: 0, deferred: 0 })
})

test('while one relay takes an event in, another cannot take its successor in', async () => {
  const [first, second] = (await record('a', 'a')) as [string, string]
  await db.database.transaction(async (query) => {
    expect(await ingestLocked(query, await lockPending(query, [first]))).toMatchObject({ ingested: 1 })
    expect(await ingest([second])).toEqual({ ingested: 0, deliveries: 0, deferred: 1 })
  })
  expect(await ingest([second])).toMatchObject({ ingested: 1 })
})

test('of what waits, a relay takes what no other has, and leaves the successors of what another has', async () => {
  await record('a', 'b', 'a', 'c', 'c')
  const next = (query: Query, limit: number) =>
    lockNextPending(query, limit).then((locked) => ingestLocked(query, locked))
  await db.database.transaction(async (query) => {
    expect(await next(query, 1)).toMatchObject({ ingested: 1, deferred: 0 })
    expect(await db.database.transaction((other) => next(other, 10))).toMatchObject({ ingested: 3, deferred: 1 })
  })
  expect(await db.database.transaction((query) => next(query, 10))).toMatchObject({ ingested: 1, deferred: 0 })
  const { rows } = await db.database.pool.query(
    `SELECT entity_id AS id, array_agg(version ORDER BY id)::int[] AS versions FROM deliveries GROUP BY 1 ORDER BY 1`,
  )
  expect(rows).toEqual([
    { id: 'a', versions: [1, 2] },
    { id: 'b', versions: [1] },
    { id: 'c', versions: [1, 2] },
  ])
})

test('no lane outlives its hook, also when it is opened while the hook is deleted', async () => {
  await ingest(await record('a'))
  const [lease] = await claim()
  const result = await succeeded(lease!)
  await store([result], [lease!])
  const { pool } = db.database
  const waiting = `SELECT count(*) > 0 AS yes FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  let deleting: Promise<unknown> | undefined
  await db.database.transaction(async (query) => {
    await replayDelivery(query, 'h1', String(result.deliveryId))
    deleting = pool.query(`DELETE FROM hooks WHERE id = 'h1'`)
    await expect.poll(async () => (await pool.query(waiting)).rows[0].yes).toBe(true)
  })
  await deleting
  const testSend = {
    hookId: 'h1',
    eventId: uuidv7(),
    type: 'User.Created',
    payload: Buffer.from('{}'),
    target: undefined,
  }
  await db.database.transaction(async (query) => {
    await replayDelivery(query, 'h1', String(result.deliveryId))
    expect(await insertTestSend(query, testSend)).toBeUndefined()
  })
  expect((await pool.query('SELECT count(*) AS lanes FROM lanes')).rows).toEqual([{ lanes: 0 }])
})

test('a test-send that is given up just when its result is stored keeps the result, and neither waits for the other in a circle', async () => {
  const { pool } = db.database
  const eventId = uuidv7()
  const testSend = { hookId: 'h1', eventId, type: 'User.Created', payload: Buffer.from('{}'), target: undefined }
  const id = await db.database.transaction((query) => insertTestSend(query, testSend))
  const waiting = `SELECT count(*) > 0 AS yes FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  let givingUp: Promise<void> | undefined
  await db.database.transaction(async (query) => {
    // As whoever stores a result does: the lane, then the delivery.
    await query(statement('test-lock-lane', 'SELECT FROM lanes WHERE entity_id = $1 FOR UPDATE'), [eventId])
    givingUp = giveTestsUp(db.database.query, 'h1', [id!])
    await expect.poll(async () => (await pool.query(waiting)).rows[0].yes).toBe(true)
    const succeed = `UPDATE deliveries SET state = 'succeeded', finished_at = now() WHERE id = $1`
    await query(statement('test-succeed', succeed), [id])
    await query(statement('test-remove-lane', 'DELETE FROM lanes WHERE entity_id = $1'), [eventId])
  })
  await givingUp
  expect((await pool.query('SELECT state FROM deliveries WHERE id = $1', [id])).rows).toEqual([{ state: 'succeeded' }])
})

test('a lane is claimed by one relay until it gives it back; a new event does not open it again', async () => {
  await ingest(await record('a', 'b'))
  const leases = await claim()
  expect(leases.map(({ entityId }) => entityId).toSorted()).toEqual(['a', 'b'])
  expect(await claim()).toEqual([])
  await ingest(await record('a'))
  expect(await claim()).toEqual([])
  const lease = leases.find(({ entityId }) => entityId === 'a')!
  expect(await heads([lease])).toEqual([1, 2])
  expect(await store([await succeeded(lease)], [lease])).toEqual({
    fenced: 0,
    changes: [],
    left: new Map([[lease.fence, { fence: lease.fence, from: 2, due: true, kept: false }]]),
  })
  const [again, ...others] = await claim()
  expect(others).toEqual([])
  expect(await heads([again!])).toEqual([2])
})

test('an event that is ingested while a lane is given back still finds a lane', async () => {
  await ingest(await record('a'))
  const [lease] = await claim()
  const [later] = await record('a')
  const result = await succeeded(lease!)
  await Promise.all([ingest([later!]), store([result], [lease!])])
  expect(await heads(await claim())).toEqual([2])
})

test('a lane that was given back is not kept when the answer to that was lost and it is stored again', async () => {
  await ingest(await record('u1'))
  const [lease] = await claim()
  await db.database.pool.query(`UPDATE deliveries SET state = 'retrying', next_attempt_at = now() + interval '1 hour'`)
  const goOn = () =>
    db.database.transaction((query) => recordAttempts(query, [], [{ lease: lease!, goOn: true }], { random: () => 0 }))
  await goOn()
  await db.database.pool.query(`UPDATE deliveries SET next_attempt_at = now()`)
  const { left } = await goOn()
  expect(left.get(lease!.fence)).toMatchObject({ due: true, kept: false })
})

test('after its lease has passed to another, a relay writes nothing', async () => {
  await ingest(await record('a'))
  const [late] = await claim(-1)
  const [current] = await claim()
  expect(current!.fence).toBeGreaterThan(late!.fence)
  const result = await succeeded(late!)
  expect(await store([{ ...result, state: 'dead' }], [late!])).toMatchObject({ fenced: 1 })
  expect(await claim()).toEqual([])
  expect(await store([await succeeded(current!)], [current!])).toMatchObject({ fenced: 0, left: new Map() })
  const { rows } = await db.database.pool.query('SELECT state, attempts FROM deliveries')
  expect(rows).toEqual([{ state: 'succeeded', attempts: 1 }])
})

test('an empty lane disappears; paused and disabled hooks are not claimed', async () => {
  await ingest(await record('a'))
  await db.database.pool.query(`UPDATE hooks SET paused_until = now() + interval '1 hour'`)
  expect(await claim()).toEqual([])
  await db.database.pool.query(`UPDATE hooks SET paused_until = NULL, enabled = false`)
  expect(await claim()).toEqual([])
  await db.database.pool.query(`UPDATE hooks SET enabled = true, catching_up = false`)
  expect(await claim()).toEqual([])
  await db.database.pool.query(`UPDATE hooks SET catching_up = false`)
  const [lease] = await claim()
  await store([await succeeded(lease!)], [lease!])
  expect((await db.database.pool.query('SELECT * FROM lanes')).rows).toEqual([])
})

test('retention removes what is old and done, nothing that is still to be ingested or delivered', async () => {
  const [done, open, untaken] = (await record('done', 'open', 'untaken')) as [string, string, string]
  await ingest([done])
  const [lease] = await claim()
  await store([await succeeded(lease!)], [lease!])
  await ingest([open])
  await db.database.pool.query(
    `UPDATE outbox SET created_at = now() - interval '15 days';
     UPDATE deliveries SET created_at = now() - interval '15 days', finished_at = finished_at - interval '15 days';
     UPDATE delivery_attempts SET at = now() - interval '15 days'`,
  )
  await db.database.transaction((query) => removeExpired(query, 14 * 86_400_000))
  const { rows } = await db.database.pool.query(`SELECT id FROM outbox ORDER BY seq`)
  expect(rows).toEqual([{ id: open }, { id: untaken }])
  expect((await db.database.pool.query(`SELECT entity_id FROM deliveries`)).rows).toEqual([{ entity_id: 'open' }])
  expect((await db.database.pool.query(`SELECT * FROM delivery_attempts`)).rows).toEqual([])
})
