import { type Query, statement } from '../../../platform/database/database.ts'
import { sha256 } from '../../../platform/secret.ts'

const insert = statement(
  'dpop-proof-use',
  `INSERT INTO dpop_proofs (digest, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true AS first`,
)

/**
 * Uses a proof up. False when it was used before, here or by another instance. It is known by key and `jti`, since the
 * same signature can be spelt in two ways. Kept until `expiresAt`.
 */
export const useProof = async (
  query: Query,
  { thumbprint, jti, expiresAt }: { thumbprint: string; jti: string; expiresAt: Date },
): Promise<boolean> => (await query(insert, [sha256(JSON.stringify([thumbprint, jti])), expiresAt])).length === 1
