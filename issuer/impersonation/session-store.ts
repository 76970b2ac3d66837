import { type Query, queryOf, statement, type Transaction } from '../../platform/database.ts'
import type { ActorVia } from './session.ts'

/** A row of `impersonation_sessions`. */
export interface SessionRow {
  id: string
  subjectId: string
  actorId: string | null
  actorVia: ActorVia | null
  clientId: string
  creatorId: string
  resource: string | null
  scopes: string[]
  context: Record<string, unknown>
  reason: string | null
  ticket: string | null
  startedAt: Date
  expiresAt: Date
  endedAt: Date | null
  endedBy: string | null
}

const columns = `id, subject_id AS "subjectId", actor_id AS "actorId", actor_via AS "actorVia", client_id AS "clientId",
  creator_id AS "creatorId", resource, scopes, context, reason, ticket, started_at AS "startedAt", expires_at AS "expiresAt",
  ended_at AS "endedAt", ended_by AS "endedBy"`

export interface SessionFilter {
  userId?: string | undefined
  actorId?: string | undefined
  /** True: neither ended nor expired. False: the others. */
  active?: boolean | undefined
}

const matching = `($1::text IS NULL OR subject_id = $1) AND ($2::text IS NULL OR actor_id = $2)
  AND ($3::boolean IS NULL OR (ended_at IS NULL AND expires_at > now()) = $3)`

const list = statement(
  'sessions-list',
  `SELECT ${columns} FROM impersonation_sessions WHERE ${matching} ORDER BY started_at DESC, id LIMIT $4 OFFSET $5`,
)
const count = statement('sessions-count', `SELECT count(*) AS total FROM impersonation_sessions WHERE ${matching}`)

/** Newest first. */
export const listSessions = async (
  query: Query,
  { userId, actorId, active }: SessionFilter,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ rows: SessionRow[]; total: number }> => {
  const filter = [userId, actorId, active]
  const [rows, counted] = await Promise.all([
    query<SessionRow>(list, [...filter, limit, offset]),
    query<{ total: number }>(count, filter),
  ])
  return { rows, total: counted[0]!.total }
}

const select = statement('session', `SELECT ${columns} FROM impersonation_sessions WHERE id = $1`)

export const findSession = async (transaction: Transaction, id: string): Promise<SessionRow | undefined> =>
  (await queryOf(transaction)<SessionRow>(select, [id]))[0]

// Verifiers allow clocks to differ, at most 120 s, so a session that has just expired can still be worth ending.
const isOpen = `ended_at IS NULL AND expires_at > now() - interval '120 seconds'`
const markTokens = `UPDATE opaque_tokens SET revoked_at = now() FROM ended WHERE session_id = ended.id AND revoked_at IS NULL`

const end = statement(
  'session-end',
  `WITH ended AS (
     UPDATE impersonation_sessions SET ended_at = now(), ended_by = $2 WHERE id = $1 AND ${isOpen} RETURNING *),
   tokens AS (${markTokens})
   SELECT ${columns} FROM ended`,
)

/** Ends the session and the opaque token it may have. Undefined when it was not open. Of parallel calls one gets the row. */
export const endSession = async (
  transaction: Transaction,
  id: string,
  endedBy: string,
): Promise<SessionRow | undefined> => (await queryOf(transaction)<SessionRow>(end, [id, endedBy]))[0]

// In the order of ids: two callers that end the same sessions lock them in the same order.
const endOfUser = statement(
  'sessions-end-of-user',
  `WITH open AS (
     SELECT id FROM impersonation_sessions WHERE (subject_id = $1 OR actor_id = $1) AND ${isOpen} ORDER BY id FOR UPDATE),
   ended AS (
     UPDATE impersonation_sessions SET ended_at = now(), ended_by = $2 WHERE id IN (SELECT id FROM open) RETURNING *),
   tokens AS (${markTokens})
   SELECT ${columns} FROM ended ORDER BY id`,
)

/** Ends every open session in which the user is subject or actor. */
export const endSessionsOfUser = (transaction: Transaction, userId: string, endedBy: string): Promise<SessionRow[]> =>
  queryOf(transaction)<SessionRow>(endOfUser, [userId, endedBy])
