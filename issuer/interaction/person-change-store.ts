import { queryOf, statement, type Transaction } from '../../platform/database/database.ts'
import type { PasswordDigest } from '../directory/users/password-digests.ts'

const change = statement(
  'person-change',
  `UPDATE users SET username = coalesce($2, username), primary_email = coalesce($3::text, primary_email),
     email_verified_at = CASE WHEN $3::text IS NULL THEN email_verified_at ELSE now() END,
     primary_phone = coalesce($4::text, primary_phone),
     phone_verified_at = CASE WHEN $4::text IS NULL THEN phone_verified_at ELSE now() END,
     password_digest = coalesce($5::text, password_digest), password_algorithm = coalesce($6, password_algorithm),
     password_changed_at = CASE WHEN $5::text IS NULL THEN password_changed_at ELSE now() END,
     password_expired = password_expired AND $5::text IS NULL, updated_at = now()
   WHERE id = $1`,
)

/** Addresses are verified: whoever calls has seen the proof. What is undefined stays. */
export const changePerson = async (
  trx: Transaction,
  userId: string,
  {
    username,
    email,
    phone,
    password,
  }: {
    username: string | undefined
    email: string | undefined
    phone: string | undefined
    password: PasswordDigest | undefined
  },
): Promise<void> => {
  const values = [userId, username ?? null, email ?? null, phone ?? null]
  await queryOf(trx)(change, [...values, password?.digest ?? null, password?.algorithm ?? null])
}

const taken = statement(
  'person-address-taken',
  'SELECT FROM users WHERE lower(primary_email) = lower($2) AND id <> $1 LIMIT 1',
)

/** Whether somebody else has the address, in any case. */
export const isAddressTaken = async (trx: Transaction, userId: string, email: string): Promise<boolean> =>
  (await queryOf(trx)(taken, [userId, email])).length > 0

const skip = statement('person-skip-mfa', 'UPDATE users SET mfa_skipped_at = now() WHERE id = $1')

/** A second factor was offered and put off: it is not offered again. */
export const skipMfa = async (trx: Transaction, userId: string): Promise<void> => {
  await queryOf(trx)(skip, [userId])
}

const skipKey = statement('person-skip-passkey', 'UPDATE users SET passkey_skipped_at = now() WHERE id = $1')

/** A passkey was offered and put off: it is not offered for a while. */
export const skipPasskey = async (trx: Transaction, userId: string): Promise<void> => {
  await queryOf(trx)(skipKey, [userId])
}
