import { bytea } from '../../../../platform/database/shared-statement.ts'
import { logPayload } from '../../../base/audit/log-store.ts'
import { authorizationCounts } from '../../../tokens/authorizations/authorization-store.ts'
import { consentDays } from '../../../tokens/consents/consent.ts'
import type { Locking } from '../redeeming-store.ts'
import type { PreparedIssue } from './plan.ts'

/** What the redeeming statements of codes and refresh tokens have in common. */

/** Columns that each of them is asked with. */
export const issueColumns = {
  authorization_id: 'text',
  user_id: 'text',
  client_id: 'text',
  token_digest: 'bytea',
  scope: 'text',
  token_expires_at: 'timestamptz',
  jkt: 'text',
  log_id: 'text',
  log_key: 'text',
  log_payload: 'jsonb',
} as const

export const issueRow = ({ authorizationId, userId, clientId, opaque, jkt, log }: PreparedIssue['issue']) => ({
  authorization_id: authorizationId,
  user_id: userId,
  client_id: clientId,
  jkt,
  log_id: log.id,
  log_key: log.entry.key,
  log_payload: logPayload(log.entry),
  ...(opaque && { token_digest: bytea(opaque.digest), scope: opaque.scope, token_expires_at: opaque.expiresAt }),
})

/**
 * `live`: the authorizations that count, whose users are not suspended. Locked in the order that everybody keeps:
 * users, then authorizations. The locks decide the order: either what ends an authorization also ends these tokens, or
 * they are not issued. Whether the user is among `people` is asked in a way that no index serves: a person may have
 * thousands of authorizations.
 */
export const liveAuthorizations = (
  lock: 'SHARE' | 'NO KEY UPDATE',
  locking: Locking,
): string => `people AS MATERIALIZED (
     SELECT id FROM users WHERE id = ANY (ARRAY(SELECT user_id FROM asked)) AND NOT is_suspended ORDER BY id FOR SHARE ${locking}),
   live AS MATERIALIZED (
     SELECT a.id, a.is_offline, a.created_at FROM authorizations a
     WHERE a.id = ANY (ARRAY(SELECT authorization_id FROM asked))
       AND array_position(ARRAY(SELECT id FROM people), a.user_id) IS NOT NULL AND ${authorizationCounts('a')}
     ORDER BY a.id FOR ${lock} OF a ${locking})`

// That a third-party application uses what it was allowed keeps the consent alive. Whoever holds its row is about to
// revoke or renew it, and is not waited for: the rows of consents come before authorizations in the order of locks.
const keepConsents = `used AS (
     UPDATE consents SET expires_at = now() + interval '${consentDays} days'
     WHERE id = ANY (ARRAY(
       SELECT g.id FROM allowed JOIN consents g ON g.user_id = allowed.user_id AND g.client_id = allowed.client_id
       WHERE g.revoked_at IS NULL AND g.expires_at > now() AND g.expires_at < now() + interval '${consentDays - 1} days'
       ORDER BY g.id FOR UPDATE OF g SKIP LOCKED)))`

/** For each row of `allowed` the opaque token, if it is one, and the audit row. */
export const writeIssue = `opaque AS (
     INSERT INTO opaque_tokens (digest, user_id, client_id, scope, session_id, expires_at, jkt)
     SELECT token_digest, user_id, client_id, scope, authorization_id, token_expires_at, jkt FROM allowed
     WHERE token_digest IS NOT NULL),
   ${keepConsents},
   log AS (
     INSERT INTO logs (id, key, result, application_id, user_id, payload)
     SELECT log_id, log_key, 'Success', client_id, user_id, log_payload FROM allowed)`

/**
 * The authorization lives as long as its refresh tokens do; `made` are new ones. Without offline access its session
 * decides.
 */
export const extendAuthorizations = (made: string): string => `extended AS (
     UPDATE authorizations SET expires_at = ${made}.expires_at FROM ${made}
     WHERE id = ANY (ARRAY(SELECT authorization_id FROM ${made})) AND id = ${made}.authorization_id
       AND is_offline AND authorizations.expires_at < ${made}.expires_at)`

/** An SQL expression: when refresh tokens of an authorization end at the latest. */
export const latestRefresh = (authorization: string): string => `(${authorization}.created_at + interval '1 year')`
