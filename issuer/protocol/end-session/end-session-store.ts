import { type Query, statement } from '../../../platform/database/database.ts'
import type { ApplicationType } from '../clients/client.ts'

/** An application, as far as signing out needs it. */
export interface LogoutClient {
  id: string
  name: string
  type: ApplicationType
  logoUri: string | undefined
  postLogoutRedirectUris: readonly string[]
}

const client = statement(
  'logout-client',
  `SELECT id, name, type, oidc_client_metadata->>'logoUri' AS "logoUri",
     coalesce(oidc_client_metadata->'postLogoutRedirectUris', '[]') AS "postLogoutRedirectUris"
   FROM applications WHERE id = $1`,
)

export const findLogoutClient = async (query: Query, clientId: string): Promise<LogoutClient | undefined> => {
  const [row] = await query<Omit<LogoutClient, 'logoUri'> & { logoUri: string | null }>(client, [clientId])
  return row && { ...row, logoUri: row.logoUri ?? undefined }
}

// That the client gave its refresh token up shows that it acts for the person, and that just now.
const asked = statement(
  'logout-asked-by-client',
  `SELECT EXISTS (SELECT FROM authorizations WHERE id = $3 AND session_id = $1 AND client_id = $2)
     OR EXISTS (SELECT FROM authorizations a JOIN refresh_tokens r ON r.authorization_id = a.id
       WHERE a.session_id = $1 AND a.client_id = $2 AND r.revoked_at > now() - interval '60 seconds') AS "isProven"`,
)

/**
 * Whether the client shows that it was given the session: `sid`, of a verified ID token of its own, is an authorization
 * of it, or the client revoked a refresh token of it within the last minute.
 */
export const isAskedByClient = async (
  query: Query,
  { sessionId, clientId, sid }: { sessionId: string; clientId: string; sid: string | undefined },
): Promise<boolean> => {
  const [row] = await query<{ isProven: boolean }>(asked, [sessionId, clientId, sid ?? null])
  return row!.isProven
}

// What makes authorizations, suspends or deletes waits, or comes first and shows here.
const hold = statement('logout-hold-user', 'SELECT id FROM users WHERE id = $1 FOR NO KEY UPDATE')
const ongoing = statement('logout-session', 'SELECT id FROM sessions WHERE id = $1 AND ended_at IS NULL')

/** Holds the person until the transaction ends. False when the session has ended. */
export const holdForLogout = async (query: Query, session: { id: string; userId: string }): Promise<boolean> => {
  await query(hold, [session.userId])
  return (await query(ongoing, [session.id])).length > 0
}
