import { queryOf, statement, type Transaction } from '../../platform/database/database.ts'

const removeOfUser = statement('opaque-tokens-remove-of-user', `DELETE FROM opaque_tokens WHERE user_id = $1`)
const removeOfClient = statement('opaque-tokens-remove-of-client', `DELETE FROM opaque_tokens WHERE client_id = $1`)

/**
 * Deletes the opaque tokens for a user or of a client. Those others hold with that user in their `act` chain count no
 * more all the same.
 */
export const removeOpaqueTokens = async (
  transaction: Transaction,
  owner: { userId: string } | { clientId: string },
): Promise<void> => {
  const query = queryOf(transaction)
  if ('userId' in owner) await query(removeOfUser, [owner.userId])
  else await query(removeOfClient, [owner.clientId])
}

const revokeOwn = statement(
  'opaque-token-revoke',
  `UPDATE opaque_tokens SET revoked_at = now()
   WHERE digest = $1 AND client_id = $2 AND revoked_at IS NULL AND expires_at > now()
   RETURNING user_id AS "userId", session_id AS "sessionId"`,
)

/** Revokes a token of the client's. Undefined when there is none that counts. */
export const revokeOpaqueToken = async (
  transaction: Transaction,
  digest: Buffer,
  clientId: string,
): Promise<{ userId: string; sessionId: string | null } | undefined> =>
  (await queryOf(transaction)<{ userId: string; sessionId: string | null }>(revokeOwn, [digest, clientId]))[0]
