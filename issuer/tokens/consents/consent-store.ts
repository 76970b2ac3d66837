import { type Query, queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import { newId } from '../../../platform/ids.ts'
import { type Consent, consentDays } from './consent.ts'

const counts = 'revoked_at IS NULL AND expires_at > now()'
const fromNow = `now() + interval '${consentDays} days'`

const select = statement(
  'consent',
  `SELECT scopes, resources, organizations FROM consents WHERE user_id = $1 AND client_id = $2 AND ${counts}`,
)

/** Undefined when there is none, or none that still counts. */
export const findConsent = async (
  transaction: Transaction,
  userId: string,
  clientId: string,
): Promise<Consent | undefined> => (await queryOf(transaction)<Consent>(select, [userId, clientId]))[0]

const save = statement(
  'consent-save',
  `INSERT INTO consents (id, user_id, client_id, scopes, resources, organizations, expires_at)
   VALUES ($1, $2, $3, $4, $5, $6, ${fromNow})
   ON CONFLICT (user_id, client_id) DO UPDATE SET scopes = excluded.scopes, resources = excluded.resources,
     organizations = excluded.organizations, granted_at = now(), expires_at = excluded.expires_at, revoked_at = NULL`,
)

/** In place of what there was: who wants to add to it has read it, and holds the row of the user. */
export const saveConsent = async (
  transaction: Transaction,
  { userId, clientId, scopes, resources, organizations }: Consent & { userId: string; clientId: string },
): Promise<void> => {
  await queryOf(transaction)(save, [newId(), userId, clientId, scopes, JSON.stringify(resources), organizations])
}

const use = statement(
  'consent-use',
  `UPDATE consents SET expires_at = ${fromNow}
   WHERE user_id = $1 AND client_id = $2 AND ${counts} AND expires_at < ${fromNow} - interval '1 day'`,
)

/** It lasts from its last use on; written at most once a day. */
export const useConsent = async (query: Query, userId: string, clientId: string): Promise<void> => {
  await query(use, [userId, clientId])
}

const revoke = statement(
  'consent-revoke',
  'UPDATE consents SET revoked_at = now() WHERE user_id = $1 AND client_id = $2 AND revoked_at IS NULL RETURNING id',
)

/** Before the authorizations that it ends: rows are locked in this order. False when there was none. */
export const revokeConsent = async (transaction: Transaction, userId: string, clientId: string): Promise<boolean> =>
  (await queryOf(transaction)(revoke, [userId, clientId])).length > 0
