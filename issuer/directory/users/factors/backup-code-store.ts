import { queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'

const empty = statement('backup-codes-void', 'DELETE FROM backup_codes WHERE user_id = $1')
const insert = statement(
  'backup-codes-insert',
  'INSERT INTO backup_codes (digest, set_id, user_id) SELECT digest, $2, $1 FROM unnest($3::bytea[]) AS digest',
)

/** These instead of those there are, used or not. The caller holds the row of the person. */
export const replaceBackupCodeRows = async (
  trx: Transaction,
  { userId, setId, digests }: { userId: string; setId: string; digests: readonly Buffer[] },
): Promise<void> => {
  await queryOf(trx)(empty, [userId])
  await queryOf(trx)(insert, [userId, setId, digests])
}

const use = statement(
  'backup-code-use',
  'UPDATE backup_codes SET used_at = now() WHERE digest = $1 AND user_id = $2 AND used_at IS NULL RETURNING set_id AS "setId"',
)

/** The set that it is of. Undefined: it is none of the person's, or was used. */
export const useBackupCodeRow = async (
  transaction: Transaction,
  userId: string,
  digest: Buffer,
): Promise<string | undefined> => (await queryOf(transaction)<{ setId: string }>(use, [digest, userId]))[0]?.setId
