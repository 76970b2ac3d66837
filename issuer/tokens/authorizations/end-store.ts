import { oneRow, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { logoutsOf } from '../logouts/logout-store.ts'
import type { EndReason } from '../sessions/session.ts'
import { sessionCounts } from '../sessions/session-store.ts'

/** How something ended, for those who ask later. `endedBy` is a user or an application. */
export interface Ending {
  reason: EndReason
  endedBy: string
}

const ids = async (rows: Promise<{ id: string }[]>): Promise<string[]> => (await rows).map(({ id }) => id)

// Everybody locks in the order user, sessions, authorizations, and rows of a table in the order of their ids.
const endSessionsWhere = (name: string, condition: string) =>
  statement(
    `sessions-end-${name}`,
    `WITH ending AS (SELECT id FROM sessions s WHERE ${condition} AND ended_at IS NULL ORDER BY id FOR UPDATE)
     UPDATE sessions SET ended_at = clock_timestamp(), end_reason = $2, ended_by = $3
     WHERE id = ANY (ARRAY(SELECT id FROM ending)) RETURNING id, user_id AS "userId"`,
  )

export interface EndedSession {
  id: string
  userId: string
}

const one = endSessionsWhere('one', 's.id = $1')
const ofUser = endSessionsWhere('of-user', 's.user_id = $1 AND s.id IS DISTINCT FROM $4')

const hold = statement('end-hold-user', 'SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE')

/** First of all, where an event of the user is recorded. */
export const holdUser = async (trx: Transaction, userId: string): Promise<void> => {
  await queryOf(trx)(hold, [userId])
}

/** None when it had ended. */
export const endOneSession = (trx: Transaction, sessionId: string, ending: Ending): Promise<EndedSession[]> =>
  queryOf(trx)<EndedSession>(one, [sessionId, ending.reason, ending.endedBy])

/** Those that had not ended. */
export const endSessionsOf = (
  trx: Transaction,
  { userId, exceptSessionId }: { userId: string; exceptSessionId: string | undefined },
  ending: Ending,
): Promise<EndedSession[]> =>
  queryOf(trx)<EndedSession>(ofUser, [userId, ending.reason, ending.endedBy, exceptSessionId ?? null])

// Whoever is to be told of it is told in the same statement.
const endAuthorizationsWhere = (name: string, condition: string) =>
  statement(
    `authorizations-end-${name}`,
    `WITH ending AS (SELECT id FROM authorizations WHERE ${condition} AND ended_at IS NULL ORDER BY id FOR UPDATE),
   ended AS (
     UPDATE authorizations SET ended_at = clock_timestamp(), end_reason = $2
     WHERE id = ANY (ARRAY(SELECT id FROM ending)) RETURNING id, user_id, client_id, scopes),
   ${logoutsOf('ended', '$2')}
   SELECT id FROM ended`,
  )

const byId = endAuthorizationsWhere('by-id', 'id = ANY ($1::text[])')
const ofSession = endAuthorizationsWhere('of-session', 'session_id = $1 AND ($3 OR NOT is_offline OR client_id = $4)')
const ofPerson = endAuthorizationsWhere('of-person', 'user_id = $1 AND session_id IS DISTINCT FROM $3')
const ofClient = endAuthorizationsWhere('of-client', 'user_id = $1 AND client_id = $3')

/** Those that had not ended, by id. */
export const endAuthorizationsById = (trx: Transaction, authorizations: readonly string[], reason: EndReason) =>
  ids(queryOf(trx)<{ id: string }>(byId, [authorizations, reason]))

/** Those of a session: all of them, or those without offline access and those of `clientId`. */
export const endAuthorizationsOfSession = (
  trx: Transaction,
  { sessionId, all, clientId }: { sessionId: string; all: boolean; clientId: string | undefined },
  reason: EndReason,
) => ids(queryOf(trx)<{ id: string }>(ofSession, [sessionId, reason, all, clientId ?? null]))

export const endAuthorizationsOfUser = (
  trx: Transaction,
  { userId, exceptSessionId }: { userId: string; exceptSessionId: string | undefined },
  reason: EndReason,
) => ids(queryOf(trx)<{ id: string }>(ofPerson, [userId, reason, exceptSessionId ?? null]))

export const endAuthorizationsOfClient = (
  trx: Transaction,
  { userId, clientId }: { userId: string; clientId: string },
  reason: EndReason,
) => ids(queryOf(trx)<{ id: string }>(ofClient, [userId, reason, clientId]))

// Of sessions that nobody has been seen in for as long as the shortest of them may idle; most have that length.
const expired = statement(
  'sessions-expire',
  `WITH expired AS (
     SELECT id FROM sessions s
     WHERE ended_at IS NULL AND NOT ${sessionCounts('s')} AND id = ANY (ARRAY(
       (SELECT id FROM sessions WHERE ended_at IS NULL AND expires_at <= now() LIMIT $1)
       UNION (SELECT id FROM sessions WHERE ended_at IS NULL AND last_seen_at
         < now() - (SELECT min(idle_ttl) FROM sessions WHERE ended_at IS NULL) * interval '1 second' LIMIT $1)))
     ORDER BY id FOR UPDATE SKIP LOCKED),
   ended AS (
     UPDATE sessions SET ended_at = clock_timestamp(), end_reason = 'expired'
     WHERE id = ANY (ARRAY(SELECT id FROM expired)) RETURNING id),
   ending AS (
     SELECT id FROM authorizations WHERE session_id = ANY (ARRAY(SELECT id FROM ended)) AND NOT is_offline AND ended_at IS NULL
     ORDER BY id FOR UPDATE),
   over AS (
     UPDATE authorizations SET ended_at = clock_timestamp(), end_reason = 'expired'
     WHERE id = ANY (ARRAY(SELECT id FROM ending)) RETURNING id)
   SELECT ARRAY(SELECT id FROM ended) AS sessions, ARRAY(SELECT id FROM over) AS authorizations`,
)

/** Ends up to `limit` sessions whose time is over; answers them, and the authorizations that ended with them. */
export const expireSessions = (
  trx: Transaction,
  limit: number,
): Promise<{ sessions: string[]; authorizations: string[] }> =>
  oneRow(queryOf(trx)<{ sessions: string[]; authorizations: string[] }>(expired, [limit]))
