import { type Query, statement } from '../../../platform/database/database.ts'
import { onlyRow } from '../../base/only-row.ts'
import type { SigningAlgorithmName } from '../keys/signing-algorithms.ts'
import type { EndReason } from '../sessions/session.ts'
import { logoutTokenTtl } from './logout-token.ts'

/** Ends that nobody is told of: by the application itself, and by a time that it could know. */
const untold = ['revoked_by_client', 'expired'] satisfies EndReason[]

/**
 * A data-modifying part of a statement: a delivery for each authorization that `ended` (rows with `id`, `user_id`,
 * `client_id`, `scopes`) for `reason`, and whose application wants to be told. Without `openid`, or before its code was
 * redeemed, the application has no ID token that says the `sid`.
 */
export const logoutsOf = (ended: string, reason: string): string => `told AS (
     INSERT INTO logout_deliveries (authorization_id, user_id, client_id)
     SELECT e.id, e.user_id, e.client_id FROM ${ended} e JOIN applications c ON c.id = e.client_id
     WHERE c.oidc_client_metadata->>'backchannelLogoutUri' IS NOT NULL AND 'openid' = ANY (e.scopes)
       AND ${reason}::text <> ALL ('{${untold.join()}}')
       AND NOT EXISTS (SELECT FROM authorization_codes k WHERE k.authorization_id = e.id AND k.redeemed_at IS NULL)
     ON CONFLICT DO NOTHING)`

/** A delivery that needs a token. */
export interface TokenlessLogout {
  authorizationId: string
  userId: string
  clientId: string
  algorithm: SigningAlgorithmName | null
}

// A little ahead of time, so that a relay finds the token when it is due; and anew before it has expired unsent. Those
// without a key wait for one, and hold up no others.
const tokenless = statement(
  'logouts-tokenless',
  `SELECT l.authorization_id AS "authorizationId", l.user_id AS "userId", l.client_id AS "clientId",
     c.oidc_client_metadata->>'idTokenSignedResponseAlg' AS algorithm
   FROM logout_deliveries l JOIN applications c ON c.id = l.client_id
   WHERE l.state = 'waiting' AND l.next_attempt_at <= now() + interval '1 second' AND l.expires_at > now()
     AND (l.sealed IS NULL OR l.token_expires_at <= now() + interval '15 seconds')
     AND coalesce(c.oidc_client_metadata->>'idTokenSignedResponseAlg' = ANY ($2::text[]), true)
   ORDER BY l.next_attempt_at LIMIT $1 FOR UPDATE OF l SKIP LOCKED`,
)

/** Those that are due and have a key, for whoever makes their tokens in this transaction. */
export const takeTokenless = (
  trx: Query,
  { limit, algorithms }: { limit: number; algorithms: readonly SigningAlgorithmName[] },
): Promise<TokenlessLogout[]> => trx<TokenlessLogout>(tokenless, [limit, algorithms])

const equip = statement(
  'logouts-equip',
  `UPDATE logout_deliveries l SET sealed = made.sealed, token_expires_at = now() + interval '${logoutTokenTtl} seconds'
   FROM unnest($1::text[], $2::bytea[]) AS made (id, sealed) WHERE l.authorization_id = made.id`,
)

export const saveLogoutTokens = async (trx: Query, made: readonly { id: string; sealed: Buffer }[]): Promise<void> => {
  await trx(equip, [made.map(({ id }) => id), made.map(({ sealed }) => sealed)])
}

/** A delivery that nobody tries any more. */
export interface LostLogout {
  authorizationId: string
  userId: string
  clientId: string
  attempts: number
  error: string | null
}

// One that is under way has the time to come to its end.
const giveUp = statement(
  'logouts-give-up',
  `UPDATE logout_deliveries SET state = 'failed', sealed = NULL, token_expires_at = NULL, finished_at = now()
   WHERE authorization_id = ANY (ARRAY(
     SELECT authorization_id FROM logout_deliveries
     WHERE state = 'waiting' AND expires_at <= now() AND (next_attempt_at <= now() OR sealed IS NOT NULL)
     ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))
   RETURNING authorization_id AS "authorizationId", user_id AS "userId", client_id AS "clientId", attempts, error`,
)

export const giveLogoutsUp = (trx: Query, limit: number): Promise<LostLogout[]> => trx<LostLogout>(giveUp, [limit])

const untried = statement(
  'logouts-untried',
  `SELECT EXISTS (SELECT FROM logout_deliveries WHERE user_id = $1 AND state = 'waiting' AND error IS NULL) AS "isUntried"`,
)

/** Whether an application of the person is still to be told, and no attempt has failed yet. */
export const hasUntriedLogouts = async (query: Query, userId: string): Promise<boolean> =>
  onlyRow(await query<{ isUntried: boolean }>(untried, [userId])).isUntried
