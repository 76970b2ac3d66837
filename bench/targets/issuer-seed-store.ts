import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { tokenDigest } from '../../issuer/tokens/token-digest.ts'
import { migrations } from '../../migrations/index.ts'
import { createDatabase, migrate } from '../../platform/database.ts'
import { silentLogger } from '../../platform/logger.ts'
import { sha256 } from '../../platform/secret.ts'
import type { SeededIssuer } from '../comparisons/issuer.ts'
import { addDatabase, type Connection } from '../harness/database-store.ts'

/** Our own schema with the same in it as the peer's: one client, resource, role, user and actor; subject tokens on demand. */
const resource = 'https://api.example.test/orders'
const client = { id: 'bench-client', secret: randomBytes(32).toString('base64url') }
const actorId = 'support-1'
const actorToken = randomBytes(32).toString('base64url')

export const seedSurrogate = async (server: Connection): Promise<SeededIssuer> => {
  const connection = await addDatabase(server, 'bench_surrogate')
  const database = createDatabase({ connection, logger: silentLogger })
  await migrate(database, migrations)
  await database.close()

  const pool = new pg.Pool({ ...connection, max: 1 })
  await pool.query(`INSERT INTO users (id) VALUES ('user-1'), ($1)`, [actorId])
  await pool.query(`INSERT INTO resources (id, name, indicator) VALUES ('orders', 'Orders', $1)`, [resource])
  await pool.query(
    `INSERT INTO scopes (id, resource_id, name) VALUES ('read', 'orders', 'read:orders'), ('write', 'orders', 'write:orders')`,
  )
  await pool.query(
    `INSERT INTO roles (id, name, description, type)
     VALUES ('people', 'people', '', 'User'), ('machines', 'machines', '', 'MachineToMachine')`,
  )
  await pool.query(`INSERT INTO role_scopes SELECT r.id, s.id FROM roles r, scopes s`)
  await pool.query(`INSERT INTO user_roles VALUES ('user-1', 'people')`)
  await pool.query(`INSERT INTO applications (id, name, type) VALUES ($1, 'bench', 'MachineToMachine')`, [client.id])
  await pool.query(`INSERT INTO application_roles VALUES ($1, 'machines')`, [client.id])
  await pool.query(`INSERT INTO application_secrets (application_id, name, digest) VALUES ($1, 'bench', $2)`, [
    client.id,
    sha256(client.secret),
  ])
  await pool.query(
    `INSERT INTO opaque_tokens (digest, user_id, client_id, scope, expires_at)
     VALUES ($1, $2, $3, 'openid', now() + interval '1 day')`,
    [tokenDigest('opaque-token', actorToken), actorId, client.id],
  )
  await pool.query('ANALYZE')

  return {
    connection,
    tokenPath: '/oidc/token',
    client,
    resource,
    actorId,
    actorToken,
    mintSubjectTokens: async (count) => {
      const tokens = Array.from({ length: count }, () => `sub_${randomBytes(16).toString('base64url')}`)
      await pool.query(
        `INSERT INTO subject_tokens (digest, user_id, creator_id, expires_at)
         SELECT digest, 'user-1', $2, now() + interval '10 minutes' FROM unnest($1::bytea[]) digest`,
        [tokens.map((token) => tokenDigest('subject-token', token)), client.id],
      )
      return tokens
    },
    close: () => pool.end(),
  }
}
