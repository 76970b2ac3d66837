import { type Query, queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'

/** What a person can prove who they are with, beside the password. */
export interface AvailableFactors {
  totp: boolean
  passkeys: number
  /** Codes that are left. */
  backupCodes: number
  /** The address, if it is known to be the person's. */
  email: string | null
  /** E.164 without `+`, if it is known to be the person's. */
  phone: string | null
}

/** Columns of the user `u`, each from an index. */
export const availableFactorsColumns = (u: string): string =>
  `EXISTS (SELECT FROM totp_secrets f WHERE f.user_id = ${u}.id) AS totp,
     (SELECT count(*) FROM passkeys f WHERE f.user_id = ${u}.id) AS passkeys,
     (SELECT count(*) FROM backup_codes f WHERE f.user_id = ${u}.id AND f.used_at IS NULL) AS "backupCodes",
     CASE WHEN ${u}.email_verified_at IS NOT NULL THEN ${u}.primary_email END AS email,
     CASE WHEN ${u}.phone_verified_at IS NOT NULL THEN ${u}.primary_phone END AS phone`

/**
 * An SQL condition: the user with the id `userId` has a factor of their own. Backup codes stand in for one, and an
 * address is everybody's.
 */
export const hasOwnFactor = (userId: string): string =>
  `(EXISTS (SELECT FROM totp_secrets f WHERE f.user_id = ${userId})
     OR EXISTS (SELECT FROM passkeys f WHERE f.user_id = ${userId}))`

const available = statement('factors-available', `SELECT ${availableFactorsColumns('u')} FROM users u WHERE u.id = $1`)

/** Undefined for nobody. */
export const availableFactors = async (query: Query, userId: string): Promise<AvailableFactors | undefined> =>
  (await query<AvailableFactors>(available, [userId]))[0]

/** By their names in the Management API. */
export type FactorType = 'Totp' | 'WebAuthn' | 'BackupCode'

export interface FactorRow {
  id: string
  type: FactorType
  createdAt: Date
  lastUsedAt: Date | null
  /** Of passkeys. */
  name: string | null
  agent: string | null
  /** Of backup codes: how many are left. */
  left: number | null
}

const list = statement(
  'factors-of-user',
  `SELECT * FROM (
     SELECT id, 'Totp' AS type, created_at AS "createdAt", last_used_at AS "lastUsedAt", NULL::text AS name,
       NULL::text AS agent, NULL::bigint AS "left"
     FROM totp_secrets WHERE user_id = $1
     UNION ALL
     SELECT id, 'WebAuthn', created_at, last_used_at, name, agent, NULL FROM passkeys WHERE user_id = $1
     UNION ALL
     SELECT set_id, 'BackupCode', min(created_at), max(used_at), NULL, NULL, count(*) FILTER (WHERE used_at IS NULL)
     FROM backup_codes WHERE user_id = $1 GROUP BY set_id) AS factor
   ORDER BY "createdAt", id`,
)

/** The oldest first; nothing of it is secret. */
export const listFactors = (query: Query, userId: string): Promise<FactorRow[]> => query<FactorRow>(list, [userId])

const remove = statement(
  'factor-remove',
  `WITH totp AS (DELETE FROM totp_secrets WHERE id = $2 AND user_id = $1 RETURNING id),
   passkey AS (DELETE FROM passkeys WHERE id = $2 AND user_id = $1 RETURNING id),
   codes AS (DELETE FROM backup_codes WHERE set_id = $2 AND user_id = $1 RETURNING digest)
   SELECT CASE WHEN EXISTS (SELECT FROM totp) THEN 'Totp' WHEN EXISTS (SELECT FROM passkey) THEN 'WebAuthn'
     WHEN EXISTS (SELECT FROM codes) THEN 'BackupCode' END AS type`,
)

/** What it was. Undefined: the person has no factor with this id. */
export const deleteFactor = async (
  trx: Transaction,
  userId: string,
  factorId: string,
): Promise<FactorType | undefined> => {
  const [row] = await queryOf(trx)<{ type: FactorType | null }>(remove, [userId, factorId])
  return row?.type ?? undefined
}
