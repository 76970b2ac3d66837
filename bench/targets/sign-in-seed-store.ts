import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { newSignInSid } from '../../issuer/tokens/sid.ts'
import { tokenDigest } from '../../issuer/tokens/token-digest.ts'
import { type SignInWorld, signInClient, signInScope } from '../comparisons/sign-in-world.ts'
import type { Connection } from '../harness/database-store.ts'
import { people } from '../harness/people.ts'
import { seedSurrogate } from './issuer-seed-store.ts'

/**
 * Our own schema with a public client, people who have passwords and a session each, and refresh tokens on demand. Some
 * of the people have a second session, whose numbers are above theirs.
 */
export interface OurSignInWorld extends Omit<SignInWorld, 'issuer'> {
  /** A machine with `client_credentials` for the same resource. */
  machine: { id: string; secret: string }
  sessionOf: (number: number) => Promise<{ userId: string; sessionId: string }>
  /** Two of the people, by their numbers, whose sign-in is refused. */
  refuse: (people: { withoutPassword: number; suspended: number }) => Promise<void>
  /** As if nobody had failed to sign in. */
  forgetFailures: () => Promise<void>
}

/** Second sessions. */
export const sessionsToEnd = 120

const sessionId = (number: string) => `'session-' || ${number}`

export const seedSignIn = async (
  server: Connection,
  { digest, name }: { digest: string; name: string },
): Promise<OurSignInWorld> => {
  const { connection, resource, client, close } = await seedSurrogate(server, undefined, name)
  const pool = new pg.Pool({ ...connection, max: 1 })
  await pool.query(
    `UPDATE users SET password_digest = $1, password_algorithm = 'Argon2id' WHERE primary_email IS NOT NULL`,
    [digest],
  )
  await pool.query(`INSERT INTO applications (id, name, type, oidc_client_metadata) VALUES ($1, 'Bench', 'SPA', $2)`, [
    signInClient.id,
    { redirectUris: [signInClient.redirectUri] },
  ])
  await pool.query(
    `INSERT INTO sessions (id, digest, user_id, is_persistent, authenticated_at, amr, acr, interaction, first_address,
       last_address, user_agent, idle_ttl, expires_at)
     SELECT ${sessionId('n')}, sha256(n::text::bytea), u.id, true, now(), '{pwd}', 'urn:surrogate:acr:basic',
       jsonb_build_object('interactionEvent', 'SignIn', 'userId', u.id, 'verificationRecords', '[]'::jsonb,
         'signInContext', '{"ip": "203.0.113.7"}'::jsonb),
       '203.0.113.7', '203.0.113.7', 'A browser', 259200, now() + interval '14 days'
     FROM generate_series(1, $1) n JOIN users u ON u.primary_email = (n - 1) % $2 + 1 || '@example.test'`,
    [people.subjects + sessionsToEnd, people.subjects],
  )
  await pool.query('VACUUM (ANALYZE)')

  return {
    connection,
    paths: { authorize: '/oidc/auth', token: '/oidc/token', jwks: '/oidc/jwks' },
    resource,
    machine: client,
    mintRefreshTokens: async (users) => {
      const tokens = users.map(() => randomBytes(32).toString('base64url'))
      const authorizations = users.map(newSignInSid)
      await pool.query(
        `INSERT INTO authorizations (id, session_id, user_id, client_id, scopes, resources, is_offline, authenticated_at,
           amr, acr, interaction, expires_at)
         SELECT a.id, s.id, s.user_id, $3, $4, $5, true, s.authenticated_at, s.amr, s.acr, s.interaction,
           now() + interval '14 days'
         FROM unnest($1::text[], $2::int[]) a (id, n) JOIN sessions s ON s.id = ${sessionId('a.n')}`,
        [
          authorizations,
          users,
          signInClient.id,
          [...signInScope.openid, 'offline_access', ...signInScope.resource],
          [resource],
        ],
      )
      await pool.query(
        `INSERT INTO refresh_tokens (digest, authorization_id, expires_at)
         SELECT digest, id, now() + interval '14 days' FROM unnest($1::bytea[], $2::text[]) tokens (digest, id)`,
        [tokens.map((token) => tokenDigest('refresh-token', token)), authorizations],
      )
      return tokens
    },
    endLeeway: async (token) => {
      await pool.query(`UPDATE refresh_tokens SET rotated_at = rotated_at - interval '1 hour' WHERE digest = $1`, [
        tokenDigest('refresh-token', token),
      ])
    },
    sessionOf: async (number) => {
      const { rows } = await pool.query<{ userId: string; sessionId: string }>(
        `SELECT user_id AS "userId", id AS "sessionId" FROM sessions WHERE id = ${sessionId('$1::int')}`,
        [number],
      )
      return rows[0]!
    },
    refuse: async ({ withoutPassword, suspended }) => {
      await pool.query(
        `UPDATE users SET password_digest = NULL, password_algorithm = NULL WHERE primary_email = $1 || '@example.test'`,
        [withoutPassword],
      )
      await pool.query(`UPDATE users SET is_suspended = true WHERE primary_email = $1 || '@example.test'`, [suspended])
    },
    forgetFailures: async () => {
      await pool.query('DELETE FROM sign_in_failures')
    },
    close: async () => {
      await pool.end()
      await close()
    },
  }
}
