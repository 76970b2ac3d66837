import { queryOf, statement, type Transaction } from '../../../../platform/database/database.ts'
import { notFound } from '../../../base/errors/not-found.ts'

const hold = statement('factor-owner-hold', 'SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE')

/**
 * Who changes the factors of a person waits for whoever does so already: what is read of them in the same transaction
 * stays true. Throws 404 for nobody.
 */
export const holdOwner = async (trx: Transaction, userId: string): Promise<void> => {
  if ((await queryOf(trx)(hold, [userId])).length === 0) throw notFound(userId)
}
