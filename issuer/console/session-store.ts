import { type Query, statement } from '../../platform/database/database.ts'
import { consoleClientId, consoleRoleIdsSql } from '../base/console-roles.ts'
import { authorizationCounts } from '../tokens/authorizations/authorization-store.ts'
import { revokedUntil } from '../tokens/revocations/revocation-store.ts'
import { tokenDigest } from '../tokens/token-digest.ts'

/** What a session of the console is sealed for. */
export const consoleSessionContext = (id: string): string => `console-session:${id}`

/** In seconds. */
export const sessionTtl = 8 * 3_600
const idleTtl = 1_800

export interface ConsolePerson {
  id: string
  name: string | null
  username: string | null
  primaryEmail: string | null
  avatar: string | null
}

/** The session of a cookie that counts. Times in seconds. */
export interface ConsoleSession {
  id: string
  /** Its tokens, sealed. */
  sealed: Buffer
  /** The authorization that they came of: `sid` of its tokens. */
  authorizationId: string
  user: ConsolePerson
  /** Ids, of those of the console. */
  roles: string[]
  /** What these allow now. */
  scopes: string[]
  /** What the access token was issued for. */
  tokenScopes: string[]
  /** Until the access token expires; negative when it has. */
  tokenLeft: number
  authTime: number
  expiresAt: number
  /** The last second whose tokens of the person are revoked; see `issueTime`. */
  revokedUntil: number | null
}

const seconds = (time: string) => `floor(extract(epoch FROM ${time}))::float8`

// It ends with the authorization that its tokens came of, and so with the sign-in, a suspension and a password change.
const select = statement(
  'console-session-find',
  `SELECT c.id, c.sealed, c.authorization_id AS "authorizationId",
     json_build_object('id', u.id, 'name', u.name, 'username', u.username, 'primaryEmail', u.primary_email,
       'avatar', u.avatar) AS "user",
     ARRAY(SELECT role_id FROM user_roles WHERE user_id = u.id AND role_id IN (${consoleRoleIdsSql}) ORDER BY 1) AS roles,
     ARRAY(SELECT DISTINCT s.name FROM user_roles ur JOIN role_scopes rs ON rs.role_id = ur.role_id
       JOIN scopes s ON s.id = rs.scope_id JOIN resources r ON r.id = s.resource_id
       WHERE ur.user_id = u.id AND ur.role_id IN (${consoleRoleIdsSql}) AND r.indicator = $2 ORDER BY 1) AS scopes,
     c.scopes AS "tokenScopes", extract(epoch FROM c.token_expires_at - now())::float8 AS "tokenLeft",
     ${seconds('a.authenticated_at')} AS "authTime", ${seconds('c.expires_at')} AS "expiresAt",
     greatest(${revokedUntil('sub', 'ARRAY[u.id]')}, ${revokedUntil('client', `ARRAY['${consoleClientId}']`)}) AS "revokedUntil"
   FROM console_sessions c JOIN authorizations a ON a.id = c.authorization_id
     JOIN users u ON u.id = c.user_id AND NOT u.is_suspended
   WHERE c.digest = $1 AND c.expires_at > now() AND c.last_seen_at > now() - interval '${idleTtl} seconds'
     AND ${authorizationCounts('a')}`,
)

const digestOf = (cookie: string) => tokenDigest('console-session', cookie)

/** `indicator`: of the Management API. One round trip. */
export const findConsoleSession = async (
  query: Query,
  cookie: string,
  indicator: string,
): Promise<ConsoleSession | undefined> => (await query<ConsoleSession>(select, [digestOf(cookie), indicator]))[0]

const touch = statement(
  'console-session-touch',
  `UPDATE console_sessions SET last_seen_at = now() WHERE id = $1 AND last_seen_at < now() - interval '1 minute'`,
)

/** Notes that it was used, at most once a minute. */
export const touchConsoleSession = async (query: Query, id: string): Promise<void> => {
  await query(touch, [id])
}

export interface NewConsoleSession {
  id: string
  cookie: string
  userId: string
  authorizationId: string
  sealed: Buffer
  scopes: readonly string[]
  tokenExpiresAt: Date
}

const insert = statement(
  'console-session-insert',
  `INSERT INTO console_sessions (id, digest, user_id, authorization_id, sealed, scopes, token_expires_at, expires_at)
   VALUES ($1, $2, $3, $4, $5, $6::text[], $7, now() + interval '${sessionTtl} seconds')`,
)

export const insertConsoleSession = async (query: Query, session: NewConsoleSession): Promise<void> => {
  const { id, cookie, userId, authorizationId, sealed, scopes, tokenExpiresAt } = session
  await query(insert, [id, digestOf(cookie), userId, authorizationId, sealed, scopes, tokenExpiresAt])
}

const renew = statement(
  'console-session-renew',
  `UPDATE console_sessions SET sealed = $3, scopes = $4::text[], token_expires_at = $5 WHERE id = $1 AND sealed = $2`,
)

/** New tokens in the place of those that were read. Without effect when somebody else was faster. */
export const renewConsoleSession = async (
  query: Query,
  before: Pick<ConsoleSession, 'id' | 'sealed'>,
  next: Pick<NewConsoleSession, 'sealed' | 'scopes' | 'tokenExpiresAt'>,
): Promise<void> => {
  await query(renew, [before.id, before.sealed, next.sealed, next.scopes, next.tokenExpiresAt])
}

const remove = statement(
  'console-session-delete',
  `DELETE FROM console_sessions c USING authorizations a WHERE c.digest = $1 AND a.id = c.authorization_id
   RETURNING c.user_id AS "userId", c.authorization_id AS "authorizationId", a.session_id AS "sessionId"`,
)

export interface EndedConsoleSession {
  userId: string
  authorizationId: string
  /** In which the person had signed in. */
  sessionId: string
}

/** Undefined when there is no such session any more. */
export const deleteConsoleSession = async (query: Query, cookie: string): Promise<EndedConsoleSession | undefined> =>
  (await query<EndedConsoleSession>(remove, [digestOf(cookie)]))[0]
