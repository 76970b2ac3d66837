import { type Query, queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'

/** What the sealed secret is bound to: it is worth nothing in the row of somebody else. */
export const totpSecretContext = (userId: string): string => `totp-secret:${userId}`

export interface StoredTotp {
  id: string
  sealed: Buffer
  lastStep: number
}

export interface NewTotp {
  id: string
  userId: string
  sealed: Buffer
  /** The step whose code confirmed it; null when nobody has shown a code yet. */
  confirmedStep: number | null
}

const insert = statement(
  'totp-insert',
  `INSERT INTO totp_secrets (id, user_id, sealed, last_step, confirmed_at)
   VALUES ($1, $2, $3, coalesce($4::bigint, 0), CASE WHEN $4::bigint IS NOT NULL THEN now() END)
   ON CONFLICT (user_id) DO NOTHING RETURNING id`,
)

/** False: the person has one. */
export const insertTotp = async (trx: Transaction, { id, userId, sealed, confirmedStep }: NewTotp): Promise<boolean> =>
  (await queryOf(trx)(insert, [id, userId, sealed, confirmedStep])).length > 0

const select = statement('totp-find', 'SELECT id, sealed, last_step AS "lastStep" FROM totp_secrets WHERE user_id = $1')

export const findTotp = async (query: Query, userId: string): Promise<StoredTotp | undefined> =>
  (await query<StoredTotp>(select, [userId]))[0]

const use = statement(
  'totp-use-step',
  `UPDATE totp_secrets SET last_step = $2, last_used_at = now(), confirmed_at = coalesce(confirmed_at, now())
   WHERE id = $1 AND last_step < $2 RETURNING id`,
)

/** Uses the step up, and all before it. False: it was, or the secret is gone. */
export const useTotpStep = async (transaction: Transaction, id: string, step: number): Promise<boolean> =>
  (await queryOf(transaction)(use, [id, step])).length > 0
