import { eventExpressions, eventValues, type NewEvent } from '../../../events/outbox.ts'
import { type Query, statement } from '../../../platform/database.ts'
import { newId } from '../../../platform/ids.ts'
import type { ImpersonationSession } from '../../impersonation/session.ts'
import { type AuditEntry, logPayload } from '../../logs/log-store.ts'
import type { Act } from '../../tokens/access-token.ts'

// What both redeeming statements do once `allowed` has its row. $1…$11: the opaque token and the audit row.
const writeTokenAndLog = (personalAccessToken: string) => `
   opaque AS (
     INSERT INTO opaque_tokens (digest, user_id, client_id, scope, session_id, act, expires_at, personal_access_token)
     SELECT $1, $2, $3, $4, $5, $6, $7, ${personalAccessToken} FROM allowed WHERE $1::bytea IS NOT NULL),
   log AS (
     INSERT INTO logs (id, key, result, application_id, user_id, payload)
     SELECT $8, $9, 'Success', $3, $2, $10 FROM allowed)`

// Suspending a user updates its row, so holding it shared settles who came first: that session is ended, or this one not opened.
const livePeople = `
   subject AS (SELECT id FROM users WHERE id = $2 AND NOT is_suspended FOR SHARE),
   actor AS (SELECT id FROM users WHERE id = $11 AND NOT is_suspended FOR SHARE)`
const areLive = `EXISTS (SELECT FROM subject) AND ($11::text IS NULL OR EXISTS (SELECT FROM actor))`

const consume = statement(
  'exchange-consume',
  `WITH ${livePeople},
   allowed AS (
     UPDATE subject_tokens SET consumed_at = now()
     WHERE digest = $12 AND consumed_at IS NULL AND expires_at > now() AND ${areLive}
     RETURNING digest),
   session AS (
     INSERT INTO impersonation_sessions (id, subject_id, actor_id, actor_via, client_id, creator_id, resource, scopes,
       context, reason, ticket, token_id, started_at, expires_at)
     SELECT $13, $2, $11, $14, $3, $15, $16, $17::text[], $18, $19, $20, $21, $22, $23 FROM allowed),
   ${writeTokenAndLog('NULL::bytea')},
   ${eventExpressions('allowed', 24)}
   SELECT true AS consumed FROM allowed`,
)

// Holding a personal access token settles who came first, this exchange or its deletion, which then ends what is issued here too. The
// expired issues of a token go when new ones come; those that another exchange is removing are left to it.
const record = statement(
  'exchange-record',
  `WITH ${livePeople},
   personal AS (
     SELECT digest FROM personal_access_tokens
     WHERE digest = $12 AND (expires_at IS NULL OR expires_at > now()) FOR KEY SHARE),
   allowed AS (SELECT WHERE ${areLive} AND ($12::bytea IS NULL OR EXISTS (SELECT FROM personal))),
   issue AS (
     INSERT INTO personal_access_token_issues (digest, token_id, expires_at)
     SELECT $12, $13, $14 FROM allowed WHERE $12::bytea IS NOT NULL AND $1::bytea IS NULL),
   expired AS (
     DELETE FROM personal_access_token_issues WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM personal_access_token_issues WHERE digest = $12 AND expires_at < now() LIMIT 100 FOR UPDATE SKIP LOCKED))),
   ${writeTokenAndLog('$12::bytea')}
   SELECT true AS recorded FROM allowed`,
)

/** What is written with every token that is issued. */
export interface Issue {
  userId: string
  clientId: string
  actorId: string | undefined
  /** A token to store, by its digest. */
  opaque:
    | { digest: Buffer; scope: string; sessionId: string | undefined; act: Act | undefined; expiresAt: Date }
    | undefined
  audit: AuditEntry
}

/** A subject token that is used up, the session it opens, and the event that tells of it. */
export interface Impersonation {
  digest: Buffer
  session: ImpersonationSession
  started: NewEvent
}

const issueValues = ({ userId, clientId, actorId, opaque, audit }: Issue): unknown[] => [
  opaque?.digest,
  userId,
  clientId,
  opaque?.scope,
  opaque?.sessionId,
  opaque?.act && JSON.stringify(opaque.act),
  opaque?.expiresAt,
  newId(),
  audit.key,
  logPayload(audit),
  actorId,
]

/**
 * Uses the subject token up and opens its session, with the audit row, the event and the opaque token if there is one: one statement, so
 * all of it or nothing. False when the token could not be used any more: of any number of parallel calls on any number of instances,
 * one succeeds.
 */
export const consumeSubjectToken = async (
  query: Query,
  { digest, session, started }: Impersonation,
  issue: Issue,
): Promise<boolean> => {
  const rows = await query(consume, [
    ...issueValues(issue),
    digest,
    session.id,
    session.actorVia,
    session.creatorId,
    session.resource,
    session.scopes,
    JSON.stringify(session.context),
    session.reason,
    session.ticket,
    session.tokenId,
    session.startedAt,
    session.expiresAt,
    ...eventValues(started),
  ])
  return rows.length === 1
}

/** A personal access token that was presented, and what it is exchanged for. */
export interface PersonalIssue {
  digest: Buffer
  tokenId: string
  expiresAt: Date
}

/** For subject tokens that may be used again. False when subject, actor or personal access token was suspended or deleted meanwhile. */
export const recordExchange = async (
  query: Query,
  issue: Issue,
  personal: PersonalIssue | undefined,
): Promise<boolean> => {
  const rows = await query(record, [...issueValues(issue), personal?.digest, personal?.tokenId, personal?.expiresAt])
  return rows.length === 1
}

const status = statement(
  'exchange-status',
  `SELECT consumed_at IS NOT NULL AS consumed, expires_at <= now() AS expired FROM subject_tokens WHERE digest = $1`,
)

/** Why a subject token that was good a moment ago is not any more; undefined when it is gone. */
export const subjectTokenStatus = async (
  query: Query,
  digest: Buffer,
): Promise<{ consumed: boolean; expired: boolean } | undefined> =>
  (await query<{ consumed: boolean; expired: boolean }>(status, [digest]))[0]
