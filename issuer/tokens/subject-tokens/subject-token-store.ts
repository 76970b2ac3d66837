import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { Approval } from '../impersonation-requests/approval.ts'
import type { Minted } from '../impersonations/history.ts'
import { managementScopesOf } from './management-scopes-store.ts'

export interface NewSubjectToken {
  digest: Buffer
  userId: string
  creatorId: string
  context: Record<string, unknown>
  clientId?: string | undefined
  resource?: string | undefined
  scopes?: readonly string[] | undefined
  actorId?: string | undefined
  reason?: string | undefined
  ticket?: string | undefined
  /** What the user agreed to. */
  approval?: Approval | undefined
  /** For the session that it opens. */
  minted: Minted
  /** In seconds. */
  ttl: number
}

const insert = statement(
  'subject-token-insert',
  `INSERT INTO subject_tokens (digest, user_id, creator_id, context, client_id, resource, scopes, actor_id, reason, ticket, approval,
     minted, expires_at)
   VALUES ($1, $2, $3, $4, $5, $6, $7::text[], $8, $9, $10, $11, $12, now() + make_interval(secs => $13::integer))`,
)

export const insertSubjectToken = async (transaction: Transaction, token: NewSubjectToken): Promise<void> => {
  await queryOf(transaction)(insert, [
    token.digest,
    token.userId,
    token.creatorId,
    JSON.stringify(token.context),
    token.clientId,
    token.resource,
    token.scopes,
    token.actorId,
    token.reason,
    token.ticket,
    token.approval && JSON.stringify(token.approval),
    JSON.stringify(token.minted),
    token.ttl,
  ])
}

/** Those concerned by a request for a subject token. */
export interface MintFacts {
  subject: {
    id: string
    isSuspended: boolean
    roles: string[]
    /** Ids. */
    organizations: string[]
    customData: Record<string, unknown>
    managementScopes: string[]
  } | null
  actor: { id: string; roles: string[]; organizations: string[] } | null
  client: { id: string; type: string; name: string } | null
}

const roles = (user: string) =>
  `ARRAY(SELECT r.name FROM user_roles ur JOIN roles r ON r.id = ur.role_id WHERE ur.user_id = ${user} ORDER BY r.name)`

const organizations = (user: string) =>
  `ARRAY(SELECT organization_id FROM organization_users WHERE user_id = ${user} ORDER BY organization_id)`

const select = statement(
  'subject-token-facts',
  `SELECT
     (SELECT json_build_object('id', u.id, 'isSuspended', u.is_suspended, 'roles', ${roles('u.id')},
       'organizations', ${organizations('u.id')}, 'customData', u.custom_data,
       'managementScopes', ${managementScopesOf('u.id')})
      FROM users u WHERE u.id = $1) AS subject,
     (SELECT json_build_object('id', a.id, 'roles', ${roles('a.id')}, 'organizations', ${organizations('a.id')})
      FROM users a WHERE a.id = $2) AS actor,
     (SELECT json_build_object('id', c.id, 'type', c.type, 'name', c.name) FROM applications c WHERE c.id = $3) AS client`,
)

export const findMintFacts = async (
  transaction: Transaction,
  asked: { userId: string; actorId?: string | undefined; clientId?: string | undefined },
): Promise<MintFacts> => {
  const values = [asked.userId, asked.actorId, asked.clientId]
  return onlyRow(await queryOf(transaction)<MintFacts>(select, values))
}

const signIn = statement(
  'subject-token-sign-in',
  `SELECT a.acr, floor(extract(epoch FROM a.authenticated_at))::float8 AS auth_time
   FROM opaque_tokens t JOIN authorizations a ON a.id = t.session_id WHERE t.digest = $1 AND NOT t.is_exchanged`,
)

/** How and when, in seconds, the person signed in for a token. What came of an exchange says no more how. */
export const findSignIn = async (
  query: Query,
  digest: Buffer,
): Promise<{ acr: string; auth_time: number } | undefined> =>
  (await query<{ acr: string; auth_time: number }>(signIn, [digest]))[0]
