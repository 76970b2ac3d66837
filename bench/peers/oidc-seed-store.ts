import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { SeededIssuer } from '../comparisons/issuer.ts'
import { addDatabase, type Connection } from '../harness/database-store.ts'
import { type Actor, actors, people } from '../harness/people.ts'
import { peerSchema, sha256 } from './oidc-store.ts'

/** The peer's database with its one client, resource, role, user and actor in it; subject tokens on demand. */
const resource = 'https://api.example.test/orders'
const client = { id: 'bench-client', secret: randomBytes(32).toString('base64url') }

const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
const clientMetadata = {
  client_id: client.id,
  client_secret: client.secret,
  grant_types: ['client_credentials', tokenExchange],
  response_types: [],
  redirect_uris: [],
  token_endpoint_auth_method: 'client_secret_basic',
}

export const seedPeer = async (server: Connection): Promise<SeededIssuer> => {
  const connection = await addDatabase(server, 'bench_oidc_provider')
  const pool = new pg.Pool({ ...connection, max: 1 })
  await pool.query(peerSchema)
  const acting = actors()
  await pool.query(`insert into users (id) select 'user-' || n from generate_series(1, $1::int) n`, [people.subjects])
  await pool.query(`insert into users (id) select unnest($1::text[])`, [acting.map(({ id }) => id)])
  await pool.query(`insert into resources values ($1, 3600)`, [resource])
  await pool.query(`insert into scopes values (1, $1, 'read:orders'), (2, $1, 'write:orders')`, [resource])
  await pool.query(`insert into role_scopes values ('orders', 1), ('orders', 2)`)
  await pool.query(`insert into user_roles select 'user-' || n, 'orders' from generate_series(1, $1::int) n`, [
    people.subjects,
  ])
  await pool.query(`insert into client_roles values ($1, 'orders')`, [client.id])
  await insertPayload(pool, 'Client', client.id, clientMetadata)
  for (const actor of acting) await insertPayload(pool, 'AccessToken', actor.token, actorTokenPayload(actor, client.id))
  await pool.query('analyze')

  return {
    connection,
    tokenPath: '/token',
    client,
    resource,
    actors: acting,
    mintSubjectTokens: async (count) => {
      const tokens = Array.from({ length: count }, () => `sub_${randomBytes(16).toString('base64url')}`)
      await pool.query(
        `insert into subject_tokens (hash, user_id, expires_at)
         select hash, 'user-' || (1 + floor(random() * $2)::int), now() + interval '10 minutes' from unnest($1::bytea[]) hash`,
        [tokens.map(sha256), people.subjects],
      )
      return tokens
    },
    close: () => pool.end(),
  }
}

const insertPayload = (pool: pg.Pool, model: string, id: string, payload: object) =>
  pool.query('insert into oidc_payloads (model, id, payload) values ($1, $2, $3)', [model, id, payload])

/** As the library itself stores an opaque access token. */
const actorTokenPayload = (actor: Actor, clientId: string) => {
  const iat = Math.floor(Date.now() / 1000)
  return {
    kind: 'AccessToken',
    jti: actor.token,
    iat,
    exp: iat + 86_400,
    accountId: actor.id,
    clientId,
    scope: 'openid',
  }
}
