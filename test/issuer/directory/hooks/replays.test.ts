import { beforeEach, describe, expect, test } from 'vitest'
import { continueReplay, insertReplay, measureReplay, type ReplayFilter } from '../../../../deliveries/replay-store.ts'
import { startReplayJob } from '../../../../issuer/directory/hooks/replay-job.ts'
import { statement } from '../../../../platform/database/database.ts'
import { newId } from '../../../../platform/ids.ts'
import { silentLogger } from '../../../../platform/logger.ts'
import { eachWithHooks, hooks, receiver } from '../../../support/fresh-hooks.ts'

eachWithHooks()

const finished = async (hookId: string, replayId: string) => {
  const read = async () => (await hooks.call(200, 'GET', `/hooks/${hookId}/replays/${replayId}`)).state
  await expect.poll(read).toBe('done')
  return hooks.call(200, 'GET', `/hooks/${hookId}/replays/${replayId}`)
}
const versionsOf = (entity: string, from = 0) =>
  receiver.received
    .slice(from)
    .filter(({ body }) => body.data['id'] === entity)
    .map(({ body }) => body.version)

test('everything since a time comes again: the same ids and bytes, in order, each once, signed anew', async () => {
  const hook = await hooks.create({ url: receiver.url })
  await hooks.relay()
  await hooks.record('a', 'a', 'b', 'a')
  await receiver.until((received) => received.length === 4)
  await hooks.settled(hook.id)
  const before = receiver.received.slice()

  const replay = await hooks.call(201, 'POST', `/hooks/${hook.id}/replays`, { since: Date.now() - 3_600_000 })
  expect(replay).toMatchObject({ hookId: hook.id, total: 4, state: 'running' })
  await receiver.until((received) => received.length === 8)
  const again = receiver.received.slice(4)
  const bytes = (list: typeof before) => list.map(({ raw }) => raw.toString()).toSorted()
  expect(bytes(again)).toEqual(bytes(before))
  const ids = (list: typeof before) => list.map(({ headers }) => headers['webhook-id']).toSorted()
  expect(ids(again)).toEqual(ids(before))
  expect(versionsOf('a', 4)).toEqual([1, 2, 3])
  expect(await finished(hook.id, replay.id)).toMatchObject({
    total: 4,
    queued: 4,
    state: 'done',
    finishedAt: expect.any(Number),
  })
  await hooks.settled(hook.id)
  expect(receiver.received).toHaveLength(8)
  const [delivery] = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries`)
  const attempts = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries/${delivery.id}/attempts`)
  expect(attempts).toHaveLength(2)
})

test('a dry run counts and sends nothing', async () => {
  const hook = await hooks.create({ url: receiver.url })
  await hooks.relay()
  await hooks.record('a', 'b')
  await receiver.until((received) => received.length === 2)
  await hooks.settled(hook.id)
  expect(await hooks.call(201, 'POST', `/hooks/${hook.id}/replays`, { since: 0, dryRun: true })).toEqual({
    id: null,
    hookId: hook.id,
    filter: { since: 0, states: ['succeeded', 'dead', 'cancelled', 'missing'] },
    total: 2,
    queued: 0,
    state: 'dryRun',
    createdAt: null,
    finishedAt: null,
  })
  expect(await hooks.call(200, 'GET', `/hooks/${hook.id}/replays`)).toEqual([])
  expect(await hooks.states(hook.id)).toEqual(['succeeded', 'succeeded'])
})

test('what happened before a hook was made is sent to it when asked for, and only what it listens to', async () => {
  await hooks.relay()
  await hooks.record('a', 'b', 'a')
  await hooks.issuer.api('POST', '/roles', { name: 'Reader', description: 'x' })
  await hooks.ingested()
  const hook = await hooks.create({ url: receiver.url, events: ['User.*'] })
  const replay = await hooks.call(201, 'POST', `/hooks/${hook.id}/replays`, { states: ['missing'] })
  expect(replay.total).toBe(3)
  await receiver.until((received) => received.length === 3)
  expect(versionsOf('a')).toEqual([1, 2])
  expect(await finished(hook.id, replay.id)).toMatchObject({ queued: 3 })
})

describe('by filter', () => {
  const total = async (hookId: string, filter: object) =>
    (await hooks.call(201, 'POST', `/hooks/${hookId}/replays`, { ...filter, dryRun: true })).total

  test('types, wildcards, entity, time, state, organization', async () => {
    const hook = await hooks.create({ url: receiver.url, events: ['*'] })
    await hooks.relay()
    await hooks.record('a', 'a', 'b')
    await hooks.issuer.api('POST', '/roles', { name: 'Reader', description: 'x' })
    const { body: acme } = await hooks.issuer.api('POST', '/organizations', { name: 'Acme' })
    hooks.wake()
    await receiver.until((received) => received.length === 5)
    await hooks.settled(hook.id)

    expect(await total(hook.id, { events: ['User.*'] })).toBe(3)
    expect(await total(hook.id, { events: ['Role.Created', 'Organization.*'] })).toBe(2)
    expect(await total(hook.id, { entity: { kind: 'user', id: 'a' } })).toBe(2)
    expect(await total(hook.id, { organizationIds: [acme.id] })).toBe(1)
    expect(await total(hook.id, { states: ['dead'] })).toBe(0)
    expect(await total(hook.id, { states: ['succeeded'] })).toBe(5)
    await hooks.sql(`UPDATE outbox SET created_at = now() - interval '2 hours' WHERE entity_id = 'b'`)
    expect(await total(hook.id, { since: Date.now() - 3_600_000 })).toBe(4)
    expect(await total(hook.id, { until: Date.now() - 3_600_000 })).toBe(1)
  })

  test('nothing, or nonsense, is refused', async () => {
    const hook = await hooks.create({ url: receiver.url })
    for (const body of [{}, { dryRun: true }, { states: [] }, { states: ['pending'] }, { events: ['User.Exploded'] }])
      expect(await hooks.call(400, 'POST', `/hooks/${hook.id}/replays`, body)).toMatchObject({
        code: 'guard.invalid_input',
      })
    for (const path of ['/replays', '/dead-letters/redrive'])
      expect(await hooks.call(404, 'POST', `/hooks/missing${path}`, { since: 0 })).toMatchObject({
        code: 'entity.not_exists_with_id',
      })
  })
})

test('dead letters are redriven, all or one, in order and before what came later; purged ones are not', async () => {
  const hook = await hooks.create({ url: receiver.url })
  receiver.answerWith((_received, response) => void response.writeHead(500).end())
  const dying = await hooks.relay({ retrySchedule: [] })
  await hooks.record('a', 'a', 'b')
  await expect.poll(() => hooks.states(hook.id)).toEqual(['dead', 'dead', 'dead'])
  await dying.close()
  const dead = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries?state=dead`)
  expect(dead[0]).toMatchObject({ state: 'dead', attempts: 1, lastStatus: 500, nextAttemptAt: null })

  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  const failed = receiver.received.length
  const ofB = dead.find((row: { entity: { id: string } }) => row.entity.id === 'b')
  await hooks.relay()
  const replayed = await hooks.call(200, 'POST', `/hooks/${hook.id}/deliveries/${ofB.id}/replay`)
  expect(replayed).toMatchObject({ id: ofB.id, eventId: ofB.eventId, attempts: 0, lastStatus: null })
  await receiver.until((received) => received.length === failed + 1)

  await hooks.settled(hook.id)
  const redrive = await hooks.call(201, 'POST', `/hooks/${hook.id}/dead-letters/redrive`)
  expect(redrive).toMatchObject({ total: 2, filter: { states: ['dead'] } })
  await hooks.record('a')
  await receiver.until((received) => received.length === failed + 4)
  await hooks.settled(hook.id)
  expect(versionsOf('a', failed)).toEqual(expect.arrayContaining([1, 2, 3]))
  expect(versionsOf('a', failed).filter((version) => version < 3)).toEqual([1, 2])
  expect(await hooks.states(hook.id)).toEqual(Array(4).fill('succeeded'))

  await hooks.sql(`UPDATE deliveries SET state = 'dead', died_at = now() WHERE entity_id = 'a'`)
  expect(await hooks.call(200, 'DELETE', `/hooks/${hook.id}/dead-letters`)).toEqual({ purged: 3 })
  expect(await hooks.call(201, 'POST', `/hooks/${hook.id}/dead-letters/redrive`)).toMatchObject({ total: 0 })
  expect((await hooks.states(hook.id)).toSorted()).toEqual(['cancelled', 'cancelled', 'cancelled', 'succeeded'])
})

test('a replayed event does not push one that waits for its retry out before its time', async () => {
  const hook = await hooks.create({ url: receiver.url })
  await hooks.relay()
  await hooks.record('a')
  await receiver.until((received) => received.length === 1)
  await hooks.settled(hook.id)
  receiver.answerWith((_received, response) => void response.writeHead(500).end())
  await hooks.record('a')
  await receiver.until((received) => received.length === 2)
  await expect.poll(() => hooks.states(hook.id)).toEqual(['retrying', 'succeeded'])
  receiver.answerWith((_received, response) => void response.writeHead(204).end())
  // Far away, so that only a mistake would bring it forward.
  await hooks.sql(`UPDATE deliveries SET next_attempt_at = now() + interval '1 hour' WHERE state = 'retrying'`)
  await hooks.sql(`UPDATE lanes SET ready_at = now() + interval '1 hour'`)

  await hooks.call(201, 'POST', `/hooks/${hook.id}/replays`, { states: ['succeeded'] })
  await receiver.until((received) => received.length === 3)
  await expect.poll(() => hooks.states(hook.id)).toEqual(['retrying', 'succeeded'])
  await expect.poll(() => hooks.sql('SELECT leased_by FROM lanes')).toEqual([{ leased_by: null }])
  expect(versionsOf('a')).toEqual([1, 2, 1])

  // Unless it is asked for itself.
  const [waiting] = await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries?state=retrying`)
  await hooks.call(200, 'POST', `/hooks/${hook.id}/deliveries/${waiting.id}/replay`)
  await receiver.until((received) => received.length === 4)
  expect(versionsOf('a')).toEqual([1, 2, 1, 2])
})

test('an event that is no longer kept, and a test-send, cannot be sent again', async () => {
  const hook = await hooks.create({ url: receiver.url })
  await hooks.relay()
  await hooks.record('a')
  await hooks.call(204, 'POST', `/hooks/${hook.id}/test`)
  await hooks.settled(hook.id)
  await hooks.sql('DELETE FROM outbox')
  for (const { id } of await hooks.call(200, 'GET', `/hooks/${hook.id}/deliveries`))
    expect(await hooks.call(422, 'POST', `/hooks/${hook.id}/deliveries/${id}/replay`)).toMatchObject({
      code: 'hook.event_not_kept',
    })
  for (const id of ['0', '999999', 'x', '9'.repeat(40)])
    expect(await hooks.call(404, 'POST', `/hooks/${hook.id}/deliveries/${id}/replay`)).toMatchObject({
      code: 'entity.not_exists_with_id',
    })
})

describe('a long replay', () => {
  const events = 2_000
  const deliveries = () =>
    hooks.sql<{ count: string }>(`SELECT count(*)::text AS count FROM deliveries WHERE state = 'pending'`)

  /** A replay of so many events. The issuer's own job may work on it too, as another instance would. */
  const long = async () => {
    await hooks.sql(
      `INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
       SELECT gen_random_uuid(), 'user', 'u' || n % 10, n / 10 + 1, 'User.Data.Updated', gen_random_uuid(), '{}'
       FROM generate_series(0, ${events - 1}) AS n`,
    )
    const filter: ReplayFilter = { states: ['missing'] }
    const listener = { id: hook.id, events: ['User.*'], organizationIds: null }
    const { database } = hooks.issuer
    const extent = await measureReplay(database.query, listener, filter)
    expect(extent.total).toBe(events)
    return insertReplay(database.query, { id: newId(), hookId: hook.id, filter, extent })
  }
  let hook: { id: string }
  const read = (id: string) => hooks.call(200, 'GET', `/hooks/${hook.id}/replays/${id}`)
  const job = () => {
    const { database } = hooks.issuer
    return startReplayJob({ database, logger: silentLogger, stretch: 7, pollMs: 20 })
  }

  beforeEach(async () => {
    hook = await hooks.create({ url: receiver.url, events: ['User.*'] })
  })

  test('is finished by others after restarts in the middle, each event queued exactly once', async () => {
    const { id } = await long()
    for (let restarts = 0; restarts < 5; restarts++) {
      const before = (await read(id)).queued
      expect(before).toBeLessThan(events)
      const [one, other] = [job(), job()]
      await expect.poll(async () => (await read(id)).queued, { interval: 1 }).toBeGreaterThan(before)
      await Promise.all([one.close(), other.close()])
    }
    const last = job()
    await expect.poll(async () => (await read(id)).state).toBe('done')
    await last.close()
    expect(await read(id)).toMatchObject({ total: events, queued: events })
    expect(await deliveries()).toEqual([{ count: String(events) }])
    expect(await hooks.sql('SELECT count(*)::int AS count FROM lanes')).toEqual([{ count: 10 }])
  })

  test('a hook can be deleted while somebody goes on with its replay: neither waits for the other in a circle', async () => {
    const { id } = await long()
    const lock = (table: string, rowId: string, strength: string) =>
      statement(`test-lock-${table}`, `SELECT FROM ${table} WHERE id = '${rowId}' FOR ${strength}`)
    let deleting: Promise<unknown> | undefined
    await hooks.issuer.database.transaction(async (query) => {
      // As whoever takes a stretch does: the replay, then what needs the hook to stay.
      await query(lock('replays', id, 'UPDATE'), [])
      deleting = hooks.call(204, 'DELETE', `/hooks/${hook.id}`)
      const waiting = `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
      await expect.poll(async () => (await hooks.sql<{ count: number }>(waiting))[0]!.count).toBeGreaterThan(0)
      await query(lock('hooks', hook.id, 'KEY SHARE'), [])
    })
    await deleting
    expect(await hooks.sql('SELECT FROM replays')).toEqual([])
  })

  test('a transaction that breaks leaves neither deliveries nor progress behind', async () => {
    const { id } = await long()
    await hooks.sql(`ALTER TABLE lanes ADD CONSTRAINT broken CHECK (entity_id <> 'u9')`)
    const running = job()
    await expect.poll(async () => (await read(id)).queued, { interval: 5 }).toBe(7)
    await running.close()
    expect(await deliveries()).toEqual([{ count: '7' }])
    await hooks.sql('ALTER TABLE lanes DROP CONSTRAINT broken')
    const again = job()
    await expect.poll(async () => (await read(id)).state).toBe('done')
    await again.close()
    expect(await deliveries()).toEqual([{ count: String(events) }])
  })

  test('does not hold up a short one that is asked for after it', async () => {
    await long()
    const { database } = hooks.issuer
    await hooks.sql(
      `INSERT INTO outbox (id, entity_kind, entity_id, version, type, correlation_id, payload)
       VALUES (gen_random_uuid(), 'user', 'late', 1, 'User.Created', gen_random_uuid(), '{}')`,
    )
    const filter: ReplayFilter = { states: ['missing'], entity: { kind: 'user', id: 'late' } }
    const extent = await measureReplay(
      database.query,
      { id: hook.id, events: ['User.*'], organizationIds: null },
      filter,
    )
    const { id } = await insertReplay(database.query, { id: newId(), hookId: hook.id, filter, extent })
    let steps = 0
    // They take turns by chance: 60 times the same one is as likely as guessing a key.
    while ((await read(id)).state === 'running' && steps < 60) {
      await database.transaction((query) => continueReplay(query, 1))
      steps += 1
    }
    expect(await read(id)).toMatchObject({ state: 'done', queued: 1 })
  })

  test('ends where it is when it is cancelled, and with its hook', async () => {
    const { id } = await long()
    const running = job()
    await hooks.call(204, 'DELETE', `/hooks/${hook.id}/replays/${id}`)
    await hooks.call(204, 'DELETE', `/hooks/${hook.id}/replays/${id}`)
    const ended = await read(id)
    expect(ended).toMatchObject({ state: 'cancelled', finishedAt: expect.any(Number) })
    expect(ended.queued).toBeLessThan(events)
    expect(await deliveries()).toEqual([{ count: String(ended.queued) }])
    await hooks.call(404, 'DELETE', `/hooks/${hook.id}/replays/missing`)
    await hooks.call(204, 'DELETE', `/hooks/${hook.id}`)
    await running.close()
    expect(await hooks.sql('SELECT * FROM replays')).toEqual([])
  })
})
