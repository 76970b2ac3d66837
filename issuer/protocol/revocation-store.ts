import { type Query, statement } from '../../platform/database/database.ts'

// Everybody locks the authorization before its tokens.
const giveUp = statement(
  'refresh-token-give-up',
  `WITH held AS MATERIALIZED (
     SELECT a.id, a.user_id FROM authorizations a JOIN refresh_tokens r ON r.authorization_id = a.id
     WHERE r.digest = $1 AND a.client_id = $2 FOR UPDATE OF a)
   UPDATE refresh_tokens r SET revoked_at = now() FROM held
   WHERE r.digest = $1 AND r.authorization_id = held.id AND r.revoked_at IS NULL AND r.expires_at > now()
   RETURNING held.id AS "authorizationId", held.user_id AS "userId"`,
)

/**
 * Marks a refresh token of the client's as given up, also one that another has taken the place of. Undefined when there
 * is none, or it was given up before.
 */
export const giveUpRefreshToken = async (
  query: Query,
  digest: Buffer,
  clientId: string,
): Promise<{ authorizationId: string; userId: string } | undefined> =>
  (await query<{ authorizationId: string; userId: string }>(giveUp, [digest, clientId]))[0]

const ofClient = statement('authorization-of-client', 'SELECT id FROM authorizations WHERE id = $1 AND client_id = $2')

export const isAuthorizationOf = async (query: Query, id: string, clientId: string): Promise<boolean> =>
  (await query(ofClient, [id, clientId])).length > 0
