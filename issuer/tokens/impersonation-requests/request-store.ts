import type { Knex } from 'knex'
import type { impersonationRequestStatuses } from '../../../events/records.ts'
import { oneRow, type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { type Listed, listed, type Page } from '../../base/lists/list-store.ts'
import type { Approval } from './approval.ts'

/** What whoever acts is known by when the policy is asked; see `ImpersonationInput.actor`. */
export interface ActorFacts {
  via: string
  clientId?: string
  acr?: string
  auth_time?: number
  chain: string[]
}

/** What a subject token was asked for with. */
export interface AskedFor {
  userId: string
  context: Record<string, unknown>
  clientId?: string | undefined
  resource?: string | undefined
  scopes?: string[] | undefined
  actorId?: string | undefined
  reason?: string | undefined
  ticket?: string | undefined
}

/** A row of `impersonation_requests`. */
export interface RequestRow {
  id: string
  status: (typeof impersonationRequestStatuses)[number]
  userId: string
  actorId: string | null
  creatorId: string
  clientId: string | null
  resource: string | null
  scopes: string[] | null
  reason: string | null
  ticket: string | null
  number: string
  createdAt: Date
  expiresAt: Date
  decidedAt: Date | null
  readOnly: boolean
  maxTtl: number | null
}

/** How long a request waits to be decided, and an approval to be used, in seconds. */
export const requestTtl = 600

const status = `CASE WHEN used_at IS NOT NULL THEN 'used' WHEN decision = 'refused' THEN 'refused'
  WHEN expires_at <= now() THEN 'expired' WHEN decision = 'approved' THEN 'approved' ELSE 'pending' END AS status`

const columns = `id, ${status}, user_id AS "userId", actor_id AS "actorId", creator_id AS "creatorId", client_id AS "clientId",
  resource, scopes, reason, ticket, number, created_at AS "createdAt", expires_at AS "expiresAt", decided_at AS "decidedAt",
  read_only AS "readOnly", max_ttl AS "maxTtl"`

const hold = statement('impersonation-requests-hold', 'SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE')

const lately = statement(
  'impersonation-requests-lately',
  `SELECT count(*) AS count, coalesce(array_agg(number), '{}') AS numbers,
     coalesce(ceil(extract(epoch FROM min(created_at) + interval '1 hour' - now())), 0)::integer AS "nextIn"
   FROM impersonation_requests WHERE user_id = $1 AND created_at > now() - interval '1 hour'`,
)

/**
 * How often somebody was asked within an hour, with which numbers, and in how many seconds the first of those is an
 * hour old. Holds the row of the user, so that of requests at once each counts the others.
 */
export const countRequests = async (
  trx: Transaction,
  userId: string,
): Promise<{ count: number; numbers: string[]; nextIn: number }> => {
  const query = queryOf(trx)
  await query(hold, [userId])
  return oneRow(query<{ count: number; numbers: string[]; nextIn: number }>(lately, [userId]))
}

const insert = statement(
  'impersonation-request-insert',
  `INSERT INTO impersonation_requests
     (id, user_id, creator_id, context, client_id, resource, scopes, actor_id, reason, ticket, actor, number, expires_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7::text[], $8, $9, $10, $11, $12, now() + interval '${requestTtl} seconds')
   RETURNING ${columns}`,
)

export const insertRequest = (
  trx: Transaction,
  request: AskedFor & { id: string; creatorId: string; actor: ActorFacts | undefined; number: string },
): Promise<RequestRow> =>
  oneRow(
    queryOf(trx)<RequestRow>(insert, [
      request.id,
      request.userId,
      request.creatorId,
      JSON.stringify(request.context),
      request.clientId,
      request.resource,
      request.scopes,
      request.actorId,
      request.reason,
      request.ticket,
      request.actor && JSON.stringify(request.actor),
      request.number,
    ]),
  )

const select = statement('impersonation-request', `SELECT ${columns} FROM impersonation_requests WHERE id = $1`)

export const findRequest = async (transaction: Transaction, id: string): Promise<RequestRow | undefined> =>
  (await queryOf(transaction)<RequestRow>(select, [id]))[0]

export interface RequestFilter {
  status?: RequestRow['status'] | undefined
  userId?: string | undefined
  actorId?: string | undefined
  creatorId?: string | undefined
}

/** By when they expire, which has an index; so that those that can still become something are found by it. */
const isOpen = 'used_at IS NULL AND expires_at > now()'
const conditions: Record<RequestRow['status'], string> = {
  pending: `decision IS NULL AND ${isOpen}`,
  approved: `decision = 'approved' AND ${isOpen}`,
  refused: `decision = 'refused'`,
  expired: `decision IS DISTINCT FROM 'refused' AND used_at IS NULL AND expires_at <= now()`,
  used: 'used_at IS NOT NULL',
}

/** Newest first. */
export const listRequests = (knex: Knex, filter: RequestFilter, page: Page): Promise<Listed<RequestRow>> => {
  const query = knex('impersonation_requests')
  const { status: asked, userId, actorId, creatorId } = filter
  if (asked !== undefined) query.whereRaw(conditions[asked])
  if (userId !== undefined) query.where('user_id', userId)
  if (actorId !== undefined) query.where('actor_id', actorId)
  if (creatorId !== undefined) query.where('creator_id', creatorId)
  return listed<RequestRow>(
    query.select(knex.raw(columns)).orderBy([{ column: 'created_at', order: 'desc' }, 'id']),
    page,
  )
}

const approve = statement(
  'impersonation-request-approve',
  `UPDATE impersonation_requests SET decision = 'approved', decided_at = now(), read_only = $3, max_ttl = $4,
     expires_at = now() + interval '${requestTtl} seconds'
   WHERE id = $1 AND user_id = $2 AND decision IS NULL AND expires_at > now() RETURNING ${columns}`,
)

/** Undefined when it is not pending (any more): of two decisions at once the first stands. */
export const approveRequest = async (
  trx: Transaction,
  { id, userId }: { id: string; userId: string },
  { readOnly = false, maxTtl }: { readOnly?: boolean | undefined; maxTtl?: number | undefined },
): Promise<RequestRow | undefined> =>
  (await queryOf(trx)<RequestRow>(approve, [id, userId, readOnly, maxTtl ?? null]))[0]

/** Of a request, the subject token that nobody has exchanged yet. */
const unexchanged = (request: string, user: string) =>
  `user_id = ${user} AND approval->>'id' = ${request} AND consumed_at IS NULL AND expires_at > now()`

// An exchange holds the row of its subject token: either it is exchanged, or deleted here.
const refuse = statement(
  'impersonation-request-refuse',
  `WITH token AS (DELETE FROM subject_tokens WHERE ${unexchanged('$1', '$2')} RETURNING digest)
   UPDATE impersonation_requests SET decision = 'refused', decided_at = now(), used_at = NULL, read_only = false, max_ttl = NULL
   WHERE id = $1 AND user_id = $2 AND (used_at IS NULL AND decision IS DISTINCT FROM 'refused' AND expires_at > now()
     OR EXISTS (SELECT FROM token)) RETURNING ${columns}`,
)

/**
 * Takes an approval back too, until its subject token is exchanged. Undefined when there is nothing to refuse any more.
 */
export const refuseRequest = async (
  trx: Transaction,
  { id, userId }: { id: string; userId: string },
): Promise<RequestRow | undefined> => (await queryOf(trx)<RequestRow>(refuse, [id, userId]))[0]

/** An approved request that is being used. */
export interface UsedRequest extends AskedFor {
  actor: ActorFacts | null
  approval: Approval
}

const use = statement(
  'impersonation-request-use',
  `UPDATE impersonation_requests SET used_at = now()
   WHERE id = $1 AND creator_id = $2 AND decision = 'approved' AND used_at IS NULL AND expires_at > now()
   RETURNING json_strip_nulls(json_build_object('userId', user_id, 'clientId', client_id, 'resource', resource,
       'scopes', scopes, 'actorId', actor_id, 'reason', reason, 'ticket', ticket)) AS asked,
     context, actor,
     json_strip_nulls(json_build_object('id', id, 'at', floor(extract(epoch FROM decided_at)), 'scopes', scopes,
       'maxTtl', max_ttl, 'readOnly', read_only)) AS approval`,
)

/** Once: undefined when it is not approved (any more), or another application's. */
export const useRequest = async (
  trx: Transaction,
  { id, creatorId }: { id: string; creatorId: string },
): Promise<UsedRequest | undefined> => {
  type Row = Pick<UsedRequest, 'actor' | 'approval' | 'context'> & { asked: Omit<AskedFor, 'context'> }
  const [row] = await queryOf(trx)<Row>(use, [id, creatorId])
  return row && { ...row.asked, context: row.context, actor: row.actor, approval: row.approval }
}

/** A request as the one sees it who is asked. */
export interface SeenRequest extends RequestRow {
  actorName: string | null
  creatorName: string | null
  /** Approved, and nobody acts by it yet. */
  canBeWithdrawn: boolean
}

const ofPerson = statement(
  'impersonation-requests-of-person',
  `SELECT ${columns},
     (SELECT coalesce(a.name, a.username, a.primary_email) FROM users a WHERE a.id = actor_id) AS "actorName",
     (SELECT c.name FROM applications c WHERE c.id = creator_id) AS "creatorName",
     decision IS NOT DISTINCT FROM 'approved' AND (used_at IS NULL AND expires_at > now()
       OR EXISTS (SELECT FROM subject_tokens WHERE ${unexchanged('r.id', 'r.user_id')})) AS "canBeWithdrawn"
   FROM impersonation_requests r WHERE user_id = $1 AND ($2::text IS NULL OR id = $2) ORDER BY created_at DESC, id LIMIT 100`,
)

/** Newest first, 100 at most; or the one with this id. */
export const findRequestsOf = (query: Query, userId: string, id?: string | undefined): Promise<SeenRequest[]> =>
  query<SeenRequest>(ofPerson, [userId, id ?? null])
