import { queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import { type AccountPerson, holderOf } from './person.ts'

/** A verification is a proof without an interaction: what a person shows who looks after their account. */

export interface Reauthentication {
  /** By the names of proofs: `password`, `totp`, … */
  kind: string
  verifiedAt: Date
  expiresAt: Date
}

const reauthentication = statement(
  'verification-find-reauthentication',
  `SELECT kind, verified_at AS "verifiedAt", expires_at AS "expiresAt" FROM proofs
   WHERE user_id = $1 AND holder = $2 AND purpose = 'reauth' AND ($3::text IS NULL OR id = $3)
     AND verified_at IS NOT NULL AND consumed_at IS NULL AND expires_at > now()
   ORDER BY verified_at DESC LIMIT 1`,
)

/** The newest, or the one with this id. */
export const selectReauthentication = async (
  transaction: Transaction,
  person: AccountPerson,
  id: string | undefined,
): Promise<Reauthentication | undefined> =>
  (await queryOf(transaction)<Reauthentication>(reauthentication, [person.userId, holderOf(person), id ?? null]))[0]
