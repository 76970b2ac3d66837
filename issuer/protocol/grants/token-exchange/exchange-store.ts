import { firstEvent, firstEventColumns, firstEvents, type NewEvent } from '../../../../events/outbox.ts'
import { type Query, statement } from '../../../../platform/database/database.ts'
import { bytea, type SharedStatement, sharedStatement } from '../../../../platform/database/shared-statement.ts'
import { newId } from '../../../../platform/ids.ts'
import { type AuditEntry, logPayload } from '../../../base/audit/log-store.ts'
import type { Act } from '../../../tokens/access-token.ts'
import type { ImpersonationSession } from '../../../tokens/impersonations/impersonation.ts'
import { type Locking, type Redeemer, type Redeeming, redeem, redeeming } from '../redeeming-store.ts'

// Both redeeming statements check again what may have changed, and then write all that `allowed` has a row for.

const issueColumns = {
  user_id: 'text',
  actor_id: 'text',
  client_id: 'text',
  session_id: 'text',
  log_id: 'text',
  log_key: 'text',
  log_payload: 'jsonb',
} as const

const opaqueColumns = {
  token_digest: 'bytea',
  scope: 'text',
  act: 'jsonb',
  access: 'text',
  token_expires_at: 'timestamptz',
  jkt: 'text',
} as const

// Suspending a user updates its row. The shared lock decides the order: either the suspension ends this session, or it
// is not opened.
const livePeople = (locking: Locking) => `people AS MATERIALIZED (
     SELECT id FROM users WHERE id = ANY (ARRAY(SELECT user_id FROM asked UNION SELECT actor_id FROM asked)) AND NOT is_suspended
     ORDER BY id FOR SHARE ${locking})`
const areActive = `asked.user_id IN (SELECT id FROM people)
     AND (asked.actor_id IS NULL OR asked.actor_id IN (SELECT id FROM people))`

const writeLog = `log AS (
     INSERT INTO logs (id, key, result, application_id, user_id, payload)
     SELECT log_id, log_key, 'Success', client_id, user_id, log_payload FROM allowed)`

const writeToken = (personalAccessToken: string) => `opaque AS (
     INSERT INTO opaque_tokens (digest, user_id, client_id, scope, session_id, act, access, expires_at, jkt,
       personal_access_token, is_exchanged)
     SELECT token_digest, user_id, client_id, scope, session_id, act, access, token_expires_at, jkt,
       ${personalAccessToken}, true
     FROM allowed),`

const sessionColumns = {
  subject_token: 'bytea',
  actor_via: 'text',
  actor_sid: 'text',
  ends_with_actor: 'boolean',
  approval_id: 'text',
  access: 'text',
  creator_id: 'text',
  resource: 'text',
  scopes: 'text[]',
  context: 'jsonb',
  reason: 'text',
  ticket: 'text',
  token_id: 'text',
  policy: 'jsonb',
  started_at: 'timestamptz',
  expires_at: 'timestamptz',
} as const

/** A statement for each kind of token that is issued: most are JWTs, of which nothing is kept. */
type Issued = 'jwt' | 'opaque'

const forEachKind = (
  make: (issued: Issued, locking: Locking, name: string) => SharedStatement,
): Record<Issued, Redeeming> => {
  const of = (issued: Issued) => redeeming((locking, suffix) => make(issued, locking, issued + suffix))
  return { jwt: of('jwt'), opaque: of('opaque') }
}

const consume = forEachKind((issued, locking, name) =>
  sharedStatement(
    `exchange-consume-${name}`,
    { ...issueColumns, ...(issued === 'opaque' && opaqueColumns), ...sessionColumns, ...firstEventColumns },
    (asked) => `WITH asked AS MATERIALIZED (SELECT * FROM ${asked}),
   ${livePeople(locking)},
   -- What ends the actor's authorization or impersonation ends this session too, or it is not opened.
   signed_in AS MATERIALIZED (
     SELECT id FROM authorizations WHERE id = ANY (ARRAY(SELECT actor_sid FROM asked)) AND ended_at IS NULL
     ORDER BY id FOR SHARE ${locking}),
   acting AS MATERIALIZED (
     SELECT id FROM impersonation_sessions WHERE id = ANY (ARRAY(SELECT actor_sid FROM asked)) AND ended_at IS NULL
     ORDER BY id FOR SHARE ${locking}),
   allowed AS (
     UPDATE subject_tokens SET consumed_at = now(), keeps_limits = true FROM asked
     WHERE digest = ANY (ARRAY(SELECT subject_token FROM asked)) AND digest = asked.subject_token
       AND consumed_at IS NULL AND subject_tokens.expires_at > now() AND ${areActive}
       AND (asked.actor_sid IS NULL OR asked.actor_sid IN (SELECT id FROM signed_in) OR asked.actor_sid IN (SELECT id FROM acting))
     RETURNING asked.*, subject_tokens.minted),
   session AS (
     INSERT INTO impersonation_sessions (id, subject_id, actor_id, actor_via, actor_sid, ends_with_actor,
       client_id, creator_id, resource, scopes, context, reason, ticket, approval_id, access, token_id, minted, policy,
       started_at, expires_at)
     SELECT session_id, user_id, actor_id, actor_via, actor_sid, ends_with_actor,
       client_id, creator_id, resource, scopes, context, reason, ticket, approval_id, access, token_id, minted, policy,
       started_at, expires_at
     FROM allowed),
   ${issued === 'opaque' ? writeToken('NULL') : ''}
   ${writeLog},
   ${firstEvents('allowed')}
   SELECT n FROM allowed`,
  ),
)

// The shared lock on the personal access token decides the order of exchange and deletion; a later deletion also ends
// the new token. Expired issues are deleted here; rows locked by another exchange are skipped.
const record = forEachKind((issued, locking, name) =>
  sharedStatement(
    `exchange-record-${name}`,
    {
      ...issueColumns,
      ...(issued === 'opaque' && opaqueColumns),
      personal_access_token: 'bytea',
      token_id: 'text',
      expires_at: 'timestamptz',
    },
    (asked) => `WITH asked AS MATERIALIZED (SELECT * FROM ${asked}),
   ${livePeople(locking)},
   personal AS MATERIALIZED (
     SELECT digest FROM personal_access_tokens
     WHERE digest = ANY (ARRAY(SELECT personal_access_token FROM asked)) AND (expires_at IS NULL OR expires_at > now())
     ORDER BY digest FOR KEY SHARE ${locking}),
   allowed AS MATERIALIZED (
     SELECT * FROM asked
     WHERE ${areActive} AND (personal_access_token IS NULL OR personal_access_token IN (SELECT digest FROM personal))),
   expired AS (
     DELETE FROM personal_access_token_issues WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM personal_access_token_issues
       WHERE digest = ANY (ARRAY(SELECT personal_access_token FROM asked)) AND expires_at < now() LIMIT 100 FOR UPDATE SKIP LOCKED))),
   ${
     issued === 'opaque'
       ? writeToken('personal_access_token')
       : `issue AS (
     INSERT INTO personal_access_token_issues (digest, token_id, expires_at)
     SELECT personal_access_token, token_id, expires_at FROM allowed WHERE personal_access_token IS NOT NULL),`
   }
   ${writeLog}
   SELECT n FROM allowed`,
  ),
)

/** What is written with every token that is issued. */
export interface Issue {
  userId: string
  clientId: string
  actorId: string | undefined
  /** A token to store, by its digest. */
  opaque:
    | {
        digest: Buffer
        scope: string
        sessionId: string | undefined
        act: Act | undefined
        access: 'read' | undefined
        expiresAt: Date
        /** Of the key that it is bound to. */
        jkt: string | undefined
      }
    | undefined
  audit: AuditEntry
}

/** A subject token that is used up, the session it opens, and the event that tells of it. */
export interface Impersonation {
  digest: Buffer
  session: ImpersonationSession
  started: NewEvent
}

const issueRow = ({ userId, clientId, actorId, opaque, audit }: Issue) => ({
  user_id: userId,
  actor_id: actorId,
  client_id: clientId,
  log_id: newId(),
  log_key: audit.key,
  log_payload: logPayload(audit),
  ...(opaque && {
    token_digest: bytea(opaque.digest),
    scope: opaque.scope,
    act: opaque.act,
    access: opaque.access,
    token_expires_at: opaque.expiresAt,
    jkt: opaque.jkt,
  }),
})

const issuedIn = ({ opaque }: Issue): Issued => (opaque ? 'opaque' : 'jwt')

/**
 * Uses the subject token up and opens its session, with the audit row, the event and the opaque token if there is one:
 * one statement, so all of it or nothing. False when the token could not be used any more: of any number of parallel
 * calls on any number of instances, one succeeds.
 */
export const redeemSubjectToken = (
  database: Redeemer,
  { digest, session, started }: Impersonation,
  issue: Issue,
): Promise<boolean> => {
  return redeem(database, consume[issuedIn(issue)], {
    ...issueRow(issue),
    subject_token: bytea(digest),
    session_id: session.id,
    actor_via: session.actorVia,
    actor_sid: session.actorSid,
    ends_with_actor: session.endsWithActor,
    approval_id: session.approvalId,
    access: session.access,
    creator_id: session.creatorId,
    resource: session.resource,
    scopes: session.scopes,
    context: session.context,
    reason: session.reason,
    ticket: session.ticket,
    token_id: session.tokenId,
    policy: session.policy,
    started_at: session.startedAt,
    expires_at: session.expiresAt,
    ...firstEvent(started),
  })
}

/** A personal access token that was presented, and what it is exchanged for. */
export interface PersonalIssue {
  digest: Buffer
  tokenId: string
  expiresAt: Date
}

/**
 * For subject tokens that may be used again. False when subject, actor or personal access token was suspended or
 * deleted meanwhile.
 */
export const recordExchange = (
  database: Redeemer,
  issue: Issue,
  personal: PersonalIssue | undefined,
): Promise<boolean> => {
  return redeem(database, record[issuedIn(issue)], {
    ...issueRow(issue),
    ...(personal && {
      personal_access_token: bytea(personal.digest),
      token_id: personal.tokenId,
      expires_at: personal.expiresAt,
    }),
  })
}

const status = statement(
  'exchange-status',
  `SELECT consumed_at IS NOT NULL AS consumed, expires_at <= now() AS expired,
     EXISTS (SELECT FROM authorizations WHERE id = $2 AND ended_at IS NOT NULL)
       OR EXISTS (SELECT FROM impersonation_sessions WHERE id = $2 AND ended_at IS NOT NULL) AS "actorSignedOut"
   FROM subject_tokens WHERE digest = $1`,
)

/** Why a subject token that was good a moment ago is not any more; undefined when it is gone. */
export const subjectTokenStatus = async (
  query: Query,
  digest: Buffer,
  actorSid: string | undefined,
): Promise<SubjectTokenStatus | undefined> => (await query<SubjectTokenStatus>(status, [digest, actorSid]))[0]

export interface SubjectTokenStatus {
  consumed: boolean
  expired: boolean
  actorSignedOut: boolean
}
