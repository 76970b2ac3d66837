import { queryOf, statement, type Transaction } from '../../../platform/database/database.ts'

const forget = statement('known-devices-forget', 'DELETE FROM known_devices WHERE user_id = $1')

/**
 * No browser counts as one that the person has used before: whoever has guessed a password once must not guess at the
 * next one as if they were at home. The caller holds the row of the user.
 */
export const forgetDevices = async (transaction: Transaction, userId: string): Promise<void> => {
  await queryOf(transaction)(forget, [userId])
}
