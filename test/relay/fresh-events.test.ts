import { expect, test } from 'vitest'
import { catalogue } from '../../events/catalogue.ts'
import { freshEvents } from '../../events/fresh-event-store.ts'
import { lockNextPending, lockPending, readyEvents, takeEventsIn } from '../../events/ledger-store.ts'
import type { NewEvent } from '../../events/outbox.ts'
import { type Query, statement } from '../../platform/database.ts'
import { userUpdated } from '../support/event-factory.ts'
import { eachWithLedger, ledger } from '../support/fresh-ledger.ts'

eachWithLedger()

/** Which events a relay may send while it takes them in, and to whom. */

const { request } = userUpdated('')
const told = statement(
  'test-told',
  `SELECT outbox.id, array_agg(deliveries.hook_id::text ORDER BY deliveries.hook_id) AS hooks
   FROM deliveries JOIN outbox ON outbox.id = deliveries.event_id GROUP BY outbox.id`,
)
const ids = (events: readonly { event: { id: string } }[]) => events.map(({ event }) => event.id)
const addHook = (id: string, columns: Record<string, unknown> = {}) => {
  const row = { id, name: '', url: 'https://receiver.test', events: ['User.Data.Updated'], ...columns }
  const names = Object.keys(row)
  return ledger.rows(
    `INSERT INTO hooks (${names.join(', ')}) VALUES (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
    ...Object.values(row),
  )
}
const takingIn = <Result>(work: (query: Query) => Promise<Result>) => ledger.database.transaction(work)
const lockAll = async (query: Query) => readyEvents(await lockNextPending(query, { limit: 1_000, payloads: true }))
const all = { hookIds: ['one', 'two'], most: 1_000 }

test('an event is sent to those for whom a delivery would be made, if they are well and prompt, and to nobody else', async () => {
  const named = catalogue.filter((type) => type.named).map(({ type }) => type)
  await addHook('all', { events: ['*'] })
  await addHook('users', { events: ['User.*'] })
  await addHook('twice', { events: ['User.*', 'User.Created', '*'] })
  await addHook('by-name', { events: [...named.slice(0, 2), 'User.Created'] })
  await addHook('org-1', { events: ['*'], organization_ids: ['o1'] })
  await addHook('orgs', { events: ['Organization.*'], organization_ids: ['o1', 'o2'] })
  await addHook('no-org', { events: ['*'], organization_ids: [] })
  await addHook('slow', { events: ['*'] })
  await addHook('disabled', { events: ['User.*'], enabled: false })
  await addHook('limited', { events: ['Role.*'], rate_limit: 60 })
  await addHook('failing', { events: ['Organization.*'], failures: 1 })
  await addHook('paused', { events: ['Scope.*'], paused_until: '2999-01-01' })
  await addHook('no-longer-paused', { events: ['Scope.*'], paused_until: '2000-01-01' })
  const wellAndPrompt = ['all', 'users', 'twice', 'by-name', 'org-1', 'orgs', 'no-org', 'no-longer-paused']
  const events = catalogue.flatMap(({ type, entity }) =>
    [undefined, 'o1', 'o2', 'o3'].map((organizationId) => ({
      type,
      entity: { kind: entity, id: `${organizationId}` },
      ...(organizationId === undefined ? {} : { organizationId }),
      data: null,
      request,
    })),
  ) as NewEvent[]
  await ledger.record(...events)
  await takingIn(async (query) => {
    const ready = await lockAll(query)
    expect(ready).toHaveLength(events.length)
    const prompt = (await ledger.rows<{ id: string }>('SELECT id FROM hooks')).map(({ id }) => id)
    const hookIds = prompt.filter((id) => id !== 'slow')
    const fresh = await freshEvents(query, ready, { hookIds, most: 10_000 })
    await takeEventsIn(query, ready)
    const rows = await query<{ id: string; hooks: string[] }>(told, [])
    const expected = rows.map(({ id, hooks }) => {
      const sent = hooks.filter((hook) => wellAndPrompt.includes(hook))
      return { id, sent, isAll: sent.length === hooks.length }
    })
    const byId = (left: { id: string }, right: { id: string }) => left.id.localeCompare(right.id)
    const found = fresh.map(({ event, hookIds: sent, isAll }) => ({ id: event.id, sent: sent.toSorted(), isAll }))
    expect(found.toSorted(byId)).toEqual(expected.filter(({ sent }) => sent.length > 0).toSorted(byId))
    expect(new Set(found.map(({ isAll }) => isAll))).toEqual(new Set([true, false]))
    expect(new Set(found.flatMap(({ sent }) => sent))).toEqual(
      new Set(['all', 'users', 'twice', 'by-name', 'org-1', 'orgs', 'no-longer-paused']),
    )
  })
})

test('what an entity waits for at one hook holds back neither other entities nor other hooks', async () => {
  await addHook('one')
  await addHook('two')
  await ledger.rows(
    `INSERT INTO lanes (hook_id, entity_kind, entity_id, ready_at) VALUES ('one', 'user', 'in a lane', now())`,
  )
  await ledger.record(userUpdated('given up'), userUpdated('given up and more'), userUpdated('purged'))
  await takingIn(async (query) => takeEventsIn(query, await lockAll(query)))
  await ledger.rows(`DELETE FROM lanes WHERE entity_id <> 'in a lane'`)
  await ledger.rows(
    `UPDATE deliveries SET finished_at = now(), state = CASE WHEN hook_id = 'one' THEN 'dead' ELSE 'succeeded' END,
       died_at = CASE WHEN hook_id = 'one' THEN now() END`,
  )
  await ledger.rows(`UPDATE deliveries SET state = 'cancelled' WHERE entity_id = 'purged' AND hook_id = 'one'`)
  await ledger.record(userUpdated('given up and more'))
  await takingIn(async (query) => takeEventsIn(query, await lockAll(query)))
  await ledger.rows(`DELETE FROM lanes WHERE entity_id <> 'in a lane'`)
  await ledger.rows(`UPDATE deliveries SET finished_at = now(), state = 'succeeded' WHERE finished_at IS NULL`)

  const entities = ['in a lane', 'given up', 'given up and more', 'purged', 'free']
  await ledger.record(...entities.flatMap((id) => [userUpdated(id), userUpdated(id)]))
  await takingIn(async (query) => {
    const fresh = await freshEvents(query, await lockAll(query), all)
    const sentTo = (hook: string) =>
      fresh.filter(({ hookIds }) => hookIds.includes(hook)).map(({ event }) => event.entityId)
    expect(sentTo('two')).toEqual(entities.flatMap((id) => [id, id]))
    // The last delivery counts: one that was given up before it has been told of by then.
    expect(sentTo('one')).toEqual(['given up and more', 'given up and more', 'free', 'free'])
    expect(fresh.filter(({ isAll }) => isAll).map(({ event }) => event.entityId)).toEqual(sentTo('one'))
  })
})

test('there are no more deliveries than asked for, from the first event on', async () => {
  await addHook('one')
  await addHook('two')
  const recorded = await ledger.record(...['a', 'b', 'a', 'c'].map((id) => userUpdated(id)))
  const first = (count: number) => recorded.slice(0, count).map(({ id }) => id)
  await takingIn(async (query) => {
    const ready = await lockAll(query)
    expect(ids(await freshEvents(query, ready, { ...all, most: 5 }))).toEqual(first(2))
    expect(ids(await freshEvents(query, ready, { ...all, most: 8 }))).toEqual(first(4))
    expect(await freshEvents(query, ready, { ...all, most: 1 })).toEqual([])
    expect(await freshEvents(query, ready, { ...all, hookIds: [] })).toEqual([])
  })
})

test('hooks of other organizations do not count, however many they are; with too many others nothing is sent right away', async () => {
  const add = (count: number, organization: string) =>
    ledger.rows(`
      INSERT INTO hooks (id, name, events, url, organization_ids)
      SELECT gen_random_uuid()::text::varchar(21), '', '{User.Data.Updated}', 'https://receiver.test', ${organization} FROM generate_series(1, ${count}) n`)
  await add(2_000, `ARRAY['o' || n]`)
  await addHook('one', { organization_ids: ['o0', 'o500'] })
  await ledger.record({ ...userUpdated('u1'), organizationId: 'o0' }, userUpdated('u2'))
  const find = () => takingIn(async (query) => freshEvents(query, await lockAll(query), all))
  expect(await find()).toMatchObject([{ event: { entityId: 'u1' }, hookIds: ['one'], isAll: true }])
  await add(999, 'NULL')
  expect(await find()).toMatchObject([{ event: { entityId: 'u1' }, hookIds: ['one'], isAll: false }])
  await add(1, 'NULL')
  expect(await find()).toEqual([])
})

test('payloads are read with the events when they are asked for, unless they are big', async () => {
  const [small, big] = await ledger.record(
    userUpdated('u1', { name: 'Zoë 😀' }),
    userUpdated('u2', { fill: 'x'.repeat(20_000) }),
  )
  await takingIn(async (query) => {
    const found = [
      ...(await lockNextPending(query, { limit: 10, payloads: true })),
      ...(await lockPending(query, [small!.id, big!.id], { payloads: true })),
    ]
    for (const { id, payload } of found) {
      if (id === big!.id) expect(payload).toBeNull()
      else expect(JSON.parse(payload!)).toMatchObject({ id, data: { name: 'Zoë 😀' } })
    }
    const without = [...(await lockNextPending(query, { limit: 10 })), ...(await lockPending(query, [small!.id]))]
    expect(without.map(({ payload }) => payload)).toEqual([null, null, null])
  })
})
