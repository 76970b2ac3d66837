import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { authorizationCounts } from '../../tokens/authorizations/authorization-store.ts'
import { sessionCounts } from '../../tokens/sessions/session-store.ts'

/** A session that counts. */
export interface UserSessionRow {
  id: string
  userId: string
  amr: string[]
  acr: string
  interaction: unknown
  createdAt: Date
  authenticatedAt: Date
  lastSeenAt: Date
  expiresAt: Date
  lastAddress: string
  userAgent: string | null
  /** Of the first application. Null when that was deleted. */
  clientId: string | null
  /** The newest of each application, by its id. */
  authorizations: Record<string, { sid: string; grantId: string; persistsLogout: boolean }>
}

const sessionsWhere = (name: string, condition: string) =>
  statement(
    `user-sessions-${name}`,
    `SELECT s.id, s.user_id AS "userId", s.amr, s.acr, s.interaction, s.created_at AS "createdAt",
       s.authenticated_at AS "authenticatedAt", s.last_seen_at AS "lastSeenAt", s.expires_at AS "expiresAt",
       s.last_address AS "lastAddress", s.user_agent AS "userAgent",
       (SELECT a.client_id FROM authorizations a WHERE a.session_id = s.id ORDER BY a.created_at, a.id LIMIT 1) AS "clientId",
       COALESCE((
         SELECT jsonb_object_agg(client_id, jsonb_build_object('sid', id, 'grantId', id, 'persistsLogout', is_offline))
         FROM (
           SELECT DISTINCT ON (a.client_id) a.client_id, a.id, a.is_offline FROM authorizations a
           WHERE a.session_id = s.id AND ${authorizationCounts('a')}
           ORDER BY a.client_id, a.created_at DESC, a.id) AS newest), '{}') AS authorizations
     FROM sessions s WHERE s.user_id = $1 AND ${condition} AND ${sessionCounts('s')}
     ORDER BY s.created_at DESC, s.id`,
  )
const all = sessionsWhere('list', 'true')
const one = sessionsWhere('find', 's.id = $2')

/** Those that count, newest first. */
export const listUserSessions = (query: Query, userId: string): Promise<UserSessionRow[]> =>
  query<UserSessionRow>(all, [userId])

export const findUserSession = async (
  transaction: Transaction,
  userId: string,
  sessionId: string,
): Promise<UserSessionRow | undefined> => (await queryOf(transaction)<UserSessionRow>(one, [userId, sessionId]))[0]

/** An authorization, with its application. */
export interface GrantRow {
  id: string
  userId: string
  clientId: string
  clientName: string
  sessionId: string
  scopes: string[]
  createdAt: Date
  expiresAt: Date
}

const grants = statement(
  'user-grants-list',
  `SELECT a.id, a.user_id AS "userId", a.client_id AS "clientId", c.name AS "clientName", a.session_id AS "sessionId",
     a.scopes, a.created_at AS "createdAt", a.expires_at AS "expiresAt"
   FROM authorizations a JOIN applications c ON c.id = a.client_id
   WHERE a.user_id = $1 AND ($2::boolean IS NULL OR c.is_third_party = $2) AND ${authorizationCounts('a')}
   ORDER BY a.created_at DESC, a.id`,
)

/** Those that count, newest first; `isThirdParty` undefined: of all applications. */
export const listGrants = (query: Query, userId: string, isThirdParty: boolean | undefined): Promise<GrantRow[]> =>
  query<GrantRow>(grants, [userId, isThirdParty ?? null])

const grant = statement(
  'user-grant-find',
  `SELECT a.client_id AS "clientId", c.is_third_party AS "isThirdParty"
   FROM authorizations a JOIN applications c ON c.id = a.client_id WHERE a.id = $1 AND a.user_id = $2`,
)

/** Whose grant of the person it is, or was; undefined when the person never had it. */
export const findGrantee = async (
  transaction: Transaction,
  userId: string,
  grantId: string,
): Promise<{ clientId: string; isThirdParty: boolean } | undefined> =>
  (await queryOf(transaction)<{ clientId: string; isThirdParty: boolean }>(grant, [grantId, userId]))[0]
