import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type NewEvent, recordEvent } from '../../../../events/outbox.ts'
import { createEventFeed } from '../../../../issuer/directory/events/feed.ts'
import { removeExpired } from '../../../../relay/ledger/retention-store.ts'
import { userUpdated } from '../../../support/event-factory.ts'
import { startTestIssuer, type TestIssuer } from '../../../support/issuer.ts'

let issuer: TestIssuer
beforeEach(async () => {
  issuer = await startTestIssuer()
})
afterEach(() => issuer.close())

const record = (...events: NewEvent[]) =>
  issuer.database.transaction(async (query) => {
    const recorded = []
    for (const event of events) recorded.push(await recordEvent(query, event))
    return recorded
  })
const pull = async (query = '') => {
  const { status, body } = await issuer.api('GET', `/events${query}`)
  expect(status, JSON.stringify(body)).toBe(200)
  return body as {
    events: { id: string; event: string; version: number; data: { id: string } }[]
    cursor: string
    more: boolean
  }
}

/** A transaction that has recorded an event and waits to be told how to end. */
const openTransaction = async (event: NewEvent) => {
  const ending = Promise.withResolvers<'commit' | 'rollback'>()
  const recorded = Promise.withResolvers<string>()
  const ended = issuer.database
    .transaction(async (query) => {
      recorded.resolve((await recordEvent(query, event)).id)
      if ((await ending.promise) === 'rollback') throw new Error('rolled back')
    })
    .catch(() => {})
  const end = async (how: 'commit' | 'rollback') => {
    ending.resolve(how)
    await ended
  }
  return { id: await recorded.promise, end }
}

test('a transaction that commits late is not missed, however far readers have come meanwhile', async () => {
  const [first] = await record(userUpdated('before'))
  const before = await pull()
  expect(before.events.map(({ id }) => id)).toEqual([first!.id])
  const late = await openTransaction(userUpdated('late'))
  const [early] = await record(userUpdated('early'))
  // Its number is lower than that of what is committed, and it is still not there: nobody may pass it.
  const waiting = await pull(`?after=${before.cursor}`)
  expect(waiting).toMatchObject({ events: [], more: false })
  await late.end('commit')
  const after = await pull(`?after=${waiting.cursor}&wait=20`)
  expect(after.events.map(({ id }) => id)).toEqual([late.id, early!.id])
  expect(await pull(`?after=${after.cursor}`)).toMatchObject({ events: [], cursor: after.cursor })
})

test('a transaction that is rolled back holds up nobody for longer than it lasts', async () => {
  const failing = await openTransaction(userUpdated('never'))
  const [other] = await record(userUpdated('other'))
  const page = await pull()
  expect(page.events).toEqual([])
  const waiting = pull(`?after=${page.cursor}&wait=20`)
  await failing.end('rollback')
  expect((await waiting).events.map(({ id }) => id)).toEqual([other!.id])
})

test('readers that keep up with concurrent writers see each event once, in order per entity', {
  timeout: 60_000,
}, async () => {
  const writers = 5
  let writing = writers
  // Two writers share each entity, so that they wait for one another. Of two transactions the one with the higher
  // number commits first.
  const writer = async (number: number) => {
    for (let count = 0; count < 15; count++) {
      const lower = await openTransaction(userUpdated(`u${number % 3}`))
      const higher = await openTransaction(userUpdated(`own${number}`))
      await higher.end('commit')
      await lower.end(count % 5 === 4 ? 'rollback' : 'commit')
    }
    writing -= 1
  }
  const seen: { id: string; entity: string; version: number }[] = []
  const read = async () => {
    let cursor = '0'
    for (;;) {
      const finished = writing === 0
      const page = await pull(`?after=${cursor}&limit=7`)
      seen.push(...page.events.map(({ id, version, data }) => ({ id, version, entity: data.id })))
      cursor = page.cursor
      if (finished && !page.more && page.events.length === 0) return
    }
  }
  await Promise.all([read(), ...Array.from({ length: writers }, (_, number) => writer(number))])
  const { rows } = await issuer.database.pool.query('SELECT id FROM outbox ORDER BY seq')
  expect(seen.map(({ id }) => id)).toEqual(rows.map(({ id }) => id))
  for (const [entity, events] of Map.groupBy(seen, (event) => event.entity))
    expect(
      events.map(({ version }) => version),
      entity,
    ).toEqual(events.map((_, index) => index + 1))
})

test('without a cursor the oldest event comes first; pages follow one another without a gap', async () => {
  const recorded = await record(...['a', 'b', 'c', 'd', 'e'].map((name) => userUpdated(name)))
  const first = await pull('?limit=2')
  expect(first).toMatchObject({ more: true })
  const second = await pull(`?limit=2&after=${first.cursor}`)
  const third = await pull(`?limit=2&after=${second.cursor}`)
  expect(third).toMatchObject({ more: false })
  const all = [first, second, third].flatMap(({ events }) => events.map(({ id }) => id))
  expect(all).toEqual(recorded.map(({ id }) => id))

  const { rows } = await issuer.database.pool.query('SELECT payload FROM outbox ORDER BY seq LIMIT 1')
  expect(first.events[0]).toEqual(JSON.parse(rows[0].payload))
})

test('a reader begins at a time', async () => {
  await record(userUpdated('old'))
  await issuer.database.pool.query(`UPDATE outbox SET created_at = now() - interval '1 hour'`)
  const [recent] = await record(userUpdated('recent'))
  const page = await pull(`?since=${Date.now() - 60_000}`)
  expect(page.events.map(({ id }) => id)).toEqual([recent!.id])
})

test('who waits is answered by the next event, and without one in the end by a cursor that is further', async () => {
  await record(userUpdated('first'))
  const { cursor } = await pull()
  const waiting = pull(`?after=${cursor}&wait=30&types=User.Data.Updated`)
  await issuer.api('POST', '/users', { username: 'not asked for' })
  await issuer.api('POST', '/users', { username: 'ada' })
  const [wanted] = await record(userUpdated('second'))
  expect((await waiting).events.map(({ id }) => id)).toEqual([wanted!.id])

  const end = await pull(`?after=${cursor}&types=Role.*`)
  expect(end.events).toEqual([])
  expect(Number(end.cursor)).toBeGreaterThan(Number(cursor))
})

describe('filters', () => {
  beforeEach(async () => {
    await issuer.api('POST', '/users', { username: 'ada' })
    await issuer.api('POST', '/roles', { name: 'Reader', description: 'Reads' })
    const [acme, other] = [
      await issuer.api('POST', '/organizations', { name: 'Acme' }),
      await issuer.api('POST', '/organizations', { name: 'Other' }),
    ]
    await issuer.api('PATCH', `/organizations/${acme!.body.id}`, { description: 'x' })
    organizations = { acme: acme!.body.id, other: other!.body.id }
    const user = await issuer.createUser()
    const client = await issuer.createApplication({ allowTokenExchange: true })
    await issuer.exchange(client, await issuer.subjectToken(user.id), { scope: 'openid' })
  })
  let organizations: { acme: string; other: string }
  const typesOf = async (query: string) => (await pull(query)).events.map(({ event }) => event)

  test('by types and wildcards; impersonations only when they are named', async () => {
    expect(await typesOf('?types=User.*')).toEqual(['User.Created'])
    expect(await typesOf('?types=Role.Created,User.Created')).toEqual(['User.Created', 'Role.Created'])
    expect(await typesOf('')).not.toContain('Impersonation.Started')
    expect(await typesOf('?types=*')).not.toContain('Impersonation.Started')
    expect(await typesOf('?types=Impersonation.Started')).toEqual(['Impersonation.Started'])
  })

  test('by organization', async () => {
    const { acme, other } = organizations
    expect(await typesOf(`?organizationIds=${acme}`)).toEqual(['Organization.Created', 'Organization.Data.Updated'])
    expect(await typesOf(`?organizationIds=${acme},${other}&types=Organization.Created`)).toHaveLength(2)
    expect(await typesOf('?organizationIds=nobody')).toEqual([])
  })
})

test.each([
  '?types=User.Exploded',
  '?types=Impersonation.*',
  '?types=',
  '?after=x',
  '?after=-1',
  '?wait=61',
  '?limit=0',
  '?limit=1001',
  '?since=yesterday',
])('%s is refused', async (query) => {
  expect(await issuer.api('GET', `/events${query}`)).toMatchObject({
    status: 400,
    body: { code: 'guard.invalid_input' },
  })
})

test('a reader that stayed away for longer than events are kept is told that it missed some', async () => {
  await record(userUpdated('one'), userUpdated('two'))
  const { cursor } = await pull('?limit=1')
  const { cursor: last } = await pull(`?after=${cursor}`)
  await issuer.database.pool.query(
    `DELETE FROM outbox_pending; UPDATE outbox SET created_at = now() - interval '20 days'`,
  )
  await issuer.database.transaction((query) => removeExpired(query, 14 * 86_400_000))
  const [recent] = await record(userUpdated('three'))

  expect(await issuer.api('GET', `/events?after=${cursor}`)).toMatchObject({
    status: 410,
    body: { code: 'events.cursor_expired' },
  })
  for (const query of [`?after=${last}`, ''])
    expect((await pull(query)).events.map(({ id }) => id)).toEqual([recent!.id])
})

test('a reader that is ahead of a restored database is told, instead of missing what comes', async () => {
  await record(userUpdated('one'))
  const { cursor } = await pull()
  expect(await issuer.api('GET', `/events?after=${Number(cursor) + 1}`)).toMatchObject({
    status: 410,
    body: { code: 'events.cursor_expired' },
  })
})

test('it needs the permission for hooks, or for reading', async () => {
  const reader = await issuer.createMachine(issuer.managementResource, ['read', 'hooks', 'users'])
  const statusWith = async (scope: string) => {
    const token = await issuer.clientToken(reader, issuer.managementResource, scope)
    return (await issuer.api('GET', '/events', undefined, { token })).status
  }
  expect([await statusWith('hooks'), await statusWith('read'), await statusWith('users')]).toEqual([200, 200, 403])
  expect((await issuer.api('GET', '/events', undefined, { token: null })).status).toBe(401)
})

test('closing answers those who wait', async () => {
  const feed = createEventFeed(issuer.database)
  const waiting = feed.read({ types: ['User.Created'], limit: 10, waitMs: 3_600_000 })
  feed.close()
  expect(await waiting).toMatchObject({ payloads: [], more: false })
})

test('the events of one entity, in order, also behind many of others', async () => {
  const wanted = await record(userUpdated('ada'), userUpdated('bob'), userUpdated('ada'))
  for (let count = 0; count < 30; count++) await record(userUpdated(`other${count}`))
  const [last] = await record(userUpdated('ada'))
  const ids = [wanted[0]!.id, wanted[2]!.id, last!.id]

  const all = await pull('?entity=user:ada')
  expect(all.events.map(({ id, version }) => [id, version])).toEqual(ids.map((id, index) => [id, index + 1]))
  const first = await pull('?entity=user:ada&limit=2')
  expect(first).toMatchObject({ events: [{ id: ids[0] }, { id: ids[1] }], more: true })
  expect((await pull(`?entity=user:ada&after=${first.cursor}`)).events.map(({ id }) => id)).toEqual([ids[2]])
  // Of another kind it is another entity.
  expect((await pull('?entity=role:ada')).events).toEqual([])
  expect((await pull('?entity=user:ada&types=Role.*')).events).toEqual([])
  // An id may hold anything.
  expect((await pull(`?entity=${encodeURIComponent('user:ada:x')}`)).events).toEqual([])
  for (const refused of ['ada', 'user:', 'nobody:ada', ':ada', 'user'])
    expect((await issuer.api('GET', `/events?entity=${refused}`)).status).toBe(400)

  const waiting = pull(`?entity=user:ada&after=${all.cursor}&wait=30`)
  await record(userUpdated('bob'))
  const [next] = await record(userUpdated('ada'))
  expect((await waiting).events.map(({ id }) => id)).toEqual([next!.id])
})
