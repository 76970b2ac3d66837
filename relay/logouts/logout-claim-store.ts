import { type Query, statement } from '../../platform/database/database.ts'

/** A logout that this relay delivers now. */
export interface ClaimedLogout {
  authorizationId: string
  clientId: string
  url: string
  sealed: Buffer
  /** This one included. It tells this claim from later ones. */
  attempts: number
}

/** What can be sent. A token is not begun with when it may expire on its way. */
const due = `state = 'waiting' AND next_attempt_at <= now() AND token_expires_at > now() + interval '5 seconds'`

// The first of every application, then the second of every one, …: none waits for those of another.
const claim = statement(
  'logouts-claim',
  `WITH turns AS (
     SELECT authorization_id, client_id, row_number() OVER (PARTITION BY client_id ORDER BY next_attempt_at, authorization_id) AS turn
     FROM logout_deliveries WHERE ${due}),
   taken AS (
     SELECT l.authorization_id, l.sealed, c.oidc_client_metadata->>'backchannelLogoutUri' AS url
     FROM logout_deliveries l JOIN applications c ON c.id = l.client_id
     WHERE l.authorization_id = ANY (ARRAY(
         SELECT authorization_id FROM turns WHERE turn <= $2 AND client_id <> ALL ($3::text[]) ORDER BY turn LIMIT $1))
       AND ${due} AND c.oidc_client_metadata->>'backchannelLogoutUri' IS NOT NULL
     FOR UPDATE OF l SKIP LOCKED)
   UPDATE logout_deliveries l SET attempts = attempts + 1, sealed = NULL, token_expires_at = NULL,
     next_attempt_at = now() + $4 * interval '1 millisecond'
   FROM taken WHERE l.authorization_id = taken.authorization_id
   RETURNING l.authorization_id AS "authorizationId", l.client_id AS "clientId", taken.url, taken.sealed, l.attempts`,
)

/**
 * Takes logouts that are due, with their tokens, which nobody sends again; for `leaseMs` no other relay takes them. At
 * most `perApplication` of one application, and none of those in `busy`.
 */
export const claimLogouts = (
  query: Query,
  options: { limit: number; perApplication: number; busy: readonly string[]; leaseMs: number },
): Promise<ClaimedLogout[]> =>
  query<ClaimedLogout>(claim, [options.limit, options.perApplication, options.busy, options.leaseMs])

const delivered = statement(
  'logout-delivered',
  `UPDATE logout_deliveries SET state = 'delivered', sealed = NULL, token_expires_at = NULL, error = NULL,
     finished_at = now() WHERE authorization_id = $1 AND state = 'waiting'`,
)

/** Whoever holds it by now: the application knows. */
export const logoutDelivered = async (query: Query, authorizationId: string): Promise<void> => {
  await query(delivered, [authorizationId])
}

// What could only be tried again after its time is given up now; the issuer does that, and tells it.
const failed = statement(
  'logout-failed',
  `WITH tried AS (
     SELECT authorization_id, $4::float8 IS NULL OR now() + $4 * interval '1 millisecond' >= expires_at AS over
     FROM logout_deliveries WHERE authorization_id = $1 AND attempts = $2 AND state = 'waiting' FOR UPDATE)
   UPDATE logout_deliveries l SET error = $3,
     expires_at = CASE WHEN over THEN least(now(), expires_at) ELSE expires_at END,
     next_attempt_at = CASE WHEN over THEN now() ELSE now() + $4 * interval '1 millisecond' END
   FROM tried WHERE l.authorization_id = tried.authorization_id RETURNING over`,
)

/** `retryMs`: when it is tried again; undefined gives it up. Answers whether it was given up. */
export const logoutFailed = async (
  query: Query,
  { authorizationId, attempts }: ClaimedLogout,
  { error, retryMs }: { error: string; retryMs: number | undefined },
): Promise<boolean> => {
  const [row] = await query<{ over: boolean }>(failed, [authorizationId, attempts, error, retryMs ?? null])
  return row?.over ?? false
}

const waiting = statement('logouts-waiting', `SELECT count(*) AS total FROM logout_deliveries WHERE state = 'waiting'`)

export const waitingLogouts = async (query: Query): Promise<number> =>
  (await query<{ total: number }>(waiting, []))[0]!.total
