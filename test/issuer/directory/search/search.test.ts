import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../../support/management.ts'

let api: ManagementTest
const made: Record<string, string> = {}
beforeAll(async () => {
  api = await startManagement()
  const create = async (kind: string, path: string, body: object) => {
    const { body: record, status } = await api.call('POST', path, body)
    expect(status).toBeLessThan(300)
    made[kind] = record.id
  }
  await create('user', '/users', { name: 'Zebra Crossing', username: 'zebra', primaryEmail: 'Zoe@Zebra.example' })
  await create('application', '/applications', { name: 'Zebra shop', type: 'SPA' })
  await create('role', '/roles', { name: 'Keeper', description: 'Looks after zebras' })
  await create('resource', '/resources', { name: 'Stables', indicator: 'https://zebra.test/api' })
  await create('organization', '/organizations', { name: 'Zebra & 100% Sons_' })
  await create('hook', '/hooks', { name: 'x', events: ['User.Created'], config: { url: 'https://192.88.98.1/zebra' } })
  for (let count = 0; count < 30; count++) await api.expect(200, 'POST', '/users', { name: `Okapi number ${count}` })
})
afterAll(() => api.close())

const kinds = ['user', 'application', 'role', 'resource', 'organization', 'hook']
interface Result {
  kind: string
  id: string
  isExact: boolean
}
const search = async (q: string, more = '', scope = 'all') => {
  const { results, kinds: readable } = await api.expect(
    200,
    'GET',
    `/search?q=${encodeURIComponent(q)}${more}`,
    undefined,
    { token: api.token({ scope }) },
  )
  return { results: results as Result[], kinds: readable as string[] }
}
const found = async (q: string, scope?: string) =>
  (await search(q, '', scope)).results.map(({ kind, id }) => [kind, id]).toSorted()

test('finds a text in records of every kind, in any case', async () => {
  const all = kinds.map((kind) => [kind, made[kind]]).toSorted()
  expect(await found('zebra')).toEqual(all)
  expect(await found('  ZEBRA ')).toEqual(all)
  expect(await found('ebr')).toEqual(all)
  expect(await found('no such animal')).toEqual([])
})

test('each has its name and a fact that tells it from others', async () => {
  const { results } = await search('zebra')
  expect(results.toSorted((one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind))).toEqual([
    { kind: 'user', id: made['user'], name: 'Zebra Crossing', detail: 'Zoe@Zebra.example', isExact: true },
    { kind: 'application', id: made['application'], name: 'Zebra shop', detail: 'SPA', isExact: false },
    { kind: 'role', id: made['role'], name: 'Keeper', detail: 'Looks after zebras', isExact: false },
    { kind: 'resource', id: made['resource'], name: 'Stables', detail: 'https://zebra.test/api', isExact: false },
    { kind: 'organization', id: made['organization'], name: 'Zebra & 100% Sons_', detail: null, isExact: false },
    { kind: 'hook', id: made['hook'], name: 'x', detail: 'https://192.88.98.1/zebra', isExact: false },
  ])
})

test('an id leads to its record at once, and once; so do a whole address and user name', async () => {
  for (const kind of kinds) {
    const { results } = await search(made[kind]!)
    expect(results).toEqual([expect.objectContaining({ kind, id: made[kind], isExact: true })])
  }
  for (const whole of ['zoe@zebra.EXAMPLE', 'Zebra']) {
    const [first] = (await search(whole)).results
    expect(first).toMatchObject({ kind: 'user', id: made['user'], isExact: true })
  }
})

test('signs that SQL gives a meaning mean themselves', async () => {
  expect(await found('100% Sons_')).toEqual([['organization', made['organization']]])
  for (const text of ['%%%', 'z%a', '___', "'; DROP TABLE users; --", '\\\\\\']) expect(await found(text)).toEqual([])
})

test('a text without three letters in a row leads to nothing but ids, names and addresses that are it', async () => {
  const { id } = await api.expect(200, 'POST', '/users', { username: 'a_b', name: 'X y z' })
  expect(await found('a_b')).toEqual([['user', id]])
  expect(await found('x y z')).toEqual([])
  await api.expect(204, 'DELETE', `/users/${id}`)
})

test('answers a few of each kind', async () => {
  expect((await search('okapi')).results).toHaveLength(5)
  expect((await search('okapi', '&limit=20')).results).toHaveLength(20)
  expect((await search('okapi', '&limit=1')).results).toHaveLength(1)
  for (const refused of ['q=ab', 'q=', '', 'q=%20%20ab%20', `q=${'a'.repeat(129)}`, 'q=abc&limit=21', 'q=abc&limit=0'])
    expect([refused, (await api.call('GET', `/search?${refused}`)).status]).toEqual([refused, 400])
})

test('searches only what the caller may read, and says what that was', async () => {
  const cases = { users: ['user'], applications: ['application'], rbac: ['role', 'resource'] }
  for (const [scope, readable] of Object.entries({ ...cases, organizations: ['organization'], hooks: ['hook'] })) {
    expect((await search('zebra', '', scope)).kinds).toEqual(readable)
    expect((await found('zebra', scope)).map(([kind]) => kind).toSorted()).toEqual(readable.toSorted())
    for (const kind of kinds.filter((one) => !readable.includes(one)))
      expect((await search(made[kind]!, '', scope)).results).toEqual([])
  }
  expect((await search('zebra', '', 'read')).kinds).toEqual(kinds)
  expect((await search('zebra', '', 'users hooks')).kinds).toEqual(['user', 'hook'])
  const refused = await api.call('GET', '/search?q=zebra', undefined, { token: api.token({ scope: 'keys claims' }) })
  expect(refused.status).toBe(403)
})

test('what had no index for it has one', async () => {
  for (const [table, column] of [
    ['resources', 'indicator'],
    ['hooks', 'url'],
  ] as const) {
    const text = `EXPLAIN SELECT id FROM ${table} WHERE name ILIKE '%zebra%' OR ${column} ILIKE '%zebra%' OR id ILIKE '%zebra%'`
    const plan = await api.database.knex.transaction(async (trx) => {
      // While a table is small, reading it whole is the better plan.
      await trx.raw('SET LOCAL enable_seqscan = off')
      return (await trx.raw<{ rows: object[] }>(text)).rows
    })
    expect(JSON.stringify(plan)).toContain(`${table}_search`)
  }
})
