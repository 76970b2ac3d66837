import { queryOf, statement, type Transaction } from '../../../platform/database/database.ts'
import type { PasswordDigest } from './password-digests.ts'
import type { UserRow } from './user.ts'

const replace = statement(
  'user-password-replace',
  `UPDATE users SET password_digest = $2, password_algorithm = $3, password_changed_at = now(), password_expired = false,
     updated_at = now()
   WHERE id = $1 RETURNING *`,
)

/** Undefined when there is no such user. */
export const replacePassword = async (
  trx: Transaction,
  userId: string,
  { digest, algorithm }: PasswordDigest,
): Promise<UserRow | undefined> => (await queryOf(trx)<UserRow>(replace, [userId, digest, algorithm]))[0]
