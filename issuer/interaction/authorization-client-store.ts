import type { Query } from '../../platform/database/database.ts'
import { lookUp } from '../../platform/database/shared-statement.ts'
import type { ApplicationType } from '../directory/applications/application.ts'
import type { AuthorizationClient } from './authorization-client.ts'

/** What a statement selects of the applications row `a`; `toAuthorizationClient` reads it. */
export const authorizationClientColumns = `a.name AS "clientName", a.description AS "clientDescription",
     a.type AS "clientType", a.is_third_party AS "isThirdParty", a.oidc_client_metadata->>'logoUri' AS "logoUri",
     a.oidc_client_metadata->'redirectUris' AS "redirectUris",
     a.custom_client_metadata->'alwaysIssueRefreshToken' AS "alwaysIssueRefreshToken",
     a.custom_client_metadata->'refreshTokenTtlInDays' AS "refreshTokenTtlInDays"`

export interface AuthorizationClientRow {
  clientName: string
  clientDescription: string | null
  clientType: ApplicationType
  isThirdParty: boolean
  logoUri: string | null
  redirectUris: string[] | null
  alwaysIssueRefreshToken: boolean | null
  refreshTokenTtlInDays: number | null
}

const defaultRefreshTokenTtlInDays = 14

export const toAuthorizationClient = (id: string, row: AuthorizationClientRow): AuthorizationClient => ({
  id,
  name: row.clientName,
  description: row.clientDescription,
  type: row.clientType,
  isThirdParty: row.isThirdParty,
  logoUri: row.logoUri ?? undefined,
  alwaysIssueRefreshToken: row.alwaysIssueRefreshToken ?? false,
  refreshTokenTtlInDays: row.refreshTokenTtlInDays ?? defaultRefreshTokenTtlInDays,
  redirectUris: row.redirectUris ?? [],
})

const select = lookUp(
  'authorization-client',
  { client_id: 'text' },
  `SELECT ${authorizationClientColumns} FROM applications a WHERE a.id = asked.client_id`,
)

export const findAuthorizationClient = async (query: Query, id: string): Promise<AuthorizationClient | undefined> => {
  const [row] = await query<AuthorizationClientRow>(select, [{ client_id: id }])
  return row && toAuthorizationClient(id, row)
}
