import type { ApplicationType } from '../directory/applications/application.ts'

/** An application as far as signing in to it goes. */
export interface AuthorizationClient {
  id: string
  name: string
  description: string | null
  type: ApplicationType
  isThirdParty: boolean
  logoUri?: string | undefined
  /** A web application gets a refresh token without `offline_access` too. */
  alwaysIssueRefreshToken: boolean
  refreshTokenTtlInDays: number
  /** As registered. */
  redirectUris: readonly string[]
}
