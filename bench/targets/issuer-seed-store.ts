import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { tokenDigest } from '../../issuer/tokens/token-digest.ts'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate } from '../../platform/database/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { sha256 } from '../../platform/secret.ts'
import type { SeededIssuer } from '../comparisons/issuer.ts'
import { addDatabase, type Connection } from '../harness/database-store.ts'
import { type Actor, actors, people } from '../harness/people.ts'

/**
 * Our own schema with one client, one actor and one resource in it, and as many users and roles as asked for; subject
 * tokens on demand, each for a user picked at random.
 */
const resource = 'https://api.example.test/orders'
const client = { id: 'bench-client', secret: randomBytes(32).toString('base64url') }

export type IssuerSize = {
  users: number
  /** For users, and as many for machines. A multiple of `held`. */
  roles: number
  /**
   * Roles of each user, and of the client. One of them, the middle one in the order of their ids, carries what is asked
   * for.
   */
  held: number
  /** On the resource. Each role carries two of them. */
  permissions: number
}

/** The same as the peer's: users with a role, and a client with one. */
const smallest: IssuerSize = { users: people.subjects, roles: 1, held: 1, permissions: 2 }

// Spread over the index as random ids are, and found again from the number of the user.
const userId = (number: string) => `substr(md5((${number})::text), 1, 12)`

export const seedSurrogate = async (server: Connection, size = smallest, name = 'surrogate'): Promise<SeededIssuer> => {
  const connection = await addDatabase(server, `bench_${name}`)
  const database = createDatabase({ connection, logger: silentLogger })
  await migrate(database, migrations)
  await database.close()

  const pool = new pg.Pool({ ...connection, max: 1 })
  // No foreign keys are checked while seeding: millions of look-ups that all succeed.
  await pool.query(`SET session_replication_role = replica`)
  await pool.query(`SET work_mem = '256MB'`)
  await seedRoles(pool, size)
  await seedUsers(pool, size)
  await seedClient(pool, size)
  const acting = actors()
  await seedActors(pool, acting)
  await pool.query('RESET ALL')
  // Also so that no autovacuum has a reason to start in the middle of a round.
  await pool.query('VACUUM (ANALYZE) users, user_roles, roles, role_scopes, scopes, resources, applications')

  return {
    connection,
    tokenPath: '/oidc/token',
    client,
    resource,
    actors: acting,
    mintSubjectTokens: async (count) => {
      const tokens = Array.from({ length: count }, () => `sub_${randomBytes(16).toString('base64url')}`)
      await pool.query(
        `INSERT INTO subject_tokens (digest, user_id, creator_id, expires_at)
         SELECT digest, ${userId('1 + floor(random() * $3)::int')}, $2, now() + interval '10 minutes' FROM unnest($1::bytea[]) digest`,
        [tokens.map((token) => tokenDigest('subject-token', token)), client.id, size.users],
      )
      return tokens
    },
    close: () => pool.end(),
  }
}

const roleKinds = { user: 'User', machine: 'MachineToMachine' }
const roleId = (kind: keyof typeof roleKinds, number: string) => `'${kind}-' || lpad((${number})::text, 6, '0')`

/** Roles 1…n of each type; those in the middle of a block of `held` carry the two permissions that are asked for. */
const seedRoles = async (pool: pg.Pool, { roles, held, permissions }: IssuerSize): Promise<void> => {
  await pool.query(`INSERT INTO resources (id, name, indicator) VALUES ('orders', 'Orders', $1)`, [resource])
  await pool.query(
    `INSERT INTO scopes (id, resource_id, name) VALUES ('read', 'orders', 'read:orders'), ('write', 'orders', 'write:orders')`,
  )
  await pool.query(
    `INSERT INTO scopes (id, resource_id, name) SELECT 'other-' || n, 'orders', 'other:' || n FROM generate_series(0, $1 - 3) n`,
    [permissions],
  )
  for (const [kind, type] of Object.entries(roleKinds)) {
    const id = roleId(kind as keyof typeof roleKinds, 'n')
    await pool.query(
      `INSERT INTO roles (id, name, description, type) SELECT ${id}, ${id}, '', $2 FROM generate_series(0, $1 - 1) n`,
      [roles, type],
    )
    await pool.query(
      `INSERT INTO role_scopes
       SELECT ${id}, CASE WHEN n % $2 = $2 / 2 THEN scope.asked ELSE 'other-' || (2 * n + scope.number) % ($3 - 2) END
       FROM generate_series(0, $1 - 1) n, (VALUES (0, 'read'), (1, 'write')) scope (number, asked)`,
      [roles, held, permissions],
    )
  }
}

/** User n holds block n of the roles, over and over. */
const seedUsers = async (pool: pg.Pool, { users, roles, held }: IssuerSize): Promise<void> => {
  const people = `(SELECT ${userId('n')} AS id, n FROM generate_series(1, $1) n) people`
  await pool.query(
    `INSERT INTO users (id, primary_email, name, created_at)
     SELECT id, n || '@example.test', 'User ' || n, now() - n * interval '1 second' FROM ${people} ORDER BY id`,
    [users],
  )
  await pool.query(
    `INSERT INTO user_roles
     SELECT id, ${roleId('user', '(n * $2 + number) % $3')} FROM ${people}, generate_series(0, $2 - 1) number ORDER BY id, number`,
    [users, held, roles],
  )
}

const seedClient = async (pool: pg.Pool, { held }: IssuerSize): Promise<void> => {
  await pool.query(`INSERT INTO applications (id, name, type) VALUES ($1, 'bench', 'MachineToMachine')`, [client.id])
  await pool.query(
    `INSERT INTO application_roles SELECT $1, ${roleId('machine', 'n')} FROM generate_series(0, $2 - 1) n`,
    [client.id, held],
  )
  await pool.query(`INSERT INTO application_secrets (application_id, name, digest) VALUES ($1, 'bench', $2)`, [
    client.id,
    sha256(client.secret),
  ])
}

const seedActors = async (pool: pg.Pool, acting: readonly Actor[]): Promise<void> => {
  const ids = acting.map(({ id }) => id)
  await pool.query(`INSERT INTO users (id) SELECT unnest($1::text[])`, [ids])
  await pool.query(
    `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at)
     SELECT digest, id, $3, 'openid', now() + interval '1 day' FROM unnest($1::bytea[], $2::text[]) actor (digest, id)`,
    [acting.map(({ token }) => tokenDigest('opaque-token', token)), ids, client.id],
  )
}
