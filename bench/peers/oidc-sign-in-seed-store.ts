import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { type SignInWorld, signInClient, signInScope } from '../comparisons/sign-in-world.ts'
import type { Connection } from '../harness/database-store.ts'
import { people } from '../harness/people.ts'
import { seedPeer } from './oidc-seed-store.ts'

/**
 * The peer's database with a public client and people who have passwords; refresh tokens on demand, as the library
 * stores them: a payload for each, and one for its grant.
 */
export const seedSignInPeer = async (
  server: Connection,
  { issuer, digest }: { issuer: string; digest: string },
): Promise<SignInWorld> => {
  const { connection, resource, close } = await seedPeer(server)
  const pool = new pg.Pool({ ...connection, max: 1 })
  await pool.query(
    `update users set email = n || '@example.test', email_verified = true, name = 'User ' || n, password_digest = $2
     from generate_series(1, $1::int) n where id = 'user-' || n`,
    [people.subjects, digest],
  )
  await pool.query(`insert into oidc_payloads (model, id, payload) values ('Client', $1, $2)`, [
    signInClient.id,
    {
      client_id: signInClient.id,
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: [signInClient.redirectUri],
      application_type: 'web',
    },
  ])
  await pool.query('vacuum analyze')

  return {
    connection,
    issuer,
    paths: { authorize: '/auth', token: '/token', jwks: '/jwks' },
    resource,
    mintRefreshTokens: async (users) => {
      const now = Math.floor(Date.now() / 1000)
      const tokens = users.map(() => randomBytes(32).toString('base64url'))
      const grants = users.map(() => randomUUID())
      const shared = { iat: now, exp: now + 14 * 86_400, clientId: signInClient.id }
      const [openid, resourceScope] = [signInScope.openid.join(' '), signInScope.resource.join(' ')]
      await pool.query(
        `insert into oidc_payloads (model, id, payload, expires_at)
         select 'Grant', id, $3::jsonb || jsonb_build_object('jti', id, 'accountId', 'user-' || n), now() + interval '14 days'
         from unnest($1::text[], $2::int[]) grants (id, n)`,
        [
          grants,
          users,
          { ...shared, kind: 'Grant', openid: { scope: openid }, resources: { [resource]: resourceScope } },
        ],
      )
      await pool.query(
        `insert into oidc_payloads (model, id, payload, grant_id, expires_at)
         select 'RefreshToken', id, $4::jsonb || jsonb_build_object('jti', id, 'accountId', 'user-' || n, 'grantId', grant_id,
           'sessionUid', 'session-' || n), grant_id, now() + interval '14 days'
         from unnest($1::text[], $2::text[], $3::int[]) tokens (id, grant_id, n)`,
        [
          tokens,
          grants,
          users,
          {
            ...shared,
            kind: 'RefreshToken',
            gty: 'authorization_code',
            amr: ['pwd'],
            authTime: now,
            nonce: 'a nonce of the first request',
            resource,
            scope: `${openid} ${resourceScope}`,
            rotations: 0,
            iiat: now,
          },
        ],
      )
      return tokens
    },
    // It knows no leeway.
    endLeeway: async () => {},
    close: async () => {
      await pool.end()
      await close()
    },
  }
}
