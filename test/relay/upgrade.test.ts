import { randomUUID } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { migrations } from '../../migrations/index.ts'
import { migrate } from '../../platform/database/database.ts'
import { uuidv7 } from '../../platform/ids.ts'
import { userUpdated } from '../support/event-factory.ts'
import { anotherReceiver, eachWithLedger, ledger, receiver } from '../support/fresh-ledger.ts'
import { startTestLedger } from '../support/relay.ts'

eachWithLedger()

/** Versions of Surrogate follow each other while events wait. */

/** A ledger as it was before this migration. */
const ledgerBefore = async (name: string) => {
  const steps = migrations.findIndex((migration) => migration.name === name)
  const old = await startTestLedger({ schema: migrations.slice(0, steps) })
  onTestFinished(old.close)
  await old.hook({ url: receiver.url })
  return old
}

test('what an older version has left in the ledger is delivered by this one: in order, the same bytes, nothing twice', async () => {
  // Before breakers, sessions of relays, replays and test-sends.
  const old = await ledgerBefore('0016-delivery-health')
  // The last change of u1 is on its way through a broker; the rest is taken in.
  await old.rows(`
    INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload, published_at, ingested_at)
    SELECT id, 'user', entity, version, 'User.Data.Updated', gen_random_uuid(), convert_to(format(
      '{"id":"%s","event":"User.Data.Updated","version":%s,"data":{"id":"%s"}}', id, version, entity), 'UTF8'),
      now(), CASE WHEN version < 4 THEN now() END
    FROM (VALUES ('u1', 1), ('u1', 2), ('u1', 3), ('u1', 4), ('u2', 1), ('u3', 1)) AS event (entity, version),
      LATERAL (SELECT gen_random_uuid() AS id WHERE version > 0) AS made`)
  await old.rows(`
    INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version)
    SELECT hooks.id, outbox.id, type, entity_kind, entity_id, version FROM outbox, hooks WHERE version < 4 ORDER BY seq`)
  // Of u1 the first was delivered and the second has failed; u2 was given up; u3 was in the hands of a relay that has
  // ended.
  await old.rows(`UPDATE deliveries SET state = 'succeeded', attempts = 1, finished_at = now()
    WHERE entity_id = 'u1' AND version = 1`)
  await old.rows(`UPDATE deliveries SET state = 'retrying', attempts = 3 WHERE entity_id = 'u1' AND version = 2`)
  await old.rows(`UPDATE deliveries SET state = 'dead', attempts = 10, finished_at = now() WHERE entity_id = 'u2'`)
  await old.rows(`
    INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at, fence, leased_by)
    SELECT id, 'user', 'u1', now(), 0, NULL::uuid FROM hooks
    UNION ALL SELECT id, 'user', 'u3', now() - interval '1 second', nextval('lane_fences'), '${randomUUID()}' FROM hooks`)

  await migrate(old.database, migrations)
  await old.relay()
  await receiver.until((received) => received.length === 4)
  await old.untilSettled()
  const versionsOf = (id: string) =>
    receiver.received.filter(({ body }) => body.data['id'] === id).map(({ body }) => body.version)
  expect([versionsOf('u1'), versionsOf('u2'), versionsOf('u3')]).toEqual([[2, 3, 4], [], [1]])
  const stored = await old.rows<{ id: string; payload: Buffer }>(`SELECT id, payload FROM outbox`)
  const payloads = new Map(stored.map(({ id, payload }) => [id, payload.toString().slice(1)]))
  for (const { raw, headers } of receiver.received)
    expect(raw.toString().endsWith(payloads.get(String(headers['webhook-id']))!)).toBe(true)
  expect(await old.rows(`SELECT entity_id, version, state, attempts FROM deliveries ORDER BY 1, 2`)).toEqual([
    { entity_id: 'u1', version: 1, state: 'succeeded', attempts: 1 },
    { entity_id: 'u1', version: 2, state: 'succeeded', attempts: 4 },
    { entity_id: 'u1', version: 3, state: 'succeeded', attempts: 1 },
    { entity_id: 'u1', version: 4, state: 'succeeded', attempts: 1 },
    { entity_id: 'u2', version: 1, state: 'dead', attempts: 10 },
    { entity_id: 'u3', version: 1, state: 'succeeded', attempts: 1 },
  ])
})

test('what was purged by an older version leaves a gap that this one tells of', async () => {
  const old = await ledgerBefore('0024-given-up')
  await old.rows(`
    WITH version AS (INSERT INTO entity_versions (kind, id, version) VALUES ('user', 'u1', 1)),
    event AS (
      INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
      VALUES (gen_random_uuid(), 'user', 'u1', 1, 'User.Data.Updated', gen_random_uuid(), '{}') RETURNING *)
    INSERT INTO deliveries (hook_id, event_id, type, entity_kind, entity_id, version, state, attempts, finished_at)
    SELECT hooks.id, event.id, type, entity_kind, entity_id, version, 'cancelled', 10, now() FROM event, hooks`)
  await migrate(old.database, migrations)
  await old.relay()
  for (let times = 0; times < 3; times += 1) {
    await old.record(userUpdated('other'))
    await old.untilSettled()
  }
  await old.record(userUpdated('u1'))
  await old.untilSettled()
  const { headers, body } = receiver.received.at(-1)!
  expect([body.data['id'], body.version, headers['surrogate-gap']]).toEqual(['u1', 2, 'true'])
})

test('an event that only a newer version knows holds nothing up: who listens to all events of users gets it', async () => {
  const named = await anotherReceiver()
  await ledger.hook({ url: receiver.url, events: ['User.*'] })
  await ledger.hook({ url: named.url, events: ['User.Data.Updated'] })
  await ledger.relay()
  const id = uuidv7()
  await ledger.rows(`
    INSERT INTO entity_versions (kind, id, version) VALUES ('user', 'u1', 1);
    INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
    VALUES ('${id}', 'user', 'u1', 1, 'User.Teleported', '${uuidv7()}', '{"id":"${id}","event":"User.Teleported","data":{}}');
    INSERT INTO outbox_pending (seq) SELECT seq FROM outbox`)
  await ledger.record(userUpdated('u1'))
  await receiver.until((received) => received.length === 2)
  await ledger.untilSettled()
  const events = (list: typeof receiver.received) => list.map(({ body }) => body.event)
  expect([events(receiver.received), events(named.received)]).toEqual([
    ['User.Teleported', 'User.Data.Updated'],
    ['User.Data.Updated'],
  ])
})
