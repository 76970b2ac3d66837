import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ManagementTest, startManagement } from '../../support/management.ts'
import { until } from '../../support/until.ts'

/**
 * That lists, searches and totals do not get slower with what is in the database. How fast they are: `npm run bench --
 * management`.
 */

const many = 20_000

let api: ManagementTest
beforeAll(async () => {
  api = await startManagement()
  const { pool } = api.database
  for (const statement of seed) await pool.query(statement)
  // Pages that somebody's snapshot holds back count as unvisited, and plans are then others: again, until none is.
  const heldBack = async () => {
    await pool.query('VACUUM (ANALYZE)')
    const { rows } = await pool.query(
      `SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples >= ${many / 2} AND relallvisible < relpages`,
    )
    return rows
  }
  await until(async () => expect(await heldBack()).toEqual([]))
  // A quarter of a minute of PostgreSQL's own, several times that beside others.
}, 180_000)
afterAll(() => api.close())

// As wide as real rows are: of a narrow table PostgreSQL rightly reads all to count it.
const text = `repeat('of every kind ', 8)`
const json = `jsonb_build_object('note', repeat('particulars ', 20))`
const ago = `now() - n * interval '1 second'`
const numbers = `generate_series(1, ${many}) n`
const seed = [
  `INSERT INTO users (id, username, primary_email, name, custom_data, created_at)
   SELECT left(md5(n::text), 12), 'user_' || n, n || '@example.test', 'User ' || n, ${json}, ${ago} FROM ${numbers}`,
  `INSERT INTO roles (id, name, description, type, created_at)
   SELECT 'role-' || n, 'Role ' || n, 'Duty ' || ${text}, 'User', ${ago} FROM ${numbers}`,
  `INSERT INTO roles (id, name, description, type)
   SELECT 'machine-' || n, 'Machines ' || n, 'All of them', 'MachineToMachine' FROM generate_series(0, 99) n`,
  `INSERT INTO user_roles SELECT left(md5(n::text), 12), 'role-' || n % 100 + 1 FROM ${numbers}`,
  `INSERT INTO applications (id, name, description, type, custom_data, created_at)
   SELECT 'application-' || n, 'Application ' || n, 'Task ' || n, 'MachineToMachine', ${json}, ${ago} FROM ${numbers}`,
  `INSERT INTO application_roles SELECT 'application-' || n, 'machine-' || n % 100 FROM ${numbers}`,
  `INSERT INTO resources (id, name, indicator, created_at)
   SELECT 'resource-' || n, 'Resource', 'https://api.example.test/' || ${text} || n, ${ago} FROM ${numbers}`,
  `INSERT INTO scopes (id, resource_id, name) SELECT 'scope-' || n, 'resource-' || n % 1000 + 1, 'do:' || n FROM ${numbers}`,
  `INSERT INTO role_scopes SELECT 'role-' || n, 'scope-' || n FROM ${numbers}`,
  `INSERT INTO organizations (id, name, custom_data, created_at)
   SELECT 'org-' || n, 'Organization ' || n, ${json}, ${ago} FROM ${numbers}`,
  `INSERT INTO organization_users (organization_id, user_id)
   SELECT 'org-' || n % 10 + 1, left(md5(n::text), 12) FROM ${numbers}`,
  `INSERT INTO organization_roles (id, name, type) SELECT 'orgrole-' || n, 'Role ' || n, 'User' FROM generate_series(0, 99) n`,
  `INSERT INTO organization_user_roles SELECT organization_id, user_id, 'orgrole-' || (hashtext(user_id) & 63) FROM organization_users`,
  `INSERT INTO organization_applications (organization_id, application_id)
   SELECT 'org-' || n % 10 + 1, 'application-' || n FROM ${numbers}`,
  `INSERT INTO logs (id, key, result, user_id, application_id, payload, created_at)
   SELECT n, 'Key ' || n % 100, 'Success', 'user-' || n % 1000, 'application-' || n % 1000, ${json}, ${ago} FROM ${numbers}`,
]

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  Plans?: Plan[]
}

const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)]

/** The large tables that a request reads from end to end, by the plans of the statements that it runs. */
const scannedBy = async (path: string): Promise<string[]> => {
  const statements: { sql: string; bindings: unknown[] }[] = []
  const note = (statement: { sql: string; bindings: unknown[] }) => void statements.push(statement)
  api.database.knex.on('query', note)
  try {
    await api.expect(200, 'GET', path)
  } finally {
    api.database.knex.off('query', note)
  }
  expect(statements).not.toEqual([])
  const { rows: large } = await api.database.pool.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND reltuples >= ${many / 2}`,
  )
  const scanned: string[] = []
  for (const { sql, bindings } of statements) {
    const { rows } = await api.database.pool.query(`EXPLAIN (FORMAT JSON) ${sql}`, bindings)
    for (const node of nodes(rows[0]['QUERY PLAN'][0].Plan)) {
      const table = large.find(({ name }) => node['Node Type'] === 'Seq Scan' && name === node['Relation Name'])?.name
      // A narrow table is counted in the table itself, which costs no more than an index. Users are not counted at all.
      const isWholeCount = table !== 'users' && sql.startsWith('select count(*)') && !sql.includes('where')
      if (table !== undefined && !isWholeCount) scanned.push(`${table} for ${sql}`)
    }
  }
  return scanned
}

describe('no table is read from end to end by', () => {
  test.each([
    '/users',
    '/users?page=500&page_size=20',
    '/users?page=999&page_size=20',
    '/roles?page=900',
    '/users?excludeRoleId=role-1',
    '/users?excludeOrganizationId=org-1',
    '/users?excludeRoleId=role-1&excludeOrganizationId=org-1&page_size=100',
    '/users?page=500&page_size=20&after=c4ca4238a0b9',
    '/users?page=500&page_size=20&before=c4ca4238a0b9&excludeRoleId=role-1',
    '/users?search=%25User 1234%25',
    '/users?search=%251234@example.test%25',
    '/users?search=user_123%25',
    '/users?search=nobody',
    '/users?search.primaryEmail=1234@example.test&mode=exact',
    '/users?search.username=User_1234&mode=exact',
    '/users?search=USER_1234&mode=exact',
    '/users?search.name=user 1234&mode=exact',
    '/users?search.name=User 1234&mode=exact&isCaseSensitive=true',
    '/users?search.username=%25_1234%25&search.name=%2512345&joint=and',
    '/users?search=%251234%25&excludeRoleId=role-1&excludeOrganizationId=org-1',
    '/roles?page=1',
    '/roles?page=1&search=%25Role 1234%25',
    '/roles?page=1&excludeUserId=c4ca4238a0b9',
    '/roles/role-1/users',
    '/roles/role-1/users?search=%25123%25',
    '/roles/role-1/scopes',
    '/roles/machine-1/applications',
    '/users/c4ca4238a0b9/roles',
    '/applications?page=1',
    '/applications?page=1&search=%25Application 1234%25',
    '/applications?page=1&types=SPA&types=Native',
    '/applications?page=1&excludeRoleId=machine-1',
    '/applications?page=1&excludeOrganizationId=org-1',
    '/applications/application-100/roles',
    '/resources?page=1',
    '/resources?page=1&includeScopes=true',
    '/resources/resource-1/scopes?page=1',
    '/resources/resource-1/scopes?page=1&search=%251234%25',
    '/organizations',
    '/organizations?q=Organization 1234',
    '/organizations/org-1/users',
    '/organizations/org-1/users?q=User 1234',
    '/organizations/org-1/applications',
    '/organizations/org-1/applications?q=Application 1234',
    '/users/c4ca4238a0b9/organizations',
    '/logs',
    '/logs?userId=user-1',
    '/logs?applicationId=application-1&logKey=Key 1',
    '/logs?logKey=Key 1&enableCap=true',
  ])('GET %s', async (path) => {
    expect(await scannedBy(path)).toEqual([])
  })
})

describe('a count that is capped', () => {
  const told = async (path: string) => {
    const { headers } = await api.call('GET', path)
    return [headers.get('total-number'), headers.get('total-number-is-capped')]
  }

  test('says so, and is exact for whoever does not ask for it', async () => {
    expect(await told('/users?search=%25User%25&enableCap=true')).toEqual(['1000', 'true'])
    expect(await told('/users?search=%25User%25&enableCap=true&excludeRoleId=role-1')).toEqual(['1000', 'true'])
    expect(await told('/users?search=%25User%25')).toEqual([String(many), null])
  })

  test('is exact where there are fewer, on the last page, and where the number is known', async () => {
    expect(await told('/users?search=%25User 1234%25&enableCap=true')).toEqual(['11', null])
    expect(await told('/users?search=%25User%25&enableCap=true&page=201&page_size=99')).toEqual(['1000', 'true'])
    expect(await told('/users?search=%25User%25&enableCap=true&page=203&page_size=99')).toEqual([String(many), null])
    expect(await told('/users?enableCap=true&page=400')).toEqual([String(many), null])
  })

  test('hides no row', async () => {
    const ids = async (query: string) =>
      (await api.expect(200, 'GET', `/users?search=%25User%25&page=700${query}`)).map(({ id }: { id: string }) => id)
    expect(await ids('&enableCap=true')).toEqual(await ids(''))
  })
})

describe('the number of users', () => {
  const told = async (query = '') => Number((await api.call('GET', `/users${query}`)).headers.get('total-number'))
  const counted = async () => {
    const { rows } = await api.database.pool.query<{ count: number }>('SELECT count(*) FROM users')
    return rows[0]!.count
  }

  test('is exact while users come and go', async () => {
    const create = () => api.expect(200, 'POST', '/users', {})
    const created = await Promise.all(Array.from({ length: 10 }, create))
    expect(await told()).toBe(many + 10)
    await Promise.all(created.slice(0, 4).map(({ id }) => api.expect(204, 'DELETE', `/users/${id}`)))
    expect(await told()).toBe(many + 6)
    expect(await counted()).toBe(many + 6)
  })

  test('does not count who was refused', async () => {
    const before = await told()
    await api.expect(422, 'POST', '/users', { username: 'user_1' })
    await api.database.knex
      .transaction(async (trx) => {
        await trx('users').insert({ id: 'undone' })
        throw new Error('not this one')
      })
      .catch(() => {})
    expect(await told()).toBe(before)
    expect(await counted()).toBe(before)
  })

  test('without those who hold a role or belong to an organization is what the whole list has', async () => {
    const holders = await told('?excludeRoleId=role-1')
    expect(holders).toBe((await counted()) - many / 100)
    expect(await told('?excludeOrganizationId=org-1')).toBe((await counted()) - many / 10)
    expect(await told('?excludeRoleId=role-1&search=%25')).toBe(holders)
    const { headers } = await api.call('GET', '/roles/role-1/users')
    expect(headers.get('total-number')).toBe(String(many / 100))
  })
})

test('pages far from the start hold the rows that belong there', async () => {
  const { rows } = await api.database.pool.query<{ id: string }>(
    `SELECT id FROM users WHERE NOT EXISTS (SELECT FROM user_roles WHERE role_id = 'role-1' AND user_id = users.id)
     ORDER BY created_at DESC, id`,
  )
  const ids = rows.map(({ id }) => id)
  const pages = Math.ceil(ids.length / 97)
  // Read from the start, from the end, the last one, which is not full, and one beyond it.
  for (const page of [1, 11, Math.floor(pages / 2), pages - 1, pages, pages + 1]) {
    const path = `/users?page=${page}&page_size=97&excludeRoleId=role-1`
    const answered: { id: string }[] = await api.expect(200, 'GET', path)
    expect(answered.map(({ id }) => id)).toEqual(ids.slice((page - 1) * 97, page * 97))
    // The same from the rows beside it.
    const [last, next] = [ids[(page - 1) * 97 - 1], ids[page * 97]]
    if (last) expect(await api.expect(200, 'GET', `${path}&after=${last}`)).toEqual(answered)
    if (next) expect(await api.expect(200, 'GET', `${path}&before=${next}`)).toEqual(answered)
  }
})
