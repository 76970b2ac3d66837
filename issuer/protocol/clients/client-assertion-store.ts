import { type Query, statement } from '../../../platform/database/database.ts'
import { sha256 } from '../../../platform/secret.ts'

const insert = statement(
  'client-assertion-use',
  `INSERT INTO client_assertions (digest, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true AS first`,
)

/**
 * Uses an assertion up. False when it was used before, here or by another instance. Kept until `expiresAt`, when it is
 * refused anyway.
 */
export const useAssertion = async (
  query: Query,
  { clientId, jti, expiresAt }: { clientId: string; jti: string; expiresAt: Date },
): Promise<boolean> => (await query(insert, [sha256(JSON.stringify([clientId, jti])), expiresAt])).length === 1
