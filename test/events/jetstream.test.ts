import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, headers, type NatsConnection } from '@nats-io/transport-node'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createTestFlow, type TestFlow, upTo } from '../support/event-flow.ts'
import { natsMissing, startTestNats, type TestNats } from '../support/nats.ts'

/** What only a broker can do to us: vanish, forget, hang, fill up, be somebody else's, and carry what is no event. */
describe.skipIf(natsMissing() !== undefined)('JetStream', () => {
  let db: TestDatabase
  let nats: TestNats
  let flow: TestFlow
  let others: NatsConnection[]
  beforeEach(async () => {
    db = await createTestDatabase({ poolSize: 20 })
    nats = await startTestNats()
    flow = createTestFlow(db, { servers: nats.servers, patienceMs: 500 })
    others = []
  })
  afterEach(async () => {
    for (const connection of others) await connection.close()
    await flow.close()
    await nats.close()
    await db.close()
  })

  /** Somebody else with access to the server. */
  const admin = async () => {
    const connection = await connect({ servers: nats.url })
    others.push(connection)
    return { manager: await jetstreamManager(connection), js: jetstream(connection) }
  }
  const allIngested = (count: number) => expect.poll(flow.ingested).toBe(count)
  const allPublished = (count: number) => expect.poll(flow.published).toBe(count)
  const streams = { name: 'SURROGATE_EVENTS', subjects: ['surrogate.events.>'] }

  test('the stream and the consumer are made as documented; messages are the events as receivers get them', async () => {
    const publisher = await flow.openPublisher()
    await flow.openConsumer()
    const { id } = await flow.record('u1')
    publisher.wake()
    await allIngested(1)
    const { manager } = await admin()
    const { config } = await manager.streams.info('SURROGATE_EVENTS')
    expect(config).toMatchObject({
      subjects: ['surrogate.events.>'],
      retention: 'limits',
      storage: 'file',
      discard: 'new',
      max_age: 604_800_000_000_000,
    })
    const consumer = await manager.consumers.info('SURROGATE_EVENTS', 'surrogate-relay')
    expect(consumer.config).toMatchObject({ ack_policy: 'explicit', max_deliver: -1, durable_name: 'surrogate-relay' })
    const message = await manager.streams.getMessage('SURROGATE_EVENTS', { seq: 1 })
    expect(message?.subject).toBe('surrogate.events.User.Data.Updated')
    expect(message?.header.get('Nats-Msg-Id')).toBe(id)
    expect(message?.header.get('Surrogate-Key')).toBe('user%3Au1')
    expect(message?.header.get('Surrogate-Version')).toBe('1')
    const { rows } = await db.database.pool.query('SELECT payload FROM outbox')
    expect(Buffer.from(message!.data).equals(rows[0].payload)).toBe(true)
  })

  test.each([
    ['retention', { retention: 'workqueue' as const }, /retention: "workqueue", needed: "limits"/],
    ['storage', { storage: 'memory' as const }, /storage: "memory", needed: "file"/],
    ['discard', { discard: 'old' as const, max_msgs: 10 }, /discard: "old", needed: "new"/],
    ['max_age', { max_age: 60_000_000_000 }, /max_age: 60000000000, needed: 604800000000000/],
    ['subjects', { subjects: ['surrogate.>'] }, /subjects: \["surrogate.>"\], needed: \["surrogate.events.>"\]/],
  ])('a stream with another %s is refused, and left as it is', async (_name, config, difference) => {
    const { manager } = await admin()
    const ours = { retention: 'limits', storage: 'file', discard: 'new', max_age: 604_800_000_000_000 } as const
    await manager.streams.add({ ...streams, ...ours, ...config })
    const before = (await manager.streams.info('SURROGATE_EVENTS')).config
    await expect(flow.openBus()).rejects.toThrow(difference)
    await expect(flow.openBus()).rejects.toMatchObject({ exitCode: 2 })
    expect((await manager.streams.info('SURROGATE_EVENTS')).config).toEqual(before)
  })

  test('replicas, limits of size and another window of deduplication are the operator’s to choose', async () => {
    const { manager } = await admin()
    await manager.streams.add({
      ...streams,
      discard: 'new',
      max_age: 604_800_000_000_000,
      max_bytes: 1_000_000_000,
      duplicate_window: 60_000_000_000,
    })
    const publisher = await flow.openPublisher()
    await flow.openConsumer()
    await flow.record('u1')
    publisher.wake()
    await allIngested(1)
  })

  test('a consumer with other settings is refused: the relay says so and waits for it to be put right', async () => {
    const { manager } = await admin()
    await flow.openBus()
    await manager.consumers.add('SURROGATE_EVENTS', {
      durable_name: 'surrogate-relay',
      ack_policy: 'explicit',
      max_deliver: 3,
    })
    const publisher = await flow.openPublisher()
    const { bus } = await flow.openConsumer()
    await flow.record('u1')
    publisher.wake()
    await expect.poll(bus.health).toMatchObject({ ok: false, detail: /max_deliver: 3, needed: -1/ })
    await manager.consumers.delete('SURROGATE_EVENTS', 'surrogate-relay')
    await allIngested(1)
    await expect.poll(bus.health).toMatchObject({ ok: true })
  })

  test('many processes that start at the same moment agree on one stream and one consumer', async () => {
    const consumers = await Promise.all(Array.from({ length: 6 }, () => flow.openConsumer()))
    const publisher = await flow.openPublisher()
    await flow.recordMany(30, 1)
    publisher.wake()
    await allIngested(30)
    for (const { bus } of consumers) expect(await bus.health()).toMatchObject({ ok: true, connected: true })
    expect(flow.log()).not.toMatch(/"level":"error"/)
  })

  test('while NATS is away everything starts, changes go on, and health says so; then all arrives in order', async () => {
    await nats.stop()
    await flow.listen()
    const publisher = await flow.openPublisher()
    const { bus } = await flow.openConsumer()
    expect(await bus.health()).toMatchObject({ ok: true, connected: false, detail: /degraded: NATS/ })
    await flow.recordMany(5, 4)
    publisher.wake()
    expect(await flow.unpublished()).toBe(20)
    await nats.start()
    await allIngested(20)
    for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(4))
    expect(await bus.health()).toMatchObject({ ok: true, connected: true })
  })

  test('a server that is killed again and again under load loses nothing', async () => {
    await flow.listen()
    const publisher = await flow.openPublisher()
    await flow.openConsumer({ patienceMs: 1_000 })
    for (let round = 0; round < 4; round += 1) {
      await flow.recordMany(20, 2)
      publisher.wake()
      await expect.poll(flow.published).toBeGreaterThan(round * 40)
      await nats.stop()
      await flow.recordMany(20, 2)
      publisher.wake()
      await nats.start()
    }
    await allIngested(320)
    for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(16))
  })

  test('what a wiped store has swallowed is published again', async () => {
    await flow.listen()
    const publisher = await flow.openPublisher()
    await flow.recordMany(10, 3)
    publisher.wake()
    await allPublished(30)
    await nats.stop()
    await nats.wipe()
    await nats.start()
    await flow.openConsumer({ patienceMs: 200 })
    await allIngested(30)
    for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(3))
    expect((await flow.metrics.render()).text).toMatch(/surrogate_events_republished_total 30/)
  })

  test('when only the first events of an entity are lost, they are filled in from the ledger with the next one', async () => {
    await flow.listen()
    const publisher = await flow.openPublisher()
    await flow.recordMany(3, 5)
    publisher.wake()
    await allPublished(15)
    const { manager } = await admin()
    await manager.streams.purge('SURROGATE_EVENTS')
    await flow.openConsumer()
    await flow.recordMany(3, 1)
    publisher.wake()
    await allIngested(18)
    for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(6))
    expect((await flow.metrics.render()).text).toMatch(/surrogate_events_republished_total 0/)
  })

  test('a backlog that is merely slow is not published again', async () => {
    const publisher = await flow.openPublisher()
    await flow.recordMany(50, 4)
    publisher.wake()
    await allPublished(200)
    await db.database.pool.query(`UPDATE outbox_pending SET published_at = now() - interval '1 minute'`)
    const blocked = Promise.withResolvers<void>()
    const { bus } = await flow.openConsumer({ patienceMs: 6_000, before: () => blocked.promise })
    const lostBefore = async () => (await bus.lostBefore())!.getTime()
    // Everything was published after the oldest message that is still open, less what clocks may differ.
    const { rows } = await db.database.pool.query('SELECT min(created_at) AS first FROM outbox')
    const meanwhile = await lostBefore()
    expect(meanwhile).toBeLessThan(rows[0].first.getTime())
    expect(await lostBefore()).toBe(meanwhile)
    blocked.resolve()
    await allIngested(200)
    await expect.poll(lostBefore).toBeGreaterThan(meanwhile)
    expect((await flow.metrics.render()).text).toMatch(/surrogate_events_republished_total 0/)
  })

  test('a stream that somebody deletes is made again, a consumer too, and nothing is lost', async () => {
    await flow.listen()
    const publisher = await flow.openPublisher()
    await flow.openConsumer({ patienceMs: 500 })
    await flow.recordMany(5, 2)
    publisher.wake()
    await allIngested(10)
    const { manager } = await admin()
    await manager.consumers.delete('SURROGATE_EVENTS', 'surrogate-relay')
    await flow.recordMany(5, 1)
    publisher.wake()
    await allIngested(15)
    await manager.streams.delete('SURROGATE_EVENTS')
    await flow.recordMany(5, 1)
    publisher.wake()
    await allIngested(20)
    for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(4))
  })

  test('a full stream pushes back into the outbox, and goes on when there is room', async () => {
    const { manager } = await admin()
    await manager.streams.add({ ...streams, discard: 'new', max_age: 604_800_000_000_000, max_msgs: 10 })
    const publisher = await flow.openPublisher()
    await flow.openConsumer()
    await flow.recordMany(15, 1)
    publisher.wake()
    await expect.poll(flow.log).toMatch(/the broker refused events/)
    // The line is written before what was confirmed is committed.
    await expect.poll(flow.published).toBe(10)
    await manager.streams.purge('SURROGATE_EVENTS')
    await allIngested(15)
  })

  test('a server that hangs holds nothing up for long: when it goes on, so do the events', async () => {
    const publisher = await flow.openPublisher()
    await flow.openConsumer()
    await flow.record('u1')
    publisher.wake()
    await allIngested(1)
    nats.signal('SIGSTOP')
    await flow.record('u2')
    publisher.wake()
    await expect.poll(flow.log).toMatch(/the broker refused events|the connection to NATS is lost/)
    nats.signal('SIGCONT')
    await allIngested(2)
  })

  test('what is no event is put aside, and the events behind it arrive', async () => {
    const publisher = await flow.openPublisher()
    const { js } = await admin()
    await js.publish('surrogate.events.User.Data.Updated', 'garbage')
    await js.publish('surrogate.events.User.Data.Updated', '{}', { msgID: 'not-a-uuid' })
    await js.publish('surrogate.events.Nothing', '{}', { msgID: '0198f6b2-7c1e-7d0a-9b57-3f1a6f0e2c11' })
    await flow.openConsumer()
    await flow.record('u1')
    publisher.wake()
    await allIngested(1)
    const { manager } = await admin()
    await expect
      .poll(async () => {
        const { num_ack_pending, num_pending } = await manager.consumers.info('SURROGATE_EVENTS', 'surrogate-relay')
        return num_ack_pending + num_pending
      })
      .toBe(0)
    expect(flow.log().match(/a message in the stream of events is no event/g)).toHaveLength(3)
    expect(flow.log()).not.toMatch(/garbage/)
  })

  test('other bytes under the id of an event raise the alarm, and the ledger counts', async () => {
    await flow.listen()
    const { id } = await flow.record('u1')
    await flow.openBus()
    const { js } = await admin()
    const forged = headers()
    forged.set('Nats-Msg-Id', id)
    await js.publish('surrogate.events.User.Data.Updated', '{"forged":true}', { headers: forged })
    await flow.openConsumer()
    await allIngested(1)
    await expect.poll(flow.log).toMatch(/the broker brought other bytes than the ledger holds/)
    const { rows } = await db.database.pool.query(
      'SELECT outbox.payload FROM outbox JOIN deliveries ON event_id = outbox.id',
    )
    expect(rows.map(({ payload }) => JSON.parse(payload).id)).toEqual([id])
    expect((await flow.metrics.render()).text).toMatch(/quarantined_total\{reason="different"\} 1/)
  })

  test('a relay that takes a batch and dies leaves it to another', async () => {
    await flow.listen()
    const publisher = await flow.openPublisher()
    // As an operator may have it: the other one gets it sooner than after the 10 s that are ours.
    const { manager } = await admin()
    await manager.consumers.add('SURROGATE_EVENTS', {
      durable_name: 'surrogate-relay',
      ack_policy: 'explicit',
      max_deliver: -1,
      ack_wait: 1_000_000_000,
    })
    const held = Promise.withResolvers<void>()
    const first = await flow.openConsumer({ before: () => held.promise })
    await flow.recordMany(5, 2)
    publisher.wake()
    await expect.poll(() => first.batches.length).toBeGreaterThan(0)
    // As the server sees it: its connection is gone, and nothing was acknowledged.
    await first.bus.close()
    await flow.openConsumer()
    await allIngested(10)
    held.resolve()
    for (const versions of await flow.deliveredVersions()) expect(versions).toEqual(upTo(2))
  })
})
