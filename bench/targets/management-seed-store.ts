import pg from 'pg'
import { searchIndexes } from '../../migrations/0013-search-indexes.ts'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { addDatabase, type Connection } from '../harness/database-store.ts'

/** Our own schema with as much in it as the lists of the Management API are promised for. */
export const seeded = {
  users: 1_000_000,
  roles: 10_000,
  /** Of the one large organization, `large`. */
  members: 100_000,
  organizations: 1_000,
  applications: 1_000,
  logs: 200_000,
} as const

const id = (number: string) => `left(md5((${number})::text), 12)`
const numbers = (count: number) => `generate_series(1, ${count}) n`
const ago = `now() - n * interval '1 second'`

const statements = [
  `INSERT INTO users (id, username, primary_email, primary_phone, name, custom_data, created_at)
   SELECT ${id('n')}, 'user_' || n, 'user.' || n || '@example.test', (420000000000 + n)::text, 'User ' || n,
          jsonb_build_object('plan', 'pro', 'seats', n % 100), ${ago} FROM ${numbers(seeded.users)}`,
  `INSERT INTO roles (id, name, description, type, created_at)
   SELECT 'role-' || n, 'Role ' || n, 'What is done in department ' || n, 'User', ${ago} FROM ${numbers(seeded.roles)}`,
  `INSERT INTO user_roles SELECT ${id('n')}, 'role-' || 1 + (n * 7 + held * 13) % ${seeded.roles}
   FROM ${numbers(seeded.users)}, generate_series(0, 1) held`,
  `INSERT INTO applications (id, name, description, type, created_at)
   SELECT 'application-' || n, 'Application ' || n, 'Number ' || n, 'MachineToMachine', ${ago} FROM ${numbers(seeded.applications)}`,
  `INSERT INTO organizations (id, name, created_at) VALUES ('large', 'Large', now())`,
  `INSERT INTO organizations (id, name, created_at)
   SELECT 'org-' || n, 'Organization ' || n, ${ago} FROM ${numbers(seeded.organizations - 1)}`,
  `INSERT INTO organization_roles (id, name, type) SELECT 'member-' || n, 'Member ' || n, 'User' FROM ${numbers(10)}`,
  `INSERT INTO organization_users (organization_id, user_id, created_at)
   SELECT 'large', ${id('n * 10')}, ${ago} FROM ${numbers(seeded.members)}`,
  `INSERT INTO organization_user_roles SELECT 'large', ${id('n * 10')}, 'member-' || n % 10 + 1 FROM ${numbers(seeded.members)}`,
  `INSERT INTO logs (id, key, result, user_id, application_id, payload, created_at)
   SELECT 'log-' || n, 'ExchangeTokenBy.TokenExchange', 'Success', ${id('n')}, 'application-' || n % 100,
          jsonb_build_object('ip', '203.0.113.7', 'userAgent', repeat('agent ', 20)), ${ago} FROM ${numbers(seeded.logs)}`,
]

export const seedManagement = async (server: Connection): Promise<Connection> => {
  const connection = await addDatabase(server, 'bench_management')
  const database = createDatabase({ connection, logger: silentLogger })
  // What the lists stand on is made once for all rows instead of row by row.
  await migrate(database, migrations.slice(0, migrations.indexOf(searchIndexes)))
  const client = new pg.Client(connection)
  await client.connect()
  // No foreign keys are checked while seeding: millions of look-ups that all succeed.
  await client.query('SET session_replication_role = replica')
  for (const statement of statements) await client.query(statement)
  await client.query('RESET ALL')
  await migrate(database, migrations)
  await client.query('VACUUM (ANALYZE)')
  await client.end()
  await database.close()
  return connection
}
