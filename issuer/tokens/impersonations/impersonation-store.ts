import type { Knex } from 'knex'
import { queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import type { ActorVia } from './impersonation.ts'

/** A row of `impersonation_sessions`. */
export interface SessionRow {
  id: string
  subjectId: string
  actorId: string | null
  actorVia: ActorVia | null
  actorSid: string | null
  clientId: string
  creatorId: string
  resource: string | null
  scopes: string[]
  context: Record<string, unknown>
  reason: string | null
  ticket: string | null
  access: 'read' | null
  approvalId: string | null
  startedAt: Date
  expiresAt: Date
  endedAt: Date | null
  endedBy: string | null
}

const columns = `id, subject_id AS "subjectId", actor_id AS "actorId", actor_via AS "actorVia", actor_sid AS "actorSid",
  client_id AS "clientId", creator_id AS "creatorId", resource, scopes, context, reason, ticket, access, approval_id AS "approvalId",
  started_at AS "startedAt", expires_at AS "expiresAt", ended_at AS "endedAt", ended_by AS "endedBy"`

export interface SessionFilter {
  userId?: string | undefined
  actorId?: string | undefined
  clientId?: string | undefined
  creatorId?: string | undefined
  ticket?: string | undefined
  /** A part of the reason, in any case. */
  reason?: string | undefined
  /** Started then or later. */
  from?: Date | undefined
  /** Started before. */
  to?: Date | undefined
  /** True: neither ended nor expired. False: the others. */
  active?: boolean | undefined
}

const table = 'impersonation_sessions'
const equals = {
  userId: 'subject_id',
  actorId: 'actor_id',
  clientId: 'client_id',
  creatorId: 'creator_id',
  ticket: 'ticket',
}
const isOngoing = '(ended_at IS NULL AND expires_at > now())'

const matching = (knex: Knex, filter: SessionFilter): Knex.QueryBuilder => {
  const query = knex(table)
  for (const [name, column] of Object.entries(equals)) {
    const value = filter[name as keyof typeof equals]
    if (value !== undefined) query.where(column, value)
  }
  if (filter.reason !== undefined) query.whereRaw('position(lower(?) IN lower(reason)) > 0', [filter.reason])
  if (filter.from !== undefined) query.where('started_at', '>=', filter.from)
  if (filter.to !== undefined) query.where('started_at', '<', filter.to)
  if (filter.active !== undefined) query.whereRaw(filter.active ? isOngoing : `NOT ${isOngoing}`)
  return query
}

const newestFirst = [{ column: 'started_at', order: 'desc' }, 'id']

/** Newest first. */
export const listSessions = (knex: Knex, filter: SessionFilter, page: Page): Promise<Listed<SessionRow>> =>
  listed<SessionRow>(matching(knex, filter).select(knex.raw(columns)).orderBy(newestFirst), page)

/**
 * All of them, newest first, `batch` rows in memory at a time. Each batch goes on behind the last row of the one
 * before, so rows that come or go meanwhile move nothing, and no connection is held while the reader takes its time.
 */
export async function* everySession(knex: Knex, filter: SessionFilter, batch = 500): AsyncGenerator<SessionRow> {
  let last: { id: string; position: string } | undefined
  for (;;) {
    const query = matching(knex, filter)
      // As text it keeps the microseconds that a Date would lose.
      .select(knex.raw(`${columns}, started_at::text AS position`))
      .orderBy(newestFirst)
      .limit(batch)
    if (last) {
      const { position, id } = last
      query.whereRaw('(started_at < ?::timestamptz OR (started_at = ?::timestamptz AND id > ?))', [
        position,
        position,
        id,
      ])
    }
    const rows: (SessionRow & { position: string })[] = await query
    for (const { position, ...row } of rows) yield row
    if (rows.length < batch) return
    last = rows.at(-1)!
  }
}

const select = statement('impersonation', `SELECT ${columns} FROM impersonation_sessions WHERE id = $1`)

export const findSession = async (transaction: Transaction, id: string): Promise<SessionRow | undefined> =>
  (await queryOf(transaction)<SessionRow>(select, [id]))[0]

// Verifiers allow clocks to differ, at most 120 s, so a session that has just expired can still be worth ending.
const isOpen = `ended_at IS NULL AND expires_at > now() - interval '120 seconds'`
const markTokens = `UPDATE opaque_tokens SET revoked_at = now()
     WHERE session_id = ANY (ARRAY(SELECT id FROM ended)) AND revoked_at IS NULL`

const end = statement(
  'impersonation-end',
  `WITH ended AS (
     UPDATE impersonation_sessions SET ended_at = now(), ended_by = $2 WHERE id = $1 AND ${isOpen} RETURNING *),
   tokens AS (${markTokens})
   SELECT ${columns} FROM ended`,
)

/**
 * Ends the session, what was opened through it, and the opaque tokens that these may have. None when it was not open.
 * Of parallel calls one gets the rows.
 */
export const endSession = async (transaction: Transaction, id: string, endedBy: string): Promise<SessionRow[]> =>
  withOpenedThrough(transaction, await queryOf(transaction)<SessionRow>(end, [id, endedBy]), endedBy)

const endOfSubject = statement(
  'impersonation-end-of-subject',
  `WITH ended AS (
     UPDATE impersonation_sessions SET ended_at = now(), ended_by = $2
     WHERE id = $1 AND subject_id = $2 AND ${isOpen} RETURNING *),
   tokens AS (${markTokens})
   SELECT ${columns} FROM ended`,
)

/** As `endSession`, by the one who is impersonated. */
export const endSessionOfSubject = async (
  transaction: Transaction,
  id: string,
  userId: string,
): Promise<SessionRow[]> =>
  withOpenedThrough(transaction, await queryOf(transaction)<SessionRow>(endOfSubject, [id, userId]), userId)

// In the order of ids: two callers that end the same sessions lock them in the same order.
const endOfUser = statement(
  'impersonations-end-of-user',
  `WITH open AS (
     SELECT id FROM impersonation_sessions WHERE (subject_id = $1 OR actor_id = $1) AND ${isOpen} ORDER BY id FOR UPDATE),
   ended AS (
     UPDATE impersonation_sessions SET ended_at = now(), ended_by = $2 WHERE id IN (SELECT id FROM open) RETURNING *),
   tokens AS (${markTokens})
   SELECT ${columns} FROM ended ORDER BY id`,
)

/** Ends every open session in which the user is subject or actor. */
export const endSessionsOfUser = async (
  transaction: Transaction,
  userId: string,
  endedBy: string,
): Promise<SessionRow[]> =>
  withOpenedThrough(transaction, await queryOf(transaction)<SessionRow>(endOfUser, [userId, endedBy]), endedBy)

const endOfActors = statement(
  'impersonations-end-of-actors',
  `WITH open AS (
     SELECT id FROM impersonation_sessions
     WHERE ends_with_actor AND ${isOpen} AND actor_sid = ANY (
       ARRAY(SELECT id FROM authorizations WHERE session_id = ANY ($2::text[])) || $1::text[])
     ORDER BY id FOR UPDATE),
   ended AS (
     UPDATE impersonation_sessions SET ended_at = now(), ended_by = $3 WHERE id IN (SELECT id FROM open) RETURNING *),
   tokens AS (${markTokens})
   SELECT ${columns} FROM ended ORDER BY id`,
)

/**
 * Ends what was opened by actors with these authorizations or impersonations, or with any authorization that came of
 * these sessions of theirs.
 */
export const endSessionsOfActors = async (
  transaction: Transaction,
  actors: { authorizations: readonly string[]; sessions: readonly string[] },
  endedBy: string | undefined,
): Promise<SessionRow[]> => {
  const values = [actors.authorizations, actors.sessions, endedBy ?? null]
  return withOpenedThrough(transaction, await queryOf(transaction)<SessionRow>(endOfActors, values), endedBy)
}

/**
 * Those that have ended, with what was opened by their tokens as actor tokens, which ends too. A statement of its own:
 * it sees what an exchange committed that the one before had to wait for.
 */
const withOpenedThrough = async (
  transaction: Transaction,
  ended: SessionRow[],
  endedBy: string | undefined,
): Promise<SessionRow[]> => {
  if (ended.length === 0) return ended
  const through = { authorizations: ended.map(({ id }) => id), sessions: [] }
  return [...ended, ...(await endSessionsOfActors(transaction, through, endedBy))]
}
