import { queryOf, statement, type Transaction } from '../../platform/database/database.ts'

const voidProofs = statement(
  'logout-void-proofs',
  `UPDATE proofs SET consumed_at = now()
   WHERE consumed_at IS NULL AND expires_at > now() AND user_id = $1
     AND ($2 OR interaction_id = ANY (ARRAY(SELECT id FROM interactions WHERE browser = $3)))`,
)

/**
 * What the person has proven on pages that are still open, in this browser or in all, counts no more: nobody who finds
 * one goes on as them. The caller holds the row of the user.
 */
export const voidOpenProofs = async (
  transaction: Transaction,
  userId: string,
  { everywhere, browser }: { everywhere: boolean; browser: Buffer | undefined },
): Promise<void> => {
  await queryOf(transaction)(voidProofs, [userId, everywhere, browser ?? null])
}
